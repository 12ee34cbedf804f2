package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

var agentPath string

func TestMain(m *testing.M) { os.Exit(agenttest.Main(m, &agentPath)) }

// fixture is a server and its sink.
type fixture struct {
	*agent.Server
	t     *testing.T
	clock op.Clock
	sink  *agenttest.Sink
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: op.NewClock(), sink: agenttest.NewSink()}
	var err error
	if f.Server, err = agent.Listen(t.Context(), filepath.Join(t.TempDir(), "s"), f.clock, f.sink); err != nil {
		t.Fatal(err)
	}
	f.closeAtEnd()
	return f
}

func (f *fixture) closeAtEnd() {
	f.t.Cleanup(func() {
		if err := f.Close(); err != nil {
			f.t.Errorf("close: %v", err)
		}
	})
}

func (f *fixture) expect(name string, o agent.Options) *agent.Session {
	f.t.Helper()
	s, err := f.Expect(agent.ID{Instance: name, Container: "c"}, o)
	if err != nil {
		f.t.Fatal(err)
	}
	return s
}

// wrap runs the real agent without a sandbox, as in a pod's container.
func (f *fixture) wrap(s *agent.Session, command ...string) (*exec.Cmd, *bytes.Buffer) {
	f.t.Helper()
	cmd := exec.Command(agentPath, append([]string{"wrap", "--log-dir", f.t.TempDir(), "--"}, command...)...)
	cmd.Env = append(os.Environ(), s.Env()...)
	out := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd, out
}

func (f *fixture) done(s *agent.Session) agent.End {
	f.t.Helper()
	select {
	case <-s.Done():
	case <-time.After(time.Minute):
		f.t.Fatalf("the session did not end:\n%s", f.sink.Logs())
	}
	return s.End()
}

func TestWrap(t *testing.T) {
	t.Run("unix", func(t *testing.T) { testWrap(t, newFixture(t)) })
	t.Run("tls", func(t *testing.T) { testWrap(t, newTLSFixture(t)) })
}

func testWrap(t *testing.T, f *fixture) {
	s := f.expect("p", agent.Options{Barrier: "b", Offset: 3 * time.Second})
	cmd, out := f.wrap(s, "sh", "-c", "env | grep -c CNSBENCH_AGENT; sleep 300 & exit 7")
	if _, _, err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	at := f.clock.Now() + op.Time(50*time.Millisecond)
	if err := s.Release(t.Context(), at); err != nil {
		t.Fatal(err)
	}
	started, plusMinus, err := s.Started(t.Context())
	// The start must not be early. It can be late by the time that a busy machine takes to start a process.
	if err != nil || started < at-op.Time(plusMinus) || started > at+op.Time(500*time.Millisecond) {
		t.Errorf("started %v ± %v after its instant, %v", time.Duration(started-at), time.Duration(plusMinus), err)
	}
	end := f.done(s)
	if end.ExitCode != 7 || end.Failure != nil || end.OK() || end.At < started || end.At > f.clock.Now() {
		t.Errorf("end %+v", end)
	}
	// The agent passes on the exit code and the output of its command.
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != 7 || out.String() != "0\n" {
		t.Errorf("agent: %v, output %q", err, out)
	}
}

func TestSignalsOfTheAgentAreForwarded(t *testing.T) {
	f := newFixture(t)
	s := f.expect("p", agent.Options{})
	cmd, _ := f.wrap(s, "sh", "-c", "trap 'echo got it; exit 4' USR1; echo up; while :; do sleep 0.02; done")
	agenttest.Eventually(t, "the command runs",
		func() bool { return strings.Contains(f.sink.Logs(), "up") })
	if err := cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		t.Fatal(err)
	}
	if end := f.done(s); end.ExitCode != 4 || end.Asked || !strings.Contains(end.Message, "got it") {
		t.Errorf("end %+v", end)
	}
}

// TestLostRunner checks that a command ends when the runner is lost, first by SIGTERM.
func TestLostRunner(t *testing.T) {
	for name, script := range map[string]string{
		"polite":   "trap 'echo ended > mark; exit 0' TERM; echo up; while :; do sleep 0.02; done",
		"stubborn": "trap 'echo ended > mark' TERM; echo up; while :; do sleep 0.02; done",
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			mark := filepath.Join(t.TempDir(), "mark")
			s := f.expect("p", agent.Options{Grace: 300 * time.Millisecond})
			cmd, out := f.wrap(s, "sh", "-c", strings.ReplaceAll(script, "mark", mark))
			agenttest.Eventually(t, "the command runs",
				func() bool { return strings.Contains(f.sink.Logs(), "up") })
			began := time.Now()
			if err := f.Close(); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if took := time.Since(began); took > 30*time.Second {
				t.Errorf("took %v", took)
			}
			if _, err := os.Stat(mark); err != nil {
				t.Errorf("it was not asked: %v", err)
			}
			if !strings.Contains(out.String(), "connection to the runner was lost") {
				t.Errorf("the agent said %q", out)
			}
			var e *engine.Error
			if end := s.End(); !errors.As(end.Failure, &e) || e.Code != agent.CodeLost {
				t.Errorf("end %+v", end)
			}
		})
	}
}

func TestHandshake(t *testing.T) {
	f := newFixture(t)
	mismatch := f.expect("old", agent.Options{})
	used := f.expect("used", agent.Options{})
	tests := []struct {
		name  string
		hello protocol.Message
		want  string
	}{
		{"another protocol", protocol.Message{Hello: &protocol.Hello{Magic: protocol.Magic, Proto: 99, Version: "v9",
			Token: mismatch.Token()}}, "agent version v9 has protocol 99"},
		{"unknown token", protocol.Message{Hello: &protocol.Hello{Magic: protocol.Magic, Proto: protocol.Proto,
			Token: "guess"}}, "unknown token"},
		{"token of the one before", protocol.Message{Hello: &protocol.Hello{Magic: protocol.Magic,
			Proto: protocol.Proto, Token: mismatch.Token()}}, "old/c was started a second time"},
		{"no agent", protocol.Message{Bye: &protocol.Bye{}}, "not a cnsbench agent"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			c := f.dial()
			if err := c.Write(tc.hello); err != nil {
				t.Fatal(err)
			}
			m, err := c.Read()
			if err != nil || m.Refuse == nil || !strings.Contains(m.Refuse.Reason, tc.want) {
				t.Errorf("answer %+v, %v", m.Refuse, err)
			}
			agenttest.Eventually(t, "the runner's log says it",
				func() bool { return strings.Contains(f.sink.Logs(), tc.want) })
		})
	}
	var e *engine.Error
	if _, _, err := mismatch.Ready(t.Context()); !errors.As(err, &e) || !strings.Contains(err.Error(), "protocol 99") {
		t.Errorf("session of the old agent: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := used.Ready(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a session nobody came to: %v", err)
	}
}

// TestOldRunner checks the error of an agent whose runner has another protocol version.
func TestOldRunner(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // the error is irrelevant in a test
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		conn := protocol.NewConn(c, func() int64 { return 0 })
		if _, err := conn.Read(); err == nil {
			_ = conn.Write(protocol.Message{Welcome: &protocol.Welcome{Proto: 77, Version: "v7"}})
		}
	}()
	cmd := exec.Command(agentPath, "wrap", "--runner", "unix:"+socket, "--log-dir", t.TempDir(), "--", "true")
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState.ExitCode() != 1 || !strings.Contains(string(out), "runner version v7 has protocol 77") {
		t.Errorf("%v: %s", err, out)
	}
}

func (f *fixture) dial() *protocol.Conn {
	f.t.Helper()
	c, err := net.Dial("unix", f.Socket())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	return protocol.NewConn(c, func() int64 { return int64(f.clock.Now()) + 3e9 })
}

// TestInvalidMessages checks that the runner survives invalid messages of an agent, and reports the agent as lost.
func TestInvalidMessages(t *testing.T) {
	hello := func(s *agent.Session) protocol.Message {
		return protocol.Message{Hello: &protocol.Hello{Magic: protocol.Magic, Proto: protocol.Proto, Token: s.Token()}}
	}
	tests := map[string][]protocol.Message{
		"says everything twice": {{Ready: &protocol.Stamp{}}, {Ready: &protocol.Stamp{}}, {Started: &protocol.Stamp{}}, {Started: &protocol.Stamp{}}, {GoAck: &protocol.Stamp{}}, {GoAck: &protocol.Stamp{}}, {GoAck: &protocol.Stamp{}}},
		"answers unasked": {{Pong: &protocol.Pong{Ping: 5, Received: 1 << 62}}, {Pong: &protocol.Pong{}},
			{Pong: &protocol.Pong{}}},
		"speaks as the runner": {{Welcome: &protocol.Welcome{}}, {Go: &protocol.Stamp{}}, {Bye: &protocol.Bye{}}, {}},
		"says nothing":         {},
	}
	for name, messages := range tests {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			s := f.expect("p", agent.Options{})
			c := f.dial()
			if err := c.Write(hello(s)); err != nil {
				t.Fatal(err)
			}
			for {
				m, err := c.Read()
				if err != nil {
					t.Fatal(err)
				}
				if m.Welcome != nil {
					break
				}
				if err := c.Write(protocol.Message{Pong: &protocol.Pong{Ping: m.Ping.Sent,
					Received: m.Received}}); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range messages {
				if err := c.Write(m); err != nil {
					t.Fatal(err)
				}
			}
			_ = c.Close()
			if end := f.done(s); end.Failure == nil || end.Failure.Code != agent.CodeLost {
				t.Errorf("end %+v", end)
			}
		})
	}
}

// TestInstanceSample checks that the sample of an instance is the sum of the samples of its containers.
func TestInstanceSample(t *testing.T) {
	f := newFixture(t)
	var sessions []*agent.Session
	for _, c := range []string{"a", "b"} {
		s, err := f.Expect(agent.ID{Instance: "p", Container: c}, agent.Options{Sample: 50 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		f.wrap(s, "sh", "-c", fmt.Sprintf("dd if=/dev/zero of=%s bs=1M count=4 conv=fsync 2>/dev/null; sleep 0.2",
			filepath.Join(t.TempDir(), "x")))
		sessions = append(sessions, s)
	}
	for _, s := range sessions {
		f.done(s)
	}
	samples := f.sink.Samples()
	last := samples[len(samples)-1]
	if want := int64(8 << 20); last.WriteBytes < want || last.WriteBytes > want+want/4 || last.Instance != "p" ||
		last.RSSBytes != 0 {
		t.Errorf("last sample %+v, want %d bytes written", last, want)
	}
}

func TestListen(t *testing.T) {
	f := newFixture(t)
	long := filepath.Join(t.TempDir(), strings.Repeat("x", 120))
	if _, err := agent.Listen(t.Context(), long, f.clock, f.sink); err == nil ||
		!strings.Contains(err.Error(), "shorter") {
		t.Errorf("a path that is too long: %v", err)
	}
	stale := filepath.Join(t.TempDir(), "s")
	ln, err := net.Listen("unix", stale)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = ln.Close()
	again, err := agent.Listen(t.Context(), stale, f.clock, f.sink)
	if err != nil {
		t.Fatalf("a stale socket: %v", err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Expect(agent.ID{}, agent.Options{Outputs: []string{"/a/[", "relative"}}); err == nil {
		t.Error("a bad pattern was accepted")
	}
}
