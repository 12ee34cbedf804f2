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

// Process is an agent, run like the main process of a container.
type Process struct {
	*exec.Cmd
	out buffer
}

// buffer is a bytes.Buffer for concurrent use.
type buffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

// Agent prepares the agent with env (of Session.Env) and a PATH as its whole environment; the caller starts
// it. It ends with the test.
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

// scratch returns a temporary directory that other users can write to.
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

// Run starts an Agent.
func Run(t testing.TB, agent string, env []string, args ...string) *Process {
	t.Helper()
	p := Agent(t, agent, env, args...)
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	return p
}

// Output returns its stdout and stderr so far.
func (p *Process) Output() string {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return p.out.buf.String()
}

// Exit waits for the process and returns its exit code.
func (p *Process) Exit(t testing.TB, within time.Duration) int {
	t.Helper()
	late := time.AfterFunc(within, func() { _ = p.Process.Kill() })
	_ = p.Wait()
	if !late.Stop() {
		t.Fatalf("the agent has not ended in %v: %s", within, p.Output())
	}
	return p.ProcessState.ExitCode()
}

// Value returns the value of a variable in env.
func Value(env []string, name string) string {
	for _, e := range env {
		if value, ok := strings.CutPrefix(e, name+"="); ok {
			return value
		}
	}
	return ""
}

// Connect connects as an agent without a process, with env of Session.Env. The test sends its messages and
// must answer pings. now is its clock.
func Connect(t testing.TB, env []string, now func() int64) (*protocol.Conn, *protocol.Welcome, error) {
	t.Helper()
	l, err := transport.Dial(t.Context(), Value(env, protocol.EnvRunner), Value(env, protocol.EnvPin), 0)
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { _ = l.Close() })
	conn := protocol.NewConn(l, now)
	welcome, err := wrap.Handshake(conn, protocol.Hello{Token: Value(env, protocol.EnvToken), Began: now(),
		Attempts: l.Attempts})
	return conn, welcome, err
}

// Proxy is a TCP proxy that delays data and can be cut: then no connection is closed and nothing arrives any
// more.
type Proxy struct {
	ln                  net.Listener
	to                  string
	delayOut, delayBack time.Duration
	cut                 chan struct{}
	once                sync.Once
	wg                  sync.WaitGroup

	mu   sync.Mutex
	open []net.Conn
}

// NewProxy returns a proxy to address (HOST:PORT, or of Server.Address) that delays each read by the given
// times per direction. It ends with the test.
func NewProxy(t testing.TB, address string, there, back time.Duration) *Proxy {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test's
	if err != nil {
		t.Fatal(err)
	}
	c := &Proxy{ln: ln, to: strings.TrimPrefix(address, transport.TLS+":"), delayOut: there, delayBack: back,
		cut: make(chan struct{})}
	c.wg.Go(c.accept)
	t.Cleanup(c.close)
	return c
}

// Address returns the proxy's address, HOST:PORT.
func (c *Proxy) Address() string { return c.ln.Addr().String() }

// Env returns env with the proxy in place of the runner's address.
func (c *Proxy) Env(env []string) []string {
	var all []string
	for _, e := range env {
		if !strings.HasPrefix(e, protocol.EnvRunner+"=") {
			all = append(all, e)
		}
	}
	return append(all, fmt.Sprintf("%s=%s:%s", protocol.EnvRunner, transport.TLS, c.Address()))
}

// Cut stops all data.
func (c *Proxy) Cut() { c.once.Do(func() { close(c.cut) }) }

func (c *Proxy) accept() {
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
		c.wg.Go(func() { c.copy(out, in, c.delayOut) })
		c.wg.Go(func() { c.copy(in, out, c.delayBack) })
	}
}

// copy copies data, and its end, in one direction.
func (c *Proxy) copy(to, from net.Conn, delay time.Duration) {
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

func (c *Proxy) close() {
	_ = c.ln.Close()
	c.mu.Lock()
	for _, conn := range c.open {
		_ = conn.Close()
	}
	c.mu.Unlock()
	c.wg.Wait()
}
