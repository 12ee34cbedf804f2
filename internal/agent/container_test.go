package agent_test

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/test/agenttest"
)

// nobody is an unprivileged user.
const nobody = 65534

// TestInstall checks that the agent can copy itself, as the init container does.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	for range 2 { // twice, as after a restart of the init container
		p := agenttest.Run(t, agentPath, nil, "install", dir)
		if code := p.Exit(t, 5*time.Second); code != 0 {
			t.Fatalf("%d: %s", code, p.Output())
		}
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Fatalf("%v, %v", entries, err)
	}
	installed := filepath.Join(dir, "cnsbench-agent")
	if fi, err := os.Stat(installed); err != nil || fi.Mode() != 0o755 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
	p := agenttest.Run(t, installed, nil, "version")
	if code := p.Exit(t, 5*time.Second); code != 0 || !strings.Contains(p.Output(), "protocol") {
		t.Errorf("%d: %s", code, p.Output())
	}
	for name, args := range map[string][]string{"nowhere": {"install", dir + "/none"}, "no directory": {"install"}} {
		p := agenttest.Run(t, agentPath, nil, args...)
		if code := p.Exit(t, 5*time.Second); code == 0 || !strings.Contains(p.Output(), "install") {
			t.Errorf("%s: %d: %s", name, code, p.Output())
		}
	}
}

// TestBareContainer checks the agent as PID 1 of a container that has one program, no shell, no /tmp, no /proc, a
// read-only root and an unprivileged user.
func TestBareContainer(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("making a container needs root")
	}
	root := t.TempDir()
	for p := root; p != os.TempDir(); p = filepath.Dir(p) { // the unprivileged user must be able to enter all parents
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if p := agenttest.Run(t, agentPath, nil, "install", root); p.Exit(t, 5*time.Second) != 0 {
		t.Fatal(p.Output())
	}
	if err := os.Mkdir(root+"/dev", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mknod(root+"/dev/null", unix.S_IFCHR|0o666, int(unix.Mkdev(1, 3))); err != nil {
		t.Fatal(err)
	}
	start := func(f *fixture, s *agent.Session, args ...string) *agenttest.Process {
		p := agenttest.Agent(t, "/cnsbench-agent", s.Env(), args...)
		p.Dir = "/"
		p.SysProcAttr.Chroot = root
		p.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
		p.SysProcAttr.Cloneflags = syscall.CLONE_NEWPID | syscall.CLONE_NEWNS
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		return p
	}
	t.Run("wrap", func(t *testing.T) {
		f := newTLSFixture(t)
		s := f.expect("p", agent.Options{Outputs: []string{"/none/*"}})
		p := start(f, s, "wrap", "--", "/cnsbench-agent", "version")
		if end := f.done(s); !end.OK() {
			t.Errorf("end %+v", end)
		}
		if code := p.Exit(t, 5*time.Second); code != 0 {
			t.Errorf("exit code %d", code)
		}
		// The output is echoed (kubectl logs) and delivered completely.
		out, _ := f.sink.OutputOf("p", "c", "stdout")
		if !strings.Contains(string(out), "protocol") || p.Output() != string(out) {
			t.Errorf("delivered %q, echoed %q", out, p.Output())
		}
		for _, want := range []string{"without a file", "no samples"} {
			if strings.Count(f.sink.Logs(), want) != 1 {
				t.Errorf("not said once: %s\n%s", want, f.sink.Logs())
			}
		}
	})
	t.Run("hold", func(t *testing.T) {
		f := newTLSFixture(t)
		s := f.expect("p", agent.Options{})
		p := start(f, s, "hold")
		if _, _, err := s.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.Exit(t, 5*time.Second); code != 0 {
			t.Errorf("%d: %s", code, p.Output())
		}
	})
	t.Run("deleted while it dials", func(t *testing.T) {
		f := newTLSFixture(t)
		s := f.expect("p", agent.Options{})
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer ln.Close()
		p := start(f, s, "hold", "--runner", "tls:"+ln.Addr().String())
		if _, err := ln.Accept(); err != nil { // the agent has connected
			t.Fatal(err)
		}
		if err := p.Process.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		if code := p.Exit(t, 3*time.Second); code != 1 {
			t.Errorf("%d: %s", code, p.Output())
		}
	})
}

// TestClosedProc checks that an agent that cannot read /proc/<pid>/io of its command logs this once and samples the
// other values.
func TestClosedProc(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("being somebody else needs root")
	}
	dir := t.TempDir()
	for p := dir; p != os.TempDir(); p = filepath.Dir(p) {
		if err := os.Chmod(p, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program, err := os.ReadFile("/usr/bin/sleep")
	if err != nil {
		t.Fatal(err)
	}
	sleep := filepath.Join(dir, "sleep")
	if err := os.WriteFile(sleep, program, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(sleep, 0o755|os.ModeSetuid); err != nil { // setuid root
		t.Fatal(err)
	}
	f := newTLSFixture(t)
	s := f.expect("p", agent.Options{Sample: 50 * time.Millisecond})
	p := agenttest.Agent(t, agentPath, s.Env(), "wrap", "--", sleep, "0.5")
	p.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	if end := f.done(s); !end.OK() {
		t.Errorf("end %+v: %s", end, p.Output())
	}
	if n := strings.Count(f.sink.Logs(), "samples: "); n != 1 {
		t.Errorf("said %d times:\n%s", n, f.sink.Logs())
	}
	rss := int64(0)
	for _, sample := range f.sink.Samples() {
		rss = max(rss, sample.RSSBytes)
	}
	if rss == 0 {
		t.Error("the rest is not sampled either")
	}
}

// TestDirectOutput checks that a large output is sent without log files, at the speed of the runner.
func TestDirectOutput(t *testing.T) {
	f := newTLSFixture(t)
	f.sink.OutputDelay = time.Millisecond
	s := f.expect("p", agent.Options{})
	const size = 5 << 20
	p := agenttest.Run(t, agentPath, s.Env(), "wrap", "--log-dir", "none", "--", "sh", "-c",
		"head -c 5242880 /dev/zero | tr '\\0' x; echo end >&2")
	if end := f.done(s); !end.OK() {
		t.Errorf("end %+v", end)
	}
	out, _ := f.sink.OutputOf("p", "c", "stdout")
	errs, _ := f.sink.OutputOf("p", "c", "stderr")
	if len(out) != size || strings.Trim(string(out), "x") != "" || string(errs) != "end\n" {
		t.Errorf("%d bytes of stdout, stderr %q", len(out), errs)
	}
	if code := p.Exit(t, 5*time.Second); code != 0 || len(p.Output()) != size+len("end\n") {
		t.Errorf("exit code %d, %d bytes echoed", code, len(p.Output()))
	}
}
