package agent

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// quiet is a sink for what nobody looks at.
type quiet struct{ engine.Sink }

func (quiet) Log(string, string) {}

// meetings drives a group of three by hand.
type meetings struct {
	*testing.T
	server *Server
	of     []*Session
}

func newMeetings(t *testing.T) *meetings {
	m := &meetings{T: t, server: &Server{clock: op.NewClock(), groups: map[string]*group{}}}
	for range 3 {
		m.of = append(m.of, m.session())
	}
	return m
}

func (m *meetings) session() *Session {
	return &Session{server: m.server, sink: quiet{}}
}

func (m *meetings) come(i, step int) {
	m.server.meet(m.of[i], &protocol.Meet{Meeting: protocol.Meeting{Group: "g", Step: step, Index: i, Members: 3}})
}

// wait fails unless so many wait.
func (m *meetings) wait(what string, n int) {
	m.Helper()
	if g := m.server.groups["g"]; g == nil || len(g.waiting) != n {
		m.Errorf("%s: %+v, want %d to wait", what, g, n)
	}
}

func TestMeetings(t *testing.T) {
	m := newMeetings(t)
	m.come(0, 0)
	m.come(1, 0)
	m.wait("two of three have come", 2)
	m.come(2, 0)
	m.wait("all have come", 0)
	m.come(0, 1)
	m.come(1, 1)
	m.wait("the third is at the step before", 2)
	m.server.leave(m.of[2], false)
	m.wait("the third is lost", 0)
	if g := m.server.groups["g"]; !g.failed || len(g.present) != 2 {
		t.Errorf("after a loss: %+v", g)
	}
	m.come(0, 2)
	m.of[2] = m.session() // it was made again
	m.come(2, 0)
	m.wait("one that was made again finds the first meeting over", 1)
	m.come(1, 2)
	m.wait("but is waited for", 2)
	m.come(2, 2)
	m.wait("until it has caught up", 0)
	m.server.leave(m.session(), true) // of no group
	for _, s := range m.of {
		m.server.leave(s, true)
	}
	if len(m.server.groups) != 0 {
		t.Errorf("groups are kept: %v", m.server.groups)
	}
}

// The end of a member that was made again meanwhile takes nothing from its
// successor.
func TestMeetingsLateEnd(t *testing.T) {
	m := newMeetings(t)
	for i := range m.of {
		m.come(i, 0)
	}
	first := m.of[1]
	m.of[1] = m.session()
	m.come(1, 0)
	m.server.leave(first, false)
	if g := m.server.groups["g"]; len(g.gone) != 0 || g.failed {
		t.Errorf("%+v", g)
	}
}

func TestMeetingsThatCannotBe(t *testing.T) {
	m := newMeetings(t)
	for _, bad := range []protocol.Meeting{{Index: -1, Members: 3}, {Index: 3, Members: 3}, {Members: 0}, {Members: maxMembers + 1}} {
		m.server.meet(m.of[0], &protocol.Meet{Meeting: bad})
	}
	if len(m.server.groups) != 0 {
		t.Errorf("%v", m.server.groups)
	}
}
