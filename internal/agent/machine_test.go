package agent_test

import (
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/agent/wrap"
	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

// TestOneAgentReadsAMachine checks that one agent per machine reads the machine's counters, that another one takes over
// after its end, and that no agent does so on the runner's machine.
func TestOneAgentReadsAMachine(t *testing.T) {
	f := newTLSFixture(t)
	join := func(name, id string) (*protocol.Conn, func(), bool) {
		t.Helper()
		s := f.expect(name, agent.Options{})
		l, err := transport.Dial(t.Context(), f.Address(), f.Pin(), 0)
		if err != nil {
			t.Fatal(err)
		}
		conn := protocol.NewConn(l, clock.New(0).Now)
		welcome, err := wrap.Handshake(conn, protocol.Hello{Token: s.Token(), Machine: id})
		if err != nil {
			t.Fatal(err)
		}
		return conn, func() { _ = l.Close(); <-s.Done() }, welcome.SampleMachine
	}
	first, end, reads := join("a", "node-1")
	if !reads {
		t.Error("the first agent of a machine does not read it")
	}
	if _, _, reads := join("b", "node-1"); reads {
		t.Error("two agents read one machine")
	}
	if _, _, reads := join("c", machine.ID()); reads {
		t.Error("an agent reads the runner's machine")
	}
	if _, _, reads := join("d", ""); reads {
		t.Error("an agent reads a machine that is not known")
	}
	c := op.MachineCounters{CPUs: 3, BusyNanos: 5}
	var m op.Machine
	agenttest.Eventually(t, "a reading of the machine with its wall clock", func() bool {
		if err := first.Write(protocol.Message{Sample: &protocol.Sample{Machine: &c,
			WallNanos: f.clock.Start().Add(time.Hour).UnixNano()}}); err != nil {
			t.Fatal(err)
		}
		if all := f.sink.Machines(); len(all) > 0 {
			m = all[len(all)-1]
		}
		return m.WallAheadNanos != nil // without an exchange of clocks that was quick enough there is none
	})
	if m.ID != "node-1" || m.Instance != "a" || m.MachineCounters != c {
		t.Errorf("got %+v", m)
	} else if *m.WallAheadNanos != int64(time.Hour)-int64(m.At) {
		t.Errorf("wall clock of %+v", m)
	}
	end()
	if _, _, reads := join("e", "node-1"); !reads {
		t.Error("no agent reads the machine")
	}
}
