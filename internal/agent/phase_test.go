package agent_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestPhase checks the ends of a command with a phase.
func TestPhase(t *testing.T) {
	const ms = time.Millisecond
	tests := []struct {
		name, script string
		phase        engine.Phase
		code         int // exit code of the agent
		ok, over     bool
		signal       string
		message      string
	}{
		{name: "its end is its phase's", script: "trap 'exit 128' TERM; while :; do sleep 0.01; done",
			phase: engine.Phase{Until: 300 * ms, Grace: 5 * time.Second}, ok: true, over: true},
		{name: "it does not end", script: "trap '' TERM; while :; do sleep 0.01; done",
			phase: engine.Phase{Until: 300 * ms,
				Grace: 200 * ms}, ok: true, over: true, signal: "SIGKILL", message: "after its phase and was killed"},
		{name: "it hangs", script: "kill -STOP $$; sleep 100",
			phase: engine.Phase{Until: 300 * ms, Grace: 5 * time.Second}, ok: true, over: true, signal: "SIGTERM"},
		{name: "it ends before", script: "exit 0", phase: engine.Phase{From: 200 * ms, Until: time.Minute}, ok: true},
		{name: "it fails before", script: "echo no luck >&2; exit 3", phase: engine.Phase{Until: time.Minute}, code: 3,
			message: "no luck"},
		{name: "it is killed by somebody else", script: "kill -KILL $$", phase: engine.Phase{Until: time.Minute},
			code: 137, signal: "SIGKILL"},
		{name: "the last has no end", script: "sleep 0.1", phase: engine.Phase{Number: 2, From: 300 * ms}, ok: true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t)
			s := f.expect("p", agent.Options{Barrier: "b", Phase: tc.phase, Offset: 3 * time.Second})
			cmd, out := f.wrap(s, "sh", "-c", tc.script)
			at := f.clock.Now()
			if err := s.Release(t.Context(), at); err != nil {
				t.Fatal(err)
			}
			end := f.done(s)
			_ = cmd.Wait()
			if end.OK() != tc.ok || end.PhaseOver != tc.over || end.Signal != tc.signal ||
				!strings.Contains(end.Message, tc.message) || cmd.ProcessState.ExitCode() != tc.code {
				t.Errorf("end %+v, the agent's exit code %d: %s", end, cmd.ProcessState.ExitCode(), out)
			}
			start := f.sink.Starts()[0]
			if want := at + op.Time(tc.phase.From); start.Intended != want || start.At+op.Time(start.Err) < want ||
				start.Phase != tc.phase.Number {
				t.Errorf("start %+v, want at %d", start, want)
			}
			if until := at + op.Time(tc.phase.Until); tc.over && end.At+op.Time(end.Err) < until {
				t.Errorf("it ended %v before its phase", time.Duration(until-end.At))
			}
		})
	}
}

// TestPhaseCancelled checks that a command that waits for its phase can be cancelled at once.
func TestPhaseCancelled(t *testing.T) {
	f := newFixture(t)
	s := f.expect("p", agent.Options{Barrier: "b", Phase: engine.Phase{From: time.Hour}})
	f.wrap(s, "sleep", "100")
	if err := s.Release(t.Context(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	before := f.clock.Now()
	if err := s.Signal(syscall.SIGTERM, time.Second); err != nil {
		t.Fatal(err)
	}
	if end := f.done(s); end.OK() || !end.Asked || end.Started || time.Duration(f.clock.Now()-before) > 5*time.Second {
		t.Errorf("end %+v after %v", end, time.Duration(f.clock.Now()-before))
	}
}

// TestPhaseStartsStopped checks that a SIGSTOP received before the phase applies from the start of the command.
func TestPhaseStartsStopped(t *testing.T) {
	f := newFixture(t)
	s := f.expect("p", agent.Options{Barrier: "b", Phase: engine.Phase{From: 300 * time.Millisecond}})
	f.wrap(s, "sh", "-c", "sleep 0.1; echo done")
	if err := s.Release(t.Context(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if err := s.Signal(syscall.SIGSTOP, 0); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Started(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
		t.Error("it went on")
	case <-time.After(time.Second):
	}
	if err := s.Signal(syscall.SIGCONT, 0); err != nil {
		t.Fatal(err)
	}
	if end := f.done(s); !end.OK() {
		t.Errorf("end %+v", end)
	}
}

// TestPhaseAfterRestart checks commands that restart before, during and after their phases.
func TestPhaseAfterRestart(t *testing.T) {
	for name, tc := range map[string]struct {
		phase   engine.Phase
		started bool
	}{
		"over":    {engine.Phase{Until: 500 * time.Millisecond}, false},
		"present": {engine.Phase{From: 500 * time.Millisecond, Until: time.Minute}, true},
		"to come": {engine.Phase{From: 1200 * time.Millisecond}, true},
		"none":    {engine.Phase{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.expect("p", agent.Options{Barrier: "b", Phase: tc.phase})
			f.wrap(s, "true")
			if _, _, err := s.Ready(t.Context()); err != nil {
				t.Fatal(err)
			}
			now := f.clock.Now()
			barrier := now - op.Time(time.Second)
			if err := s.ReleaseRestarted(t.Context(), barrier); err != nil {
				t.Fatal(err)
			}
			end, starts := f.done(s), f.sink.Starts()
			if !end.OK() || end.Started != tc.started || end.PhaseOver == tc.started ||
				(len(starts) == 1) != tc.started {
				t.Fatalf("end %+v, starts %+v", end, starts)
			}
			if !tc.started {
				return
			}
			if want := max(now, barrier+op.Time(tc.phase.From)); starts[0].Intended < want ||
				starts[0].Intended > want+op.Time(time.Second) {
				t.Errorf("start %+v, want at %d", starts[0], want)
			}
		})
	}
}

// TestPhaseProbesLater checks that the volume probe of a later phase runs only on request.
func TestPhaseProbesLater(t *testing.T) {
	f := newFixture(t)
	s := f.expect("p", agent.Options{Barrier: "b", ProbeLater: true, Phase: engine.Phase{From: 10 * time.Millisecond},
		Probes: []protocol.VolumeProbeSpec{{Volume: "v", Path: t.TempDir(), Write: true}}})
	f.wrap(s, "sleep", "100")
	if err := s.Release(t.Context(), f.clock.Now()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Started(t.Context()); err != nil || len(s.VolumeProbes()) > 0 {
		t.Fatalf("touches %+v, %v", s.VolumeProbes(), err)
	}
	if touches, err := s.ProbeVolumes(t.Context()); err != nil || len(touches) != 1 || touches[0].Failure != "" {
		t.Errorf("touches %+v, %v", touches, err)
	}
	if err := s.Signal(syscall.SIGTERM, time.Second); err != nil {
		t.Fatal(err)
	}
	f.done(s)
}

func TestInvalidPhases(t *testing.T) {
	f := newFixture(t)
	for _, o := range []agent.Options{{Phase: engine.Phase{From: 1}},
		{Barrier: "b", Phase: engine.Phase{From: 2, Until: 2}}} {
		if _, err := f.Expect(agent.ID{Instance: "p"}, o); err == nil {
			t.Errorf("%+v was accepted", o.Phase)
		}
	}
}
