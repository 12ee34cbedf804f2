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

// DefaultPath is the search path of programs when the command's environment has no PATH; the default of
// container runtimes.
const DefaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// LookPath finds the command's program in the PATH of its environment and the caller's file system.
func LookPath(cmd Command) (string, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return "", errors.New("no command to run")
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

// runnable returns why p cannot be executed, or nil.
func runnable(p string) error {
	if fi, err := os.Stat(p); err != nil || fi.IsDir() {
		return fmt.Errorf("there is no program %s", p)
	}
	if unix.Access(p, unix.X_OK) != nil {
		return fmt.Errorf("%s is not executable", p)
	}
	return nil
}

// child is the command's process and its descendants.
type child struct {
	pid  int
	tree *tree

	mu        sync.Mutex
	killed    bool // by this agent
	requested bool // any later end was requested
	phaseOver bool // any later end is that of its phase
	reaped    bool // its PID is no longer valid
}

// start runs the program in its own process group, with its output going to the logs.
func start(program string, cmd Command, logs *Logs, t *tree, with *commandConn) (*child, error) {
	// Adopts orphans also when not PID 1; optional there.
	_ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, fmt.Errorf("stdin of the command: %w", err)
	}
	defer null.Close()
	dir := cmd.Dir
	if dir == "" {
		dir = "/"
	}
	pid, err := syscall.ForkExec(program, cmd.Args, &syscall.ProcAttr{
		Dir: dir, Env: append(slices.Clone(cmd.Env), with.environ()...),
		Files: append([]uintptr{null.Fd(), logs.writeEnds[0].Fd(), logs.writeEnds[1].Fd()}, with.files()...),
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return nil, fmt.Errorf("run %s in %s: %w", program, dir, err)
	}
	t.Watch(pid)
	return &child{pid: pid, tree: t}, nil
}

// Signal sends sig to the command, as a container runtime does; SIGSTOP and SIGCONT to all its descendants too,
// to which no command forwards them: jobs of fio are sessions of their own.
func (c *child) Signal(sig unix.Signal) {
	if sig == unix.SIGKILL {
		c.Kill()
		return
	}
	c.mu.Lock()
	if sig == unix.SIGTERM || sig == unix.SIGINT {
		c.requested = true
	}
	pid, reaped, all := c.pid, c.reaped, sig == unix.SIGSTOP || sig == unix.SIGCONT
	if all {
		pid = -pid // the group
	}
	if !reaped {
		_ = unix.Kill(pid, sig) // it may just have ended
	}
	c.mu.Unlock()
	if all && !reaped {
		c.signalDescendants(sig)
	}
}

// PhaseOver marks any later end as that of the phase.
func (c *child) PhaseOver() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phaseOver = !c.reaped
}

// Kill kills the command and its descendants.
func (c *child) Kill() {
	c.mu.Lock()
	c.killed, c.requested = true, true
	if !c.reaped {
		_ = unix.Kill(c.pid, unix.SIGKILL)
	}
	c.mu.Unlock()
	c.signalDescendants(unix.SIGKILL)
}

// signalDescendants sends sig to all descendants of the agent: as PID 1, to all other processes of the namespace.
// A process that has a signal pending forks no more, so that none is missed.
func (c *child) signalDescendants(sig unix.Signal) {
	if os.Getpid() == 1 {
		_ = unix.Kill(-1, sig) // ESRCH: no process left
		return
	}
	if c.tree == nil || c.tree.self != os.Getpid() {
		return // descendants are not identifiable
	}
	for sent, more := map[int]bool{}, true; more; {
		more = false
		for _, p := range c.tree.descendants() {
			if !sent[p.pid] {
				_ = unix.Kill(p.pid, sig)
				sent[p.pid], more = true, true
			}
		}
	}
}

// Wait reaps all children until the command has ended, then kills and reaps the remaining ones, as the end of
// a container does.
func (c *child) Wait(clock clock.Clock) protocol.Exit {
	var exit protocol.Exit
	for {
		pid, err := waitAny()
		if err != nil { // ECHILD: no child left
			return exit
		}
		now := clock.Now()
		var ws unix.WaitStatus
		c.tree.Reaping(pid, func() (usage unix.Rusage) {
			c.mu.Lock()
			defer c.mu.Unlock()
			_, _ = unix.Wait4(pid, &ws, 0, &usage) // cannot block: waitAny saw it end
			c.reaped = c.reaped || pid == c.pid
			return usage
		})
		if pid == c.pid {
			exit = c.exit(now, ws)
		}
		if c.reaped {
			c.signalDescendants(unix.SIGKILL)
		}
	}
}

// waitAny blocks until a child has ended and does not reap it.
func waitAny() (int, error) {
	for {

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
	e := protocol.Exit{At: at, Started: true, Ours: c.requested, PhaseOver: c.phaseOver}
	if !ws.Signaled() {
		e.ExitCode = ws.ExitStatus()
		return e
	}
	e.Signal = int(ws.Signal())
	e.ExitCode = 128 + e.Signal
	if ws.Signal() == unix.SIGKILL && !c.killed {
		e.Ours, e.PhaseOver = false, false
		e.Message = "killed by a SIGKILL not sent by cnsbench"
	} else if ws.Signal() != unix.SIGKILL {
		e.Message = "ended by signal " + SignalName(e.Signal)
	}
	return e
}

// SignalName returns "SIGTERM" for 15.
func SignalName(n int) string {
	if name := unix.SignalName(unix.Signal(n)); name != "" {
		return name
	}
	return "signal " + strconv.Itoa(n)
}

// Command is the command to run; part of the sandbox's Spec.
type Command struct {
	Args []string `json:"args"` // Args[0] is looked up in the PATH of Env
	Env  []string `json:"env"`
	Dir  string   `json:"dir"` // working directory; empty: "/"
}
