package pod

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/sandbox"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/iolimit"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// AgentName is the agent's program, AgentEnv the variable with its path.
const (
	AgentName = "cnsbench-agent"
	AgentEnv  = "CNSBENCH_AGENT"
)

// reportTimeout is how long after its process an agent's last messages may take to arrive.
const reportTimeout = 5 * time.Second

// HostOptions are common to the pods of a run.
type HostOptions struct {
	Server *agent.Server
	Clock  op.Clock
	Ledger engine.Ledger
	Sink   engine.Sink
	// Agent is the path of the agent's program; see FindAgent.
	Agent string
	// Program is the path of this program, which pods run as engine.Program.
	Program string
	RunID   string
	// Hide lists the directories in which this run mounts volumes. A container unmounts the mounts in them
	// that are not its own, so that it does not keep other volumes busy.
	Hide []string
	// Limits makes the control groups of pods with a Limit; nil: there are none.
	Limits *iolimit.Controller
}

// Limit of agents that set up their mounts concurrently, and how long one counts: more of them take the same
// total time, and each takes longer.
const (
	maxStarting  = 16
	startTimeout = 30 * time.Second
)

// Host runs pods. Its methods are safe for concurrent use.
type Host struct {
	HostOptions
	ctx      context.Context
	spawn    chan func()
	starting chan struct{} // slots of starting agents, see acquireStart
	quit     chan struct{}
	wg       sync.WaitGroup // of the pods

	mu   sync.Mutex
	live map[*process]bool
}

// NewHost prepares this machine for pods. ctx is the run's: its end cancels pending waits. Close must be
// called.
func NewHost(ctx context.Context, o HostOptions) (*Host, error) {
	if _, err := os.Stat(o.Agent); err != nil {
		return nil, fmt.Errorf("agent program: %w", err)
	}
	h := &Host{HostOptions: o, ctx: ctx, spawn: make(chan func()), starting: make(chan struct{}, maxStarting),
		quit: make(chan struct{}), live: map[*process]bool{}}
	go h.spawner()
	return h, nil
}

// spawner starts every agent from one thread that lives as long as the Host: the kernel kills an agent when
// the thread that started it ends (PR_SET_PDEATHSIG). The goroutine never unlocks its thread, so that the
// thread, and all agents, end with it.
func (h *Host) spawner() {
	runtime.LockOSThread()
	for {
		select {
		case f := <-h.spawn:
			f()
		case <-h.quit:
			return
		}
	}
}

// Close kills the remaining agents and returns when all pods have ended. It must be called once. Stop the
// pods first if their results matter.
func (h *Host) Close() error {
	close(h.quit)
	h.mu.Lock()
	for p := range h.live {
		p.kill()
	}
	h.mu.Unlock()
	h.wg.Wait()
	return nil
}

// FindAgent returns the agent's program: the given path if it is not empty, $CNSBENCH_AGENT, beside this
// program, in $PATH.
func FindAgent(given string) (string, error) {
	for _, p := range []string{given, os.Getenv(AgentEnv)} {
		if p != "" {
			return executable(p)
		}
	}
	self, err := os.Executable()
	if err == nil {
		if p, err := executable(filepath.Join(filepath.Dir(self), AgentName)); err == nil {
			return p, nil
		}
	}
	p, err := exec.LookPath(AgentName)
	if err != nil {
		return "", fmt.Errorf("%s not found beside %s or in PATH: build it (make build), or set its path in $%s",
			AgentName, self, AgentEnv)
	}
	return filepath.Abs(p)
}

func executable(p string) (string, error) {
	fi, err := os.Stat(p)
	if err != nil {
		return "", fmt.Errorf("agent program: %w", err)
	}
	if fi.IsDir() || fi.Mode()&0o111 == 0 {
		return "", fmt.Errorf("agent program: %s is not executable", p)
	}
	return filepath.Abs(p)
}

// process is one container's agent.
type process struct {
	session *agent.Session
	cmd     *exec.Cmd
	reaped  chan struct{} // closed when it was reaped
}

// acquireStart waits for a start slot; release must be called once, with the started process or nil.
func (h *Host) acquireStart(ctx context.Context) (release func(*process), err error) {
	select {
	case h.starting <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-h.quit:
		return nil, errors.New("the run is over")
	}
	return func(p *process) {
		if p == nil {
			<-h.starting
			return
		}
		go func() {
			late := time.NewTimer(startTimeout)
			defer late.Stop()
			select {
			case <-p.session.Arrived():
			case <-p.session.Done():
			case <-late.C:
			}
			<-h.starting
		}()
	}, nil
}

// launch starts the agent of a container. The ledger has it before it does anything.
func (h *Host) launch(instance string, c *container) (*process, error) {
	id := agent.ID{Instance: instance, Container: c.name}
	session, err := h.Server.Expect(id, c.options)
	if err != nil {
		return nil, err
	}
	p := &process{session: session, reaped: make(chan struct{})}
	if err := h.start(p, c); err != nil {
		session.Abandon(err)
		return nil, err
	}
	return p, nil
}

func (h *Host) start(p *process, c *container) error {
	stderrPath := filepath.Join(c.spec.LogDir, c.name+".agent")
	stderr, err := os.Create(stderrPath)
	if err != nil {
		return err
	}
	defer stderr.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	p.cmd = sandbox.Command(h.Agent, r, stderr, c.noNetwork)
	p.cmd.Env = []string{owned.Environment(h.RunID)} // for the agent only: workloads get another environment
	if err := h.onSpawner(p.cmd.Start); err != nil {
		return errors.Join(startError(err), w.Close())
	}
	h.mu.Lock()
	h.live[p] = true
	h.mu.Unlock()
	spec := c.spec
	spec.Socket, spec.Token = h.Server.Socket(), p.session.Token()
	entry, err := ledgerEntry(p.session.ID().String(), p.cmd.Process.Pid)
	if err == nil {
		err = h.Ledger.Add(entry)
	}
	if err == nil && c.group != "" { // before the agent reads what to run
		err = iolimit.Add(c.group, p.cmd.Process.Pid)
	}
	// The agent ends when the pipe is closed and empty.
	if err != nil {
		defer h.remove(p)
		return errors.Join(err, w.Close(), p.cmd.Wait())
	}
	if err = spec.Write(w); err != nil {
		p.kill()
	}
	go h.reap(p, entry, stderrPath)
	return err
}

// onSpawner calls start on the spawner's thread.
func (h *Host) onSpawner(start func() error) error {
	result := make(chan error, 1)
	select {
	case h.spawn <- func() { result <- start() }:
		return <-result
	case <-h.quit:
		return errors.New("the run is over")
	}
}

// remove removes a reaped process.
func (h *Host) remove(p *process) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.live, p)
}

// startError adds the usual cause when namespaces are refused.
func startError(err error) error {
	if os.Geteuid() != 0 && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.EACCES) ||
		errors.Is(err, syscall.ENOSPC)) {
		return fmt.Errorf("create a user namespace: %w: the system must allow it to ordinary users (sysctl kernel.unprivileged_userns_clone=1, user.max_user_namespaces>0, kernel.apparmor_restrict_unprivileged_userns=0), or run as root", err)
	}
	return fmt.Errorf("start the agent: %w", err)
}

// reap waits for the agent's process and ends its session.
func (h *Host) reap(p *process, entry op.LedgerEntry, stderrPath string) {
	defer close(p.reaped)
	err := p.cmd.Wait()
	h.remove(p)
	if err := h.Ledger.Done(entry.Kind, entry.Name); err != nil {
		h.Sink.Log(entry.Name, fmt.Sprintf("ledger: %v", err))
	}
	if p.session.Connected() {
		select {
		case <-p.session.Done():
			return
		case <-time.After(reportTimeout):
		}
	}
	cause := fmt.Sprintf("agent ended early (%v)", p.cmd.ProcessState)
	if err == nil {
		cause = "agent ended without a report"
	}
	if text, _ := os.ReadFile(stderrPath); len(text) > 0 {
		cause += ": " + strings.TrimSpace(string(text[:min(len(text), 4096)]))
	}
	p.session.Abandon(errors.New(cause))
}

// kill kills the agent, and with it everything in its PID namespace.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // may have ended
}

// plan is a pod resolved into processes.
type plan struct {
	init       []*container
	containers []*container
	grace      time.Duration
	ignored    []string // log lines about ignored fields
	sources    map[string]source
	shared     []string // directories outside Spec.Dir, in the ledger
	group      string   // directory of the control group with its limit, in the ledger; empty: no limit
}

// container is one planned process.
type container struct {
	name      string
	init      bool
	sidecar   bool   // an init container that continues
	main      bool   // the pod ends with these
	waits     bool   // at the barrier
	phased    bool   // runs in its phase only
	noNetwork bool   // without network
	group     string // directory of the control group that it joins; empty: none
	spec      sandbox.Spec
	options   agent.Options
}

// source is a volume of the pod on the host.
type source struct {
	path     string
	device   bool
	readOnly bool
	claim    string       // name of the claim, if it is one
	canaries map[int]bool // phases in which a canary runs on it
}

// cleanup removes the directories outside the pod's own.
func (p *plan) cleanup(h *Host) {
	for _, dir := range p.shared {
		err := os.RemoveAll(dir)
		if err == nil {
			err = h.Ledger.Done(DirKind, dir)
		}
		if err != nil {
			h.Sink.Log("engine", fmt.Sprintf("remove %s: %v", dir, err))
		}
	}
}

// planner collects all problems of a pod.
type planner struct {
	*Spec
	plan     *plan
	sources  map[string]source
	problems []string
}

// problem records one reason why the pod cannot run.
func (p *planner) problem(format string, args ...any) {
	p.problems = append(p.problems, fmt.Sprintf(format, args...))
}

// Claim is a volume that the pod may use: a directory, or a block device.
type Claim struct {
	Path     string // mount point of the file system on the host
	Device   string // device on the host of a volume in mode Block
	ReadOnly bool
}

// Spec is one pod to run.
type Spec struct {
	// Instance names the pod in all reports; unique among the run's running pods.
	Instance string
	Pod      engine.Pod
	// Claims by claim name; a generic ephemeral volume's is "<pod>-<volume>", as in Kubernetes.
	Claims     map[string]Claim
	ConfigMaps map[string]corev1.ConfigMap
	// Dir is a directory for this pod: logs, emptyDirs, mount points. It is created if missing and not
	// removed.
	Dir string
	// Barrier that the containers in Pod.Sync wait at; empty: none waits.
	Barrier string
	Canary  *engine.Canary
	// MaxOutput bounds the output that each container sends; 0: no bound.
	MaxOutput int64
	// Limit bounds the I/O of the containers on the devices of the claims; nil: no limit. It needs Host.Limits.
	Limit *engine.IOLimit
	// ClockOffset shifts the clocks of the agents, for tests.
	ClockOffset time.Duration
	// NoNetwork gives the pod an empty network namespace.
	NoNetwork bool
	// Sink receives the pod's reports; nil: the Host's.
	Sink engine.Sink
}

// Agents is the milestone at which a pod's main containers start to be set up: the time from it to op.Running
// is the overhead of the agent and its namespaces.
const Agents = "agents"
