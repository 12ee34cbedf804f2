package agent

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// rendezvousDelay is the time from the arrival of the last member to the common instant, so that every member
// knows the instant in advance.
const rendezvousDelay = 50 * time.Millisecond

// maxGroupSize bounds the members of a group.
const maxGroupSize = 100_000

// arriveAt registers that a session waits at a step of its group.
func (s *Server) arriveAt(sess *Session, m *protocol.RendezvousRequest) {
	if m.Index < 0 || m.Members < 1 || m.Members > maxGroupSize || m.Index >= m.Members {
		sess.sink.Log(sess.id.String(), "invalid rendezvous: index or number of members out of range")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[m.Group]
	if g == nil {
		g = &group{members: m.Members, present: map[int]waiter{}, gone: map[int]bool{}}
		s.groups[m.Group] = g
	}
	sess.group, sess.member = m.Group, m.Index
	g.present[m.Index] = waiter{sess, *m}
	delete(g.gone, m.Index)
	g.failed = g.failed || m.Failed
	g.waiting = append(g.waiting, waiter{sess, *m})
	s.releaseReady(g)
}

// leaveGroup removes an ended session from its group, which continues without it.
func (s *Server) leaveGroup(sess *Session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[sess.group]
	if g == nil || g.present[sess.member].session != sess {
		return // another session is that member
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(a waiter) bool { return a.session == sess })
	delete(g.present, sess.member)
	g.gone[sess.member] = true
	g.failed = g.failed || !ok
	if len(g.gone) == g.members {
		delete(s.groups, sess.group)
		return
	}
	s.releaseReady(g)
}

// releaseReady releases the waiters of every step that all members have reached. The caller holds mu.
func (s *Server) releaseReady(g *group) {
	if len(g.present)+len(g.gone) < g.members {
		return // a member has not arrived
	}
	present := slices.Sorted(maps.Keys(g.present))
	step := math.MaxInt // last step that all members have reached
	for _, a := range g.present {
		step = min(step, a.request.Step)
	}
	at, failed := s.clock.Now()+op.Time(rendezvousDelay), g.failed
	g.waiting = slices.DeleteFunc(g.waiting, func(a waiter) bool {
		if a.request.Step > step {
			return false
		}
		// A full socket must not block the other members.
		go a.session.replyRendezvous(protocol.RendezvousReply{ID: a.request.ID, Present: present, Failed: failed}, at)
		return true
	})
}

// replyRendezvous sends the agent the common instant. A failed write needs no handling: the reader detects a
// lost agent.
func (s *Session) replyRendezvous(m protocol.RendezvousReply, at op.Time) {
	m.At, _, _ = s.clocks.ToAgent(at) // at least one exchange precedes the welcome
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Write(protocol.Message{RendezvousReply: &m})
	}
}
