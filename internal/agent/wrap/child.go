package wrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// DefaultPath is where programs are looked for when the command's environment
// has no PATH; as container runtimes have it.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// LookPath finds the command's program in the PATH of its environment and the
// file system that the caller sees.
func LookPath(cmd Command) (string, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return "", errors.New("there is no command to run")
	}
	name, path := cmd.Args[0], DefaultPath
	for _, e := range cmd.Env {
		if value, ok := strings.CutPrefix(e, "PATH="); ok {
			path = value
		}
	}
	if !strings.Contains(name, "/") {
		for _, dir := range filepath.SplitList(path) {
			if p := filepath.Join(dir, name); runnable(p) == nil {
				return p, nil
			}
		}
		return "", fmt.Errorf("there is no program %q in %s", name, path)
	}
	if !filepath.IsAbs(name) {
		name = filepath.Join("/", cmd.Dir, name)
	}
	return name, runnable(name)
}

// runnable says why p cannot be run.
func runnable(p string) error {
	if fi, err := os.Stat(p); err != nil || fi.IsDir() {
		return fmt.Errorf("there is no program %s", p)
	}
	if unix.Access(p, unix.X_OK) != nil {
		return fmt.Errorf("%s is not executable", p)
	}
	return nil
}

// child is the command's process and all that it leaves behind.
type child struct {
	pid  int
	tree *tree

	mu     sync.Mutex
	killed bool // by us
	asked  bool // any end that follows was asked for
	over   bool // its phase is: it was told to end
	gone   bool // reaped: its pid means nothing any more
}

// start runs the program with its output going to the logs, in a process group of
// its own.
func start(program string, cmd Command, logs *Logs, t *tree, with *company) (*child, error) {
	// Orphans come to us also where we are not PID 1. Nothing depends on it there.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("stdin of the command: %w", err)
	}
	defer null.Close() // read only
	dir := cmd.Dir
	if dir == "" {
		dir = "/"
	}
	pid, err := syscall.ForkExec(program, cmd.Args, &syscall.ProcAttr{
		Dir: dir, Env: append(slices.Clone(cmd.Env), with.environ()...),
		Files: append([]uintptr{null.Fd(), logs.ends[0].Fd(), logs.ends[1].Fd()}, with.files()...),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: %w", program, dir, err)
	}
	t.Watch(pid)
	return &child{pid: pid, tree: t}, nil
}

// Signal sends sig to the command, as a container runtime does.
func (c *child) Signal(sig unix.Signal) {
	if sig == unix.SIGKILL {
		c.Kill()
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if sig == unix.SIGTERM || sig == unix.SIGINT {
		c.asked = true
	}
	if c.gone {
		return
	}
	pid := c.pid
	if sig == unix.SIGSTOP || sig == unix.SIGCONT {
		pid = -pid // its whole group: nobody passes these on
	}
	_ = unix.Kill(pid, sig) // it may have ended this moment
}

// PhaseOver says that any end that follows is that of its phase.
func (c *child) PhaseOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = !c.gone
}

// Kill ends the command and everything it started.
func (c *child) Kill() {
	c.mu.Lock()
	c.killed, c.asked = true, true
	if !c.gone {
		_ = unix.Kill(c.pid, unix.SIGKILL)
	}
	c.mu.Unlock()
	c.killRest()
}

// killRest kills all our descendants: in a PID namespace of our own that is
// everybody else.
func (c *child) killRest() {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, unix.SIGKILL) // ESRCH: nobody is left
		return
	}
	if c.tree == nil || c.tree.self != os.Getpid() {
		return // nothing to tell our descendants by
	}
	for _, p := range c.tree.descendants() {
		_ = unix.Kill(p.pid, unix.SIGKILL)
	}
}

// Wait reaps all children until the command has ended, then kills and reaps
// what it has left behind, as the end of a container does.
func (c *child) Wait(clock clock.Clock) protocol.Exit {
	var exit protocol.Exit
	for {
		pid, err := waitAny()
		if err != nil { // ECHILD: nobody is left
			return exit
		}
		now := clock.Now()
		var ws unix.WaitStatus
		c.tree.Reaping(pid, func() (usage unix.Rusage) {
			c.mu.Lock()
			defer c.mu.Unlock()
			_, _ = unix.Wait4(pid, &ws, 0, &usage) // waitAny has seen it end
			c.gone = c.gone || pid == c.pid
			return usage
		})
		if pid == c.pid {
			exit = c.exit(now, ws)
		}
		if c.gone {
			c.killRest()
		}
	}
}

// waitAny blocks until a child has ended, and leaves it unreaped.
func waitAny() (int, error) {
	for {
		// siginfo_t as waitid(2) fills it: signo, errno, code, padding, pid.
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		if err == nil {
			return siginfoPid(&info), nil
		}
		if !errors.Is(err, unix.EINTR) {
			return 0, err
		}
	}
}

// exit describes the end of the command.
func (c *child) exit(at int64, ws unix.WaitStatus) protocol.Exit {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := protocol.Exit{At: at, Started: true, Ours: c.asked, PhaseOver: c.over}
	if !ws.Signaled() {
		e.ExitCode = ws.ExitStatus()
		return e
	}
	e.Signal = int(ws.Signal())
	e.ExitCode = 128 + e.Signal
	if ws.Signal() == unix.SIGKILL && !c.killed {
		e.Ours, e.PhaseOver = false, false
		e.Message = "killed by a SIGKILL that cnsbench did not send"
	} else if ws.Signal() != unix.SIGKILL {
		e.Message = "ended by signal " + SignalName(e.Signal)
	}
	return e
}

// SignalName is "SIGTERM" for 15.
func SignalName(n int) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(n)
}
