package agent_test

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
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

// newTLSFixture returns a server on TCP with TLS, as for pods.
func newTLSFixture(t *testing.T) *fixture {
	t.Helper()
	return newSilenceFixture(t, transport.Silence)
}

// newSilenceFixture returns a newTLSFixture server with another silence limit.
func newSilenceFixture(t *testing.T, silence time.Duration) *fixture {
	t.Helper()
	f := &fixture{t: t, clock: op.NewClock(), sink: agenttest.NewSink()}
	var err error
	if f.Server, err = agent.ListenTLSFor(t.Context(), "127.0.0.1:0", "", f.clock, f.sink, silence); err != nil {
		t.Fatal(err)
	}
	f.closeAtEnd()
	return f
}

func TestListenTLS(t *testing.T) {
	clock, sink := op.NewClock(), agenttest.NewSink()
	tests := []struct {
		addr, advertise string
		want            string // address without the port
		err             string
	}{
		{":0", "10.99.0.1", "tls:10.99.0.1:", ""},
		{":0", "runner.bench.svc", "tls:runner.bench.svc:", ""},
		{"127.0.0.1:0", "", "tls:127.0.0.1:", ""},
		{":0", "fd00::1", "tls:[fd00::1]:", ""},
		{":0", "", "", "set the advertised address"},
		{"nowhere.invalid:0", "", "", "listen for agents"},
	}
	for _, tc := range tests {
		s, err := agent.ListenTLS(t.Context(), tc.addr, tc.advertise, clock, sink)
		if tc.err != "" {
			if err == nil || !strings.Contains(err.Error(), tc.err) {
				t.Errorf("%s, %s: error %v, want %q", tc.addr, tc.advertise, err, tc.err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Address(); !strings.HasPrefix(got, tc.want) || strings.HasSuffix(got, ":0") || len(s.Pin()) != 64 {
			t.Errorf("%s, %s: address %s, pin %s", tc.addr, tc.advertise, got, s.Pin())
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestSecretEnv checks that the public environment does not contain the token.
func TestSecretEnv(t *testing.T) {
	f := newTLSFixture(t)
	s := f.expect("p", agent.Options{})
	public, secret := s.SecretEnv()
	if strings.Contains(strings.Join(public, " "), s.Token()) || len(secret) != 1 ||
		secret[0] != protocol.EnvToken+"="+s.Token() {
		t.Errorf("public %v, secret %v", public, secret)
	}
	if agenttest.Value(s.Env(), protocol.EnvPin) != f.Pin() ||
		agenttest.Value(s.Env(), protocol.EnvRunner) != f.Address() {
		t.Errorf("all %v", s.Env())
	}
}

// TestClocksOverTLS checks the timestamps of an agent with a shifted clock, on a connection that is slow in one
// direction.
func TestClocksOverTLS(t *testing.T) {
	const slow = 20 * time.Millisecond
	for name, tc := range map[string]struct{ offset, there, back time.Duration }{
		"direct":         {3 * time.Second, 0, 0},
		"behind":         {-3 * time.Second, 0, 0},
		"slow there":     {3 * time.Second, slow, 0},
		"slow back":      {-3 * time.Second, 0, slow},
		"hours in front": {5 * time.Hour, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTLSFixture(t)
			s := f.expect("p", agent.Options{Probes: []protocol.VolumeProbeSpec{{Volume: "v", Path: "/v", Read: true}}})
			env := s.Env()
			if tc.there+tc.back > 0 {
				env = agenttest.NewProxy(t, f.Address(), tc.there, tc.back).Env(env)
			}
			clock := clock.New(tc.offset)
			ahead := difference(clock, f.clock)
			conn, welcome, err := agenttest.Connect(t, env, clock.Now)
			if err != nil {
				t.Fatal(err)
			}
			if len(welcome.Probes) != 1 {
				t.Fatalf("welcome %+v", welcome)
			}
			touched, ready := clock.Now(), clock.Now()+1e6
			for _, m := range []protocol.Message{{VolumeProbe: &protocol.VolumeProbe{Volume: "v", Began: touched - 1e6,
				At: touched}}, {Ready: &protocol.Stamp{At: ready}}} {
				if err := conn.Write(m); err != nil {
					t.Fatal(err)
				}
			}
			at, plusMinus, err := s.Ready(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			const reading = 5_000 // error of difference, in nanoseconds
			check := func(what string, got op.Time, theirs, plusMinus int64) {
				off := int64(got) - (theirs - ahead)
				if max(off, -off) > plusMinus+reading || plusMinus <= 0 || plusMinus > int64(slow) {
					t.Errorf("%s: off by %v, stated ± %v", what, time.Duration(off), time.Duration(plusMinus))
				}
			}
			check("ready", at, ready, plusMinus)
			touches := s.VolumeProbes()
			if len(touches) != 1 || touches[0].At-touches[0].Began != 1e6 {
				t.Fatalf("touches %+v", touches)
			}
			check("touch", touches[0].At, touched, touches[0].Err)
			if a, ok := s.Arrival(); !ok || a.Attempts != 1 || a.Began > at || a.Began < 0 {
				t.Errorf("arrival %+v", a)
			}
		})
	}
}

// difference returns the smallest measured difference between the agent's clock and the run's clock, in nanoseconds.
func difference(theirs clock.Clock, ours op.Clock) int64 {
	best, ahead := op.Time(1<<62), int64(0)
	for range 1000 {
		before, there := ours.Now(), theirs.Now()
		if after := ours.Now(); after-before < best {
			best, ahead = after-before, there-int64(before+(after-before)/2)
		}
	}
	return ahead
}

// TestLostNode checks that both sides detect in time that the connection is cut without being closed.
func TestLostNode(t *testing.T) {
	const silence = 3 * time.Second // pings are sent once a second
	f := newSilenceFixture(t, silence)
	s := f.expect("p", agent.Options{Grace: time.Second})
	cable := agenttest.NewProxy(t, f.Address(), 0, 0)
	p := agenttest.Run(t, agentPath, cable.Env(s.Env()), "wrap", "--log-dir", "none", "--", "sleep", "300")
	if _, _, err := s.Started(t.Context()); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.Done():
		t.Fatalf("lost although nothing was cut: %+v", s.End())
	case <-time.After(silence + 500*time.Millisecond):
	}
	cable.Cut()
	cut := time.Now()
	end := f.done(s)
	if took := time.Since(cut); took > 10*silence {
		t.Errorf("noticed after %v", took)
	}
	if end.Failure == nil || end.Failure.Code != agent.CodeLost || !errors.Is(end.Failure, transport.ErrSilent) ||
		!end.Started {
		t.Errorf("end %+v", end)
	}
	if code := p.Exit(t, 5*time.Second); code != 1 ||
		!strings.Contains(p.Output(), "connection to the runner was lost: the peer stopped responding") {
		t.Errorf("agent: %d, %s", code, p.Output())
	}
}

// TestHostilePeers checks that unauthenticated peers cannot fail the run, block agents, or fill the log.
func TestHostilePeers(t *testing.T) {
	f := newTLSFixture(t)
	s := f.expect("p", agent.Options{})
	target := strings.TrimPrefix(f.Address(), "tls:")
	dial := func() net.Conn {
		c, err := net.Dial("tcp", target)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	for range 40 { // invalid data
		c := dial()
		_, _ = c.Write([]byte("GET / HTTP/1.1\r\nHost: x\r\n\r\n"))
	}
	secure := tls.Client(dial(), &tls.Config{InsecureSkipVerify: true})
	// one megabyte each, sent before a token
	if _, err := secure.Write([]byte{0, 0x0f, 0xff, 0xff, 0, 0x0f, 0xff, 0xff, '{'}); err != nil {
		t.Fatal(err)
	}
	if err := secure.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := secure.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a frame too long for a hello: %v", err)
	}
	if old, err := tls.Dial("tcp", target, &tls.Config{InsecureSkipVerify: true,
		MaxVersion: tls.VersionTLS12}); err == nil {
		_ = old.Close()
		t.Error("TLS 1.2 was accepted")
	}
	silent := make([]net.Conn, agent.MaxUnauthenticated+10)
	for i := range silent {
		silent[i] = dial()
	}
	env := append([]string{}, s.Env()...)
	for i := range env { // first the token of another run, then the right one
		if strings.HasPrefix(env[i], protocol.EnvToken) {
			env[i] = protocol.EnvToken + "=guess"
		}
	}
	if _, _, err := agenttest.Connect(t, env, clock.New(0).Now); err == nil ||
		!strings.Contains(err.Error(), "unknown token") {
		t.Errorf("a guessed token: %v", err)
	}
	if _, _, err := agenttest.Connect(t, s.Env(), clock.New(0).Now); err != nil {
		t.Errorf("the agent was kept out: %v", err)
	}
	_ = silent[0].SetReadDeadline(time.Now().Add(30 * time.Second))
	if _, err := silent[0].Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the oldest silent connection is still open: %v", err)
	}
	if n := strings.Count(f.sink.Logs(), "\n"); n > 25 || n < 5 {
		t.Errorf("%d lines were logged:\n%s", n, f.sink.Logs())
	}
	if failures := f.sink.Failures(); len(failures) > 0 {
		t.Errorf("the run failed: %v", failures)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	if !strings.Contains(f.sink.Logs(), "suppressed") {
		t.Error("the log does not mention the suppressed lines")
	}
}

// TestWrongRunner checks that an agent accepts only its own runner.
func TestWrongRunner(t *testing.T) {
	f, other := newTLSFixture(t), newTLSFixture(t)
	s := f.expect("p", agent.Options{})
	env := []string{protocol.EnvRunner + "=" + other.Address(), protocol.EnvPin + "=" + f.Pin(),
		protocol.EnvToken + "=" + s.Token()}
	p := agenttest.Run(t, agentPath, env, "wrap", "--", "true")
	if code := p.Exit(t, 5*time.Second); code != 1 || !strings.Contains(p.Output(), "another run's runner") {
		t.Errorf("%d: %s", code, p.Output())
	}
	if s.Connected() {
		t.Error("it was welcomed")
	}
}

// TestDialRetries checks that an agent retries until the runner is reachable, reports its attempts, and gives up in
// time.
func TestDialRetries(t *testing.T) {
	f := newTLSFixture(t)
	s := f.expect("p", agent.Options{})
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := ln.Addr().String()
	_ = ln.Close() // connections are refused from here on
	env := []string{protocol.EnvRunner + "=tls:" + address, protocol.EnvPin + "=" + f.Pin(),
		protocol.EnvToken + "=" + s.Token()}
	p := agenttest.Run(t, agentPath, env, "hold", "--dial-for", "300ms")
	if code := p.Exit(t, 5*time.Second); code != 1 || !strings.Contains(p.Output(), "connection refused") ||
		!strings.Contains(p.Output(), "attempts: ") {
		t.Errorf("%d: %s", code, p.Output())
	}
	if ln, err = net.Listen("tcp", address); err != nil {
		t.Skipf("another process took the port: %v", err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	p = agenttest.Run(t, agentPath, env, "hold")
	for range 3 { // failed attempts
		c, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		_ = c.Close()
	}
	go forward(ln, strings.TrimPrefix(f.Address(), "tls:"))
	if _, _, err := s.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	if a, _ := s.Arrival(); a.Attempts < 2 || a.Dialing < 200*time.Millisecond ||
		!strings.Contains(f.sink.Logs(), "reached the runner at attempt") {
		t.Errorf("arrival %+v\n%s", a, f.sink.Logs())
	}
	if err := s.Signal(syscall.SIGTERM, 0); err != nil {
		t.Fatal(err)
	}
	if code := p.Exit(t, 5*time.Second); code != 0 {
		t.Errorf("%d: %s", code, p.Output())
	}
}

// forward copies the first connection to target.
func forward(ln net.Listener, target string) {
	in, err := ln.Accept()
	if err != nil {
		return
	}
	out, err := net.Dial("tcp", target)
	if err != nil {
		return
	}
	go func() { defer in.Close(); _, _ = out.(*net.TCPConn).WriteTo(in) }()
	defer out.Close()
	_, _ = in.(*net.TCPConn).WriteTo(out)
}

// TestSecondStart checks that a container that the kubelet restarted is rejected.
func TestSecondStart(t *testing.T) {
	f := newTLSFixture(t)
	s := f.expect("p", agent.Options{})
	if code := agenttest.Run(t, agentPath, s.Env(), "wrap", "--", "false").Exit(t, 5*time.Second); code != 1 {
		t.Errorf("exit code %d", code)
	}
	if end := f.done(s); end.ExitCode != 1 || !end.Started {
		t.Errorf("end %+v", end)
	}
	again := agenttest.Run(t, agentPath, s.Env(), "wrap", "--", "false")
	const want = "container p/c was started a second time"
	if code := again.Exit(t, 5*time.Second); code != 1 || !strings.Contains(again.Output(), want) {
		t.Errorf("%d: %s", code, again.Output())
	}
	agenttest.Eventually(t, "the runner's log says it",
		func() bool { return strings.Contains(f.sink.Logs(), want) })
	f.Forget("p")
	later := agenttest.Run(t, agentPath, s.Env(), "wrap", "--", "false")
	if code := later.Exit(t, 5*time.Second); code != 1 || !strings.Contains(later.Output(), "no longer expected") {
		t.Errorf("%d: %s", code, later.Output())
	}
}

// TestSlowHello checks agents that send their hello late. Over TLS they are disconnected. On the unix socket they are
// accepted, because an agent sets up its mounts first.
func TestSlowHello(t *testing.T) {
	const within = 50 * time.Millisecond
	for name, tt := range map[string]struct {
		fixture func(*testing.T) *fixture
		kept    bool
	}{"socket": {newFixture, true}, "TLS": {newTLSFixture, false}} {
		t.Run(name, func(t *testing.T) {
			f := tt.fixture(t)
			f.SetHelloWithin(within)
			s := f.expect("p", agent.Options{})
			l, err := transport.Dial(t.Context(), f.Address(), f.Pin(), 0)
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			if l.SetSilence(time.Minute); tt.kept {
				l.SetSilence(4 * within)
			}
			if _, err := l.Read(make([]byte, 1)); errors.Is(err, transport.ErrSilent) != tt.kept {
				t.Fatalf("read before the hello: %v", err)
			}
			l.SetSilence(time.Minute)
			_, err = wrap.Handshake(protocol.NewConn(l, clock.New(0).Now), protocol.Hello{Token: s.Token()})
			if tt.kept && err != nil || !tt.kept && !errors.Is(err, wrap.ErrUnanswered) {
				t.Errorf("kept %v, want %v", err, tt.kept)
			}
		})
	}
}

// TestSlowWelcome checks an agent of an overloaded runner, whose clock exchange takes longer than a hello may take: its
// token is spent, so it cannot dial again. One that has no answer to its hello can.
func TestSlowWelcome(t *testing.T) {
	const within = 50 * time.Millisecond
	f := newTLSFixture(t)
	f.SetHelloWithin(within)
	s := f.expect("p", agent.Options{})
	var conn *protocol.Conn
	var ping protocol.Message
	agenttest.Eventually(t, "the runner accepts the hello", func() bool {
		l, err := transport.Dial(t.Context(), f.Address(), f.Pin(), 0)
		if err != nil {
			return false
		}
		t.Cleanup(func() { _ = l.Close() })
		conn = protocol.NewConn(l, clock.New(0).Now)
		err = conn.Write(protocol.Message{Hello: &protocol.Hello{Magic: protocol.Magic, Proto: protocol.Proto,
			Token: s.Token()}})
		if err == nil {
			ping, err = conn.Read()
		}
		return err == nil
	})
	time.Sleep(2 * within) // the time of a hello passes
	for m := ping; m.Welcome == nil; {
		err := conn.Write(protocol.Message{Pong: &protocol.Pong{Ping: m.Ping.Sent, Received: m.Received}})
		if err == nil {
			m, err = conn.Read()
		}
		if err != nil || m.Ping == nil && m.Welcome == nil {
			t.Fatalf("%+v, %v: want a welcome", m, err)
		}
	}
}

// TestWallClock checks that the runner knows the wall clock of another machine, and takes its own for its own.
func TestWallClock(t *testing.T) {
	const ahead = int64(time.Hour)
	for name, other := range map[string]bool{machine.ID(): false, "another": true} {
		f := newTLSFixture(t)
		s := f.expect("p", agent.Options{})
		l, err := transport.Dial(t.Context(), f.Address(), f.Pin(), 0)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		theirs := clock.New(0)
		conn := protocol.NewConn(l, theirs.Now)
		if _, err := wrap.Handshake(conn, protocol.Hello{Token: s.Token(), Machine: name, Began: theirs.Began(),
			BeganWall: theirs.BeganWall() + ahead}); err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(protocol.Message{Started: &protocol.Stamp{At: theirs.Now()}}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := s.Started(t.Context()); err != nil {
			t.Fatal(err)
		}
		w := f.sink.Starts()[0].Wall
		if (w != nil) != other {
			t.Fatalf("machine %s: %+v", name, w)
		}
		const step = int64(100 * time.Millisecond) // of the machine's wall clock meanwhile, at most
		if other && (w.AheadNanos-ahead > w.ErrNanos+step || ahead-w.AheadNanos > w.ErrNanos+step) {
			t.Errorf("%v ahead ± %v, want %v", time.Duration(w.AheadNanos), time.Duration(w.ErrNanos), time.Duration(ahead))
		}
	}
}

// TestDialsAgain checks that an agent reconnects if the connection is lost twice between the handshake and the hello.
func TestDialsAgain(t *testing.T) {
	f := newTLSFixture(t)
	s := f.expect("p", agent.Options{})
	line, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer line.Close() // ends the accepting goroutine
	go func() {
		for n := 1; ; n++ {
			in, err := line.Accept()
			if err != nil {
				return
			}
			out, err := net.Dial("tcp", strings.TrimPrefix(f.Address(), transport.TLS+":"))
			if err != nil {
				_ = in.Close()
				return
			}
			go func() {
				defer in.Close()
				defer out.Close()
				if n > 2 {
					_, _ = io.Copy(out, in)
					return
				}
				buf := make([]byte, 1<<14) // the first flight of the client's handshake; the second one is lost
				k, _ := in.Read(buf)
				_, _ = out.Write(buf[:k])
				_, _ = in.Read(buf)
			}()
			go func() { _, _ = io.Copy(in, out) }()
		}
	}()
	env := append(s.Env(), protocol.EnvRunner+"="+transport.TLS+":"+line.Addr().String())
	p := agenttest.Run(t, agentPath, env, "wrap", "--", "true")
	if end := f.done(s); !end.OK() {
		t.Errorf("end %+v\n%s", end, p.Output())
	}
	if a, _ := s.Arrival(); a.Attempts != 3 {
		t.Errorf("it came at attempt %d, want 3", a.Attempts)
	}
}
