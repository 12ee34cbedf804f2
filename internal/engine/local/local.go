// Package local carries a Benchmark out on this machine alone: volumes from a
// CSI driver over gRPC, workloads as local processes. The driver is always a
// process of its own, ours or anyone's.
package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Options are what the command line says about this machine.
type Options struct {
	// Endpoint is the unix socket of a driver that already runs, as a path or
	// in the form unix:///path of CSI_ENDPOINT; empty: start our own for each
	// provisioner that is named <backend>.csi.cnsbench.dev.
	Endpoint string
	// DriverCommand starts one of our drivers: a program and its first
	// arguments, to which flags are added.
	DriverCommand []string
	// StorageDir is where our drivers keep volumes. It exists.
	StorageDir string
	// AgentPath is the agent's binary.
	AgentPath string
	// Program is this program's binary, for workloads that it is; empty: the file
	// that runs.
	Program string
	// Inject is handed to our drivers: a file of delays, stalls and errors.
	Inject string
	Seed   uint64
	// Identity is that of a dead run, for Teardown of an engine that is not opened:
	// what does not carry it is left alone.
	Identity owned.Identity
}

// Engine is the local engine of one run. It implements engine.Engine.
type Engine struct {
	Options
	session engine.Session
	own     owned.Identity
	node    string
	ctx     context.Context // of the run, without its cancellation
	agents  *agent.Server
	host    *pod.Host
	pods    *podSink

	mu        sync.Mutex
	drivers   map[string]*driver // by provisioner
	volumes   map[string]*volume
	snapshots map[string]*snapshot
	workloads map[string]*workload
}

var (
	_ engine.Engine        = (*Engine)(nil)
	_ engine.Preparer      = (*Engine)(nil)
	_ engine.Prober        = (*Engine)(nil)
	_ engine.ProcessLister = (*Engine)(nil)
)

// New returns an engine that has not touched anything yet.
func New(o Options) *Engine {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	o.Endpoint = SocketPath(o.Endpoint)
	return &Engine{
		Options: o, node: host, own: o.Identity,
		drivers: map[string]*driver{}, volumes: map[string]*volume{},
		snapshots: map[string]*snapshot{}, workloads: map[string]*workload{},
	}
}

// SocketPath is the absolute path that an endpoint means: the ledger holds it,
// and cleanup may be called from elsewhere. Another scheme stays as it is.
func SocketPath(endpoint string) string {
	if endpoint == "" {
		return ""
	}
	path, ok := strings.CutPrefix(endpoint, "unix://")
	if !ok {
		path, _ = strings.CutPrefix(endpoint, "unix:")
	}
	if strings.Contains(path, "://") {
		return path
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// Open starts or finds the drivers that the StorageClasses name and listens
// for agents.
func (e *Engine) Open(ctx context.Context, s engine.Session) error {
	e.session, e.ctx = s, context.WithoutCancel(ctx)
	if e.own = s.Identity; e.own == (owned.Identity{}) {
		e.own = owned.New(s.RunID)
		e.own.Scratch, e.own.Storage, e.own.Endpoint = s.Dir, e.StorageDir, e.Endpoint
		if err := e.own.Mark(s.Dir); err != nil {
			return fmt.Errorf("scratch directory: %w", err)
		}
	}
	if err := e.openDrivers(ctx); err != nil {
		return err
	}
	if err := e.checkNeeds(); err != nil {
		return err
	}
	return e.openPods()
}

// openPods readies this machine for workloads.
func (e *Engine) openPods() error {
	e.pods = &podSink{Sink: e.session.Sink, owners: map[string]incarnation{}}
	program := e.Program
	if program == "" {
		var err error
		if program, err = os.Executable(); err != nil {
			return fmt.Errorf("this program's own file: %w", err)
		}
	}
	var err error
	e.agents, err = agent.Listen(e.ctx, filepath.Join(e.session.Dir, "agent.sock"), e.session.Clock, e.pods)
	if err != nil {
		return fmt.Errorf("listen for agents: %w", err)
	}
	e.host, err = pod.NewHost(e.ctx, pod.HostOptions{Server: e.agents, Clock: e.session.Clock, Ledger: e.session.Ledger,
		Sink: e.pods, Agent: e.AgentPath, Program: program, Identity: e.own,
		Hide: []string{filepath.Join(e.session.Dir, "volumes")}})
	return err
}

// Release opens the barrier for the given instances.
func (e *Engine) Release(ctx context.Context, _ string, instances []string, at op.Time) error {
	return e.eachWorkload(instances, func(w *workload) error { return w.release(ctx, at) })
}

// Stop ends the given instances.
func (e *Engine) Stop(ctx context.Context, instances []string, grace time.Duration) error {
	return e.eachWorkload(instances, func(w *workload) error { return w.stop(ctx, grace) })
}

// eachWorkload calls f for the named workloads at once.
func (e *Engine) eachWorkload(names []string, f func(*workload) error) error {
	var wg sync.WaitGroup
	failed := make([]error, len(names))
	for i, name := range names {
		w := e.workload(name)
		if w == nil {
			continue // already deleted
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			failed[i] = f(w)
		}()
	}
	wg.Wait()
	return errors.Join(failed...)
}

func (e *Engine) workload(name string) *workload {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.workloads[name]
}

// Environment names the drivers and what they offer.
func (e *Engine) Environment(context.Context) (map[string]any, error) {
	drivers := []any{}
	for _, name := range slices.Sorted(maps.Keys(e.drivers)) {
		drivers = append(drivers, e.drivers[name].describe())
	}
	return map[string]any{"node": e.node, "drivers": drivers, "storageDir": e.StorageDir, "storageClasses": e.session.StorageClasses}, nil
}

// Close stops the drivers that Open started and the agents' listener.
func (e *Engine) Close() error {
	var errs []error
	for _, d := range e.drivers {
		errs = append(errs, d.close())
	}
	if e.agents != nil {
		errs = append(errs, e.agents.Close())
	}
	if e.host != nil {
		errs = append(errs, e.host.Close())
	}
	return errors.Join(errs...)
}
