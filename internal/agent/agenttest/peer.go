package agenttest

import (
	"bytes"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/agent/wrap"
)

// Process is an agent, run as the main process of a container would be.
type Process struct {
	*exec.Cmd
	out buffer
}

// buffer is what a process has said so far.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// Agent prepares the agent with env (of Session.Env) and a PATH, and nothing
// else of our environment; Start it. It ends with the test.
func Agent(t testing.TB, agent string, env []string, args ...string) *Process {
	t.Helper()
	p := &Process{Cmd: exec.Command(agent, args...)} //nolint:noctx // it ends by the runner or the cleanup below
	p.Env = append([]string{"PATH=" + wrap.DefaultPath, "TMPDIR=" + scratch(t)}, env...)
	p.Stdout, p.Stderr = &p.out, &p.out
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	t.Cleanup(func() {
		if p.Process != nil {
			_ = p.Process.Kill()
			_ = p.Wait()
		}
	})
	return p
}

// scratch is a directory for what an agent leaves, as containers do with their
// /tmp; also for one of another user.
func scratch(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "agent-")
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// Run is Agent, started.
func Run(t testing.TB, agent string, env []string, args ...string) *Process {
	t.Helper()
	p := Agent(t, agent, env, args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Output is its stdout and stderr so far.
func (p *Process) Output() string {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.buf.String()
}

// Exit waits for its end and returns its exit code.
func (p *Process) Exit(t testing.TB, within time.Duration) int {
	t.Helper()
	late := time.AfterFunc(within, func() { _ = p.Process.Kill() })
	_ = p.Wait()
	if !late.Stop() {
		t.Fatalf("the agent has not ended in %v: %s", within, p.Output())
	}
	return p.ProcessState.ExitCode()
}

// Value is the value of a variable in env.
func Value(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// Connect is an agent without a process: it connects with what env (of
// Session.Env) says and is welcomed. What it says then is the test's; pings
// are to be answered (Pong). now is its clock.
func Connect(t testing.TB, env []string, now func() int64) (*protocol.Conn, *protocol.Welcome, error) {
	t.Helper()
	l, err := transport.Dial(t.Context(), Value(env, protocol.EnvRunner), Value(env, protocol.EnvPin), 0)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = l.Close() })
	conn := protocol.NewConn(l, now)
	welcome, err := wrap.Handshake(conn, protocol.Hello{Token: Value(env, protocol.EnvToken), Began: now(), Attempts: l.Attempts})
	return conn, welcome, err
}

// Cable is a way to another side that can be slow, and cut: then nothing is
// closed and nothing arrives any more.
type Cable struct {
	ln          net.Listener
	to          string
	there, back time.Duration
	cut         chan struct{}
	once        sync.Once
	wg          sync.WaitGroup

	mu   sync.Mutex
	open []net.Conn
}

// NewCable leads to address (HOST:PORT, or of Server.Address), each piece of data taking
// the times given there and back. It ends with the test.
func NewCable(t testing.TB, address string, there, back time.Duration) *Cable {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's
	if err != nil {
		t.Fatal(err)
	}
	c := &Cable{ln: ln, to: strings.TrimPrefix(address, transport.TLS+":"), there: there, back: back, cut: make(chan struct{})}
	c.wg.Go(c.accept)
	t.Cleanup(c.close)
	return c
}

// Address is our end of it, HOST:PORT.
func (c *Cable) Address() string { return c.ln.Addr().String() }

// Env is env with the cable's end in place of the runner's address.
func (c *Cable) Env(env []string) []string {
	var all []string
	for _, e := range env {
		if !strings.HasPrefix(e, protocol.EnvRunner+"=") {
			all = append(all, e)
		}
	}
	return append(all, fmt.Sprintf("%s=%s:%s", protocol.EnvRunner, transport.TLS, c.Address()))
}

// Cut cuts it.
func (c *Cable) Cut() { c.once.Do(func() { close(c.cut) }) }

func (c *Cable) accept() {
	for {
		in, err := c.ln.Accept()
		if err != nil {
			return
		}
		out, err := net.Dial("tcp", c.to) //nolint:noctx // a test's
		if err != nil {
			_ = in.Close()
			continue
		}
		c.mu.Lock()
		c.open = append(c.open, in, out)
		c.mu.Unlock()
		c.wg.Go(func() { c.carry(out, in, c.there) })
		c.wg.Go(func() { c.carry(in, out, c.back) })
	}
}

// carry takes data from one end to the other, and its end.
func (c *Cable) carry(to, from net.Conn, delay time.Duration) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		time.Sleep(delay)
		select {
		case <-c.cut:
			if err != nil {
				return
			}
			continue
		default:
		}
		if n > 0 {
			_, _ = to.Write(buf[:n])
		}
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				_ = to.Close()
			}
			return
		}
	}
}

func (c *Cable) close() {
	_ = c.ln.Close()
	c.mu.Lock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.wg.Wait()
}
