package agent_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

// TestExpectRestarted checks that a restarted container connects with the same token under another name, and that the
// end of the first session does not affect the second.
func TestExpectRestarted(t *testing.T) {
	f := newFixture(t)
	first := f.expect("p", agent.Options{})
	_, _ = f.wrap(first, "sleep", "60")
	if _, _, err := first.Started(t.Context()); err != nil {
		t.Fatal(err)
	}
	second, err := f.ExpectRestarted(first, "c~1") // while the first session is still open
	if err != nil {
		t.Fatal(err)
	}
	if second.Token() != first.Token() {
		t.Error("the second has another token")
	}
	if err := first.Signal(syscall.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	if end := f.done(first); end.Signal != "SIGKILL" || !end.Asked {
		t.Errorf("the first ended %+v", end)
	}
	_, _ = f.wrap(second, "sh", "-c", "exit 3")
	if end := f.done(second); end.ExitCode != 3 || end.Name != "c~1" {
		t.Errorf("the second ended %+v", end)
	}
	third, out := f.wrap(second, "true")
	if err := third.Wait(); err == nil || !strings.Contains(out.String(), "started a second time") {
		t.Errorf("a third start, which was not expected: %v, %q", err, out)
	}
}

// TestStopAndProbeAgain checks that all processes of a command can be stopped, also one in a session of its own as the
// jobs of fio are, its volume probed meanwhile, and the processes continued.
func TestStopAndProbeAgain(t *testing.T) {
	f := newFixture(t)
	s := f.expect("p", agent.Options{Probes: []protocol.VolumeProbeSpec{{Volume: "v", Path: t.TempDir(), Write: true,
		Read: true}}})
	_, _ = f.wrap(s, "sh", "-c", "(while :; do echo tick; sleep 0.02; done) & "+
		"setsid sh -c 'while :; do echo other; sleep 0.02; done' & wait")
	if _, _, err := s.Started(t.Context()); err != nil {
		t.Fatal(err)
	}
	written := func() (ticks, others int) {
		b, _ := f.sink.OutputOf("p", "c", protocol.Stdout)
		return strings.Count(string(b), "tick"), strings.Count(string(b), "other")
	}
	agenttest.Eventually(t, "output of both", func() bool {
		n, m := written()
		return n > 0 && m > 0
	})
	before := s.VolumeProbes()
	if err := s.Signal(syscall.SIGSTOP, 0); err != nil {
		t.Fatal(err)
	}
	var ticks, others int
	agenttest.Eventually(t, "the output ends: all processes are stopped", func() bool {
		ticks, others = written()
		time.Sleep(500 * time.Millisecond)
		n, m := written()
		return n == ticks && m == others
	})
	again, err := s.ProbeVolumes(t.Context())
	if err != nil || len(again) != len(before) || len(again) != 2 {
		t.Fatalf("probed %v first, then %v: %v", before, again, err)
	}
	for _, probe := range again {
		if probe.Failure != "" || probe.At <= before[1].At {
			t.Errorf("probed again: %+v, after %v", probe, before[1].At)
		}
	}
	if err := s.Signal(syscall.SIGCONT, 0); err != nil {
		t.Fatal(err)
	}
	agenttest.Eventually(t, "more output of both", func() bool {
		n, m := written()
		return n > ticks && m > others
	})
	if err := s.Signal(syscall.SIGKILL, 0); err != nil {
		t.Fatal(err)
	}
	f.done(s)
}
