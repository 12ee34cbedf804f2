// Package servers starts real servers of object storage on loopback, for tests
// and benches: versitygw, OpenStack Swift, Keystone. hack/object-servers.sh
// installs what they are made of.
package servers

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ErrMissing is why a server cannot be started on this machine at all.
var ErrMissing = errors.New("cannot be had here")

// needs says which of the programs are missing, and what brings them.
func needs(what string, programs ...string) error {
	for _, p := range programs {
		if _, err := exec.LookPath(p); err != nil {
			return fmt.Errorf("%s %w: %s is not there: run make object-servers", what, ErrMissing, p)
		}
	}
	return nil
}

// group is the processes that make a server, with their files.
type group struct {
	dir   string
	procs []*process
}

type process struct {
	name string
	cmd  *exec.Cmd
	log  *os.File
}

// Stop kills all processes and waits for them.
func (g *group) Stop() {
	for i := len(g.procs) - 1; i >= 0; i-- {
		p := g.procs[i]
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		_ = p.cmd.Wait()
		_ = p.log.Close()
	}
	g.procs = nil
}

// Logs is the end of what each process has said.
func (g *group) Logs() string {
	var all strings.Builder
	files, _ := filepath.Glob(filepath.Join(g.dir, "*.log"))
	for _, f := range files {
		b, _ := os.ReadFile(f)
		fmt.Fprintf(&all, "%s said:\n%s\n", filepath.Base(f), b[max(0, len(b)-4000):])
	}
	return all.String()
}

// start starts a process that dies with this one and lives until Stop.
func (g *group) start(name string, env []string, program string, args ...string) error {
	log, err := os.Create(filepath.Join(g.dir, name+".log"))
	if err != nil {
		return err
	}
	c := exec.Command(program, args...) //nolint:noctx // it is ended by Stop
	c.Dir, c.Env, c.Stdout, c.Stderr = g.dir, append(os.Environ(), env...), log, log
	c.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := c.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	g.procs = append(g.procs, &process{name, c, log})
	return nil
}

// await waits until somebody listens at the address.
func (g *group) await(ctx context.Context, name, address string) error {
	var d net.Dialer
	for end := time.Now().Add(time.Minute); ; {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return c.Close()
		}
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("%s does not listen: %w\n%s", name, err, g.Logs())
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (g *group) write(name, format string, args ...any) error {
	return os.WriteFile(filepath.Join(g.dir, name), fmt.Appendf(nil, format, args...), 0o644)
}

// The ports of servers are below 32768, where Linux begins to give ports to connections and to listeners that name
// none: another process can get a port of that range between its choice and its use.
const (
	firstPort = 10_000
	lastPort  = 32_000
)

// Ports returns n free ports of loopback.
func Ports(n int) ([]int, error) {
	var free []int
	for tries := 0; len(free) < n; tries++ {
		if tries > 100*n {
			return nil, fmt.Errorf("no %d free ports between %d and %d", n, firstPort, lastPort)
		}
		port := firstPort + rand.IntN(lastPort-firstPort)
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)) //nolint:noctx // it does not block
		if err != nil {
			continue
		}
		defer l.Close() // until all are chosen
		free = append(free, port)
	}
	return free, nil
}

// stopper is a server.
type stopper interface {
	Stop()
	Logs() string
}

// ForTest starts a server that ends with the test, which is skipped, with the
// reason, where the server cannot be had.
func ForTest[S stopper](t testing.TB, start func(ctx context.Context, dir string) (S, error)) S {
	t.Helper()
	s, err := start(t.Context(), t.TempDir())
	if errors.Is(err, ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Log(s.Logs())
		}
	})
	return s
}
