package agent

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// meetAhead is how long after the last member has come a meeting takes place, so
// that all know of it before.
const meetAhead = 50 * time.Millisecond

// maxMembers of a group: more are not meant.
const maxMembers = 100_000

// group is those who meet: see package rendezvous.
type group struct {
	members int
	present map[int]arrival // the last step that a member has come to
	gone    map[int]bool
	failed  bool
	waiting []arrival
}

// arrival is that of a member at a step.
type arrival struct {
	session *Session
	ask     protocol.Meet
}

// meet takes a session's coming to a meeting.
func (s *Server) meet(sess *Session, m *protocol.Meet) {
	if m.Index < 0 || m.Members < 1 || m.Members > maxMembers || m.Index >= m.Members {
		sess.sink.Log(sess.id.String(), "it came to a meeting that cannot be")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[m.Group]
	if g == nil {
		g = &group{members: m.Members, present: map[int]arrival{}, gone: map[int]bool{}}
		s.groups[m.Group] = g
	}
	sess.group, sess.member = m.Group, m.Index
	g.present[m.Index] = arrival{sess, *m}
	delete(g.gone, m.Index)
	g.failed = g.failed || m.Failed
	g.waiting = append(g.waiting, arrival{sess, *m})
	s.assemble(g)
}

// leave counts out a session that has ended, whose group goes on without it.
func (s *Server) leave(sess *Session, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[sess.group]
	if g == nil || g.present[sess.member].session != sess {
		return // another is that member by now
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(a arrival) bool { return a.session == sess })
	delete(g.present, sess.member)
	g.gone[sess.member] = true
	g.failed = g.failed || !ok
	if len(g.gone) == g.members {
		delete(s.groups, sess.group)
		return
	}
	s.assemble(g)
}

// assemble lets those go whose step all have come to. Call it with mu held.
func (s *Server) assemble(g *group) {
	if len(g.present)+len(g.gone) < g.members {
		return // somebody has not come at all
	}
	present := slices.Sorted(maps.Keys(g.present))
	step := math.MaxInt // that all have come to
	for _, a := range g.present {
		step = min(step, a.ask.Step)
	}
	at, failed := s.clock.Now()+op.Time(meetAhead), g.failed
	g.waiting = slices.DeleteFunc(g.waiting, func(a arrival) bool {
		if a.ask.Step > step {
			return false
		}
		// A socket that is full must not hold the others up.
		go a.session.met(protocol.Met{ID: a.ask.ID, Present: present, Failed: failed}, at)
		return true
	})
}

// met tells the agent that a meeting takes place. If it cannot be told it is
// lost, which is noticed elsewhere.
func (s *Session) met(m protocol.Met, at op.Time) {
	m.At, _, _ = s.join.Agent(at) // there was an exchange before it was welcomed
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Write(protocol.Message{Met: &m})
	}
}
