package agent

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// quiet is a sink that accepts only log lines.
type quiet struct{ engine.Sink }

func (quiet) Log(string, string) {}

// rendezvousTest drives a group of three sessions without connections.
type rendezvousTest struct {
	*testing.T
	server   *Server
	sessions []*Session
}

func newRendezvousTest(t *testing.T) *rendezvousTest {
	m := &rendezvousTest{T: t, server: &Server{clock: op.NewClock(), groups: map[string]*group{}}}
	for range 3 {
		m.sessions = append(m.sessions, m.session())
	}
	return m
}

func (m *rendezvousTest) session() *Session {
	return &Session{server: m.server, sink: quiet{}}
}

func (m *rendezvousTest) arrive(i, step int) {
	m.server.arriveAt(m.sessions[i], &protocol.RendezvousRequest{Rendezvous: protocol.Rendezvous{Group: "g", Step: step,
		Index: i, Members: 3}})
}

// wait checks the number of waiting members.
func (m *rendezvousTest) wait(what string, n int) {
	m.Helper()
	if g := m.server.groups["g"]; g == nil || len(g.waiting) != n {
		m.Errorf("%s: %+v, want %d to wait", what, g, n)
	}
}

func TestRendezvous(t *testing.T) {
	m := newRendezvousTest(t)
	m.arrive(0, 0)
	m.arrive(1, 0)
	m.wait("two of three have come", 2)
	m.arrive(2, 0)
	m.wait("all have come", 0)
	m.arrive(0, 1)
	m.arrive(1, 1)
	m.wait("the third is at the step before", 2)
	m.server.leaveGroup(m.sessions[2], false)
	m.wait("the third is lost", 0)
	if g := m.server.groups["g"]; !g.failed || len(g.present) != 2 {
		t.Errorf("after a loss: %+v", g)
	}
	m.arrive(0, 2)
	m.sessions[2] = m.session() // its container restarted
	m.arrive(2, 0)
	m.wait("one that was made again finds the first meeting over", 1)
	m.arrive(1, 2)
	m.wait("but is waited for", 2)
	m.arrive(2, 2)
	m.wait("until it has caught up", 0)
	m.server.leaveGroup(m.session(), true) // a session without a group
	for _, s := range m.sessions {
		m.server.leaveGroup(s, true)
	}
	if len(m.server.groups) != 0 {
		t.Errorf("groups are kept: %v", m.server.groups)
	}
}

// TestRendezvousAfterRestart checks that the late end of a session does not affect the session that replaced it.
func TestRendezvousAfterRestart(t *testing.T) {
	m := newRendezvousTest(t)
	for i := range m.sessions {
		m.arrive(i, 0)
	}
	first := m.sessions[1]
	m.sessions[1] = m.session()
	m.arrive(1, 0)
	m.server.leaveGroup(first, false)
	if g := m.server.groups["g"]; len(g.gone) != 0 || g.failed {
		t.Errorf("%+v", g)
	}
}

func TestInvalidRendezvous(t *testing.T) {
	m := newRendezvousTest(t)
	for _, bad := range []protocol.Rendezvous{{Index: -1, Members: 3}, {Index: 3, Members: 3}, {Members: 0},
		{Members: maxGroupSize + 1}} {
		m.server.arriveAt(m.sessions[0], &protocol.RendezvousRequest{Rendezvous: bad})
	}
	if len(m.server.groups) != 0 {
		t.Errorf("%v", m.server.groups)
	}
}
