package agent_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

// TestHold checks every way in which hold ends.
func TestHold(t *testing.T) {
	tests := []struct {
		name  string
		end   func(f *fixture, s *agent.Session, p *agenttest.Process) error
		code  int
		asked bool
	}{
		{"told by the runner", func(_ *fixture, s *agent.Session,
			_ *agenttest.Process) error {
			return s.Signal(syscall.SIGTERM, 0)
		}, 0, true},
		{"killed by the runner", func(_ *fixture, s *agent.Session,
			_ *agenttest.Process) error {
			return s.Signal(syscall.SIGKILL, 0)
		}, 0, true},
		{"pod deleted", func(_ *fixture, _ *agent.Session, p *agenttest.Process) error {
			return p.Process.Signal(syscall.SIGTERM)
		}, 0, true},
		{"runner lost", func(f *fixture, _ *agent.Session, _ *agenttest.Process) error { return f.Close() }, 1, false},
		{"not meant to end it, then deleted", func(_ *fixture, _ *agent.Session, p *agenttest.Process) error {
			return errors.Join(p.Process.Signal(syscall.SIGHUP), p.Process.Signal(syscall.SIGTERM))
		}, 0, true},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			f := newTLSFixture(t)
			dir := t.TempDir()
			s := f.expect("p", agent.Options{Offset: -3 * time.Second,
				Probes: []protocol.VolumeProbeSpec{{Volume: "v", Path: dir, Write: true, Read: true}}})
			before := f.clock.Now()
			p := agenttest.Run(t, agentPath, s.Env(), "hold")
			at, plusMinus, err := s.Ready(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			touches := s.VolumeProbes()
			if len(touches) != 2 || !touches[0].Write || touches[1].Write || touches[0].Volume != "v" ||
				touches[0].Failure+touches[1].Failure != "" {
				t.Fatalf("touches %+v", touches)
			}
			if first := touches[0]; first.Began < before-op.Time(plusMinus) || first.At <= first.Began ||
				first.At > at || first.Err <= 0 {
				t.Errorf("touch %+v, ready %v", first, at)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
			if err := tc.end(f, s, p); err != nil {
				t.Fatal(err)
			}
			if code := p.Exit(t, 5*time.Second); code != tc.code {
				t.Errorf("exit code %d: %s", code, p.Output())
			}
			if end := f.done(s); end.Asked != tc.asked || end.OK() != tc.asked {
				t.Errorf("end %+v", end)
			}
			if len(f.sink.Starts()) > 0 {
				t.Error("a holder counts as a workload")
			}
		})
	}
}

// TestHoldWithLostConnection checks that a pod ends promptly when its runner is unreachable.
func TestHoldWithLostConnection(t *testing.T) {
	f := newTLSFixture(t)
	s := f.expect("p", agent.Options{})
	cable := agenttest.NewProxy(t, f.Address(), 0, 0)
	p := agenttest.Run(t, agentPath, cable.Env(s.Env()), "hold")
	if _, _, err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	cable.Cut()
	if err := p.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := p.Exit(t, 4*time.Second); code != 1 {
		t.Errorf("exit code %d: %s", code, p.Output())
	}
}

// TestFailedVolumeProbe checks that a failed volume probe is reported and that the command still runs.
func TestFailedVolumeProbe(t *testing.T) {
	f := newTLSFixture(t)
	absent := filepath.Join(t.TempDir(), "absent")
	s := f.expect("p", agent.Options{Probes: []protocol.VolumeProbeSpec{
		{Volume: "ro", Path: "/sys", Write: true},
		{Volume: "absent", Path: absent, Read: true},
	}})
	p := agenttest.Run(t, agentPath, s.Env(), "wrap", "--", "true")
	if end := f.done(s); !end.OK() {
		t.Errorf("end %+v: %s", end, p.Output())
	}
	got := map[string]agent.VolumeProbe{}
	for _, touch := range s.VolumeProbes() {
		got[touch.Volume] = touch
	}
	if touch := got["absent"]; touch.Errno != syscall.ENOENT || !strings.Contains(touch.Failure, absent) {
		t.Errorf("absent: %+v", touch)
	}
	if touch := got["ro"]; touch.Errno == 0 || touch.Failure == "" || !touch.Write {
		t.Errorf("read-only: %+v", touch)
	}
	for _, bad := range []protocol.VolumeProbeSpec{{Volume: "v", Path: "relative"}, {Path: "/p"},
		{Volume: "v", Path: "/dev/x", Device: true, Write: true}} {
		if _, err := f.Expect(agent.ID{}, agent.Options{Probes: []protocol.VolumeProbeSpec{bad}}); err == nil {
			t.Errorf("%+v was accepted", bad)
		}
	}
}
