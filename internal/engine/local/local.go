// Package local runs a Benchmark on this machine: volumes from a CSI driver over gRPC, workloads as local
// processes. The driver, built-in or external, is always a separate process.
package local

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local/iolimit"
	"github.com/cnsbench/cnsbench/internal/engine/local/pod"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

var (
	_ engine.Engine        = (*Engine)(nil)
	_ engine.Preparer      = (*Engine)(nil)
	_ engine.Prober        = (*Engine)(nil)
	_ engine.ProcessLister = (*Engine)(nil)
)

// New returns an engine without side effects.
func New(o Options) *Engine {
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	sockets := map[string]string{}
	for provisioner, socket := range o.Endpoints {
		sockets[provisioner] = SocketPath(socket)
	}
	o.Endpoints = sockets
	return &Engine{
		Options: o, node: host, own: o.Identity,
		drivers: map[string]*driver{}, volumes: map[string]*volume{},
		snapshots: map[string]*snapshot{}, workloads: map[string]*workload{},
		ids: map[objectID]string{}, silences: map[string]int{},
	}
}

// SocketPath returns the absolute path of an endpoint, since the ledger stores it and a clean-up may run in
// another directory. It does not change other schemes.
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

// Open starts or connects the drivers that the StorageClasses name and listens for agents.
func (e *Engine) Open(ctx context.Context, s engine.Session) error {
	e.session, e.ctx = s, context.WithoutCancel(ctx)
	if e.own = s.Identity; e.own.RunID == "" {
		e.own = owned.New(s.RunID)
		e.own.Scratch, e.own.Storage = s.Dir, e.StorageDir
	}
	if err := checkLimits(s.Needs.Containers, machineLimits()); err != nil {
		return err
	}
	if err := e.openDrivers(ctx); err != nil {
		return err
	}
	if err := e.checkNeeds(); err != nil {
		return err
	}
	if err := e.openPods(); err != nil {
		return err
	}
	e.followVolumes()
	return nil
}

// ioLimit is the feature of limits by control groups.
const ioLimit = "ioLimit"

// openPods prepares this machine for pods.
func (e *Engine) openPods() error {
	e.pods = &podSink{Sink: e.session.Sink, owners: map[string]incarnation{}}
	var err error
	if e.program = e.Program; e.program == "" {
		if e.program, err = os.Executable(); err != nil {
			return fmt.Errorf("find this program's file: %w", err)
		}
	}
	var limits *iolimit.Controller
	if e.session.Needs.Features[ioLimit] {
		if limits, err = iolimit.Find(); err != nil {
			return fmt.Errorf("a tenant has a limit that control groups enforce: %w; or leave the limit out", err)
		}
	}
	e.agents, err = agent.Listen(e.ctx, filepath.Join(e.session.Dir, "agent.sock"), e.session.Clock, e.pods)
	if err != nil {
		return fmt.Errorf("listen for agents: %w", err)
	}
	e.agents.SetLive(e.session.Live)
	e.agents.SetSampling(e.session.Sampling, false) // they share the control group of the runner
	e.host, err = pod.NewHost(e.ctx, pod.HostOptions{Server: e.agents, Clock: e.session.Clock, Ledger: e.session.Ledger,
		Sink: e.pods, Agent: e.AgentPath, Program: e.program, RunID: e.own.RunID,
		Hide: []string{filepath.Join(e.session.Dir, "volumes")}, Limits: limits})
	return err
}

// SetSampleLevel changes what the agents and the drivers are asked for; see engine.SampleLeveler.
func (e *Engine) SetSampleLevel(level op.SampleLevel) {
	e.sampleLevel.Store(&level)
	e.agents.SetSampleLevel(level)
}

// Release opens the barrier for the given instances.
func (e *Engine) Release(ctx context.Context, _ string, instances []string, at op.Time) error {
	return e.eachWorkload(instances, func(w *workload) error { return w.release(ctx, at) })
}

// Stop ends the given instances.
func (e *Engine) Stop(ctx context.Context, instances []string, grace time.Duration) error {
	return e.eachWorkload(instances, func(w *workload) error { return w.stop(ctx, grace) })
}

// eachWorkload calls f for the named workloads concurrently.
func (e *Engine) eachWorkload(names []string, f func(*workload) error) error {
	var wg sync.WaitGroup
	failed := make([]error, len(names))
	for i, name := range names {
		w := e.workload(name)
		if w == nil {
			continue // already deleted
		}
		wg.Go(func() { failed[i] = f(w) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// Close stops the built-in drivers and the agents' listener.
func (e *Engine) Close() error {
	e.endFollowing()
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
