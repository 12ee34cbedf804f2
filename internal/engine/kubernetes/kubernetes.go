// Package kubernetes runs a Benchmark on a cluster: requests create API objects; milestones come from watches and
// from the agents in the pods. Nothing has to be installed in the cluster. docs/design/kubernetes.md describes the
// parts.
package kubernetes

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/cleanup"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/disrupt"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lagprobe"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lease"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/manifests"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/metrics"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/provision"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/proxies"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

var (
	_ engine.Engine   = (*Engine)(nil)
	_ engine.Preparer = (*Engine)(nil)
	_ engine.Reporter = (*Engine)(nil)
)

// New returns an engine that has not connected yet.
func New(o Options) *Engine {
	o.Delivery = cmp.Or(o.Delivery, podspec.DeliverAuto)
	o.Namespace = cmp.Or(o.Namespace, metav1.NamespaceDefault)
	o.Listen = cmp.Or(o.Listen, ":0")
	e := &Engine{State: pods.New(core.New(o))}
	e.provisioner = provision.New(e.State)
	e.manifests = manifests.New(e.State, e.logGap)
	e.disruptor = disrupt.New(e.State, e.manifests)
	return e
}

// Capabilities returns what the engine supports. Those of a driver are known only when it is called.
func (e *Engine) Capabilities() engine.Capabilities { return Capabilities() }

// Capabilities returns what the engine supports, without a cluster.
func Capabilities() engine.Capabilities {
	return engine.Capabilities{
		Engine: "kubernetes", Cluster: true,
		Actions: kinds(),
		Features: map[string]bool{"groupSnapshot": true, "block": true, "rwx": true, "genericEphemeral": true,
			"static": true, "volumeAttributesClass": true,
			"manifest": true, "node: other": true, "undo": true, "object": true},
	}
}

// Open connects, reads what the cluster offers, opens the watches and listens for agents.
func (e *Engine) Open(ctx context.Context, s engine.Session) error {
	e.Session, e.Ctx, e.Executing = s, context.WithoutCancel(ctx), true
	if e.ID = s.Identity; e.ID.RunID == "" {
		e.ID = owned.New(s.RunID)
	}
	e.ID.Namespace, e.ID.Server = e.Namespace, cmp.Or(e.ID.Server, e.Config.Host)
	if err := e.Connect(s.Clock); err != nil {
		return err
	}
	if err := e.readClasses(ctx); err != nil {
		return err
	}
	e.chooseDelivery(ctx)
	e.leases = lease.New(e.Run)
	if err := e.leases.Acquire(ctx); err != nil {
		return err
	}
	if err := e.listen(ctx); err != nil {
		return err
	}
	if err := e.openWatches(ctx); err != nil {
		return err
	}
	var err error
	if e.probes, err = lagprobe.Start(ctx, e.Run, e.watches); err != nil {
		return err
	}
	e.metrics = metrics.Start(ctx, e.Client, e.Metrics)
	e.inventory = proxies.ListInventory(ctx, e.Run)
	e.proxies, err = proxies.Connect(ctx, e.Run, e.Tracker)
	return err
}

func (e *Engine) listen(ctx context.Context) error {
	advertise := e.Advertise
	if advertise == "" {
		var err error
		if advertise, err = routeTo(ctx, e.Config.Host); err != nil {
			return fmt.Errorf("find the address at which pods reach this runner: %w; name it with --advertise", err)
		}
	}
	var err error
	e.Agents, err = agent.ListenTLS(context.WithoutCancel(ctx), e.Listen, advertise, e.Session.Clock, e.Session.Sink)
	if err != nil {
		return err
	}
	e.Agents.SetLive(e.Session.Live)
	e.Agents.SetSampling(e.Session.Sampling, true)
	return nil
}

// SetSampleLevel changes what the agents read; see engine.SampleLeveler.
func (e *Engine) SetSampleLevel(level op.SampleLevel) { e.Agents.SetSampleLevel(level) }

// Do executes one request; see engine.Engine.
func (e *Engine) Do(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tr.On("", r.Name)
	tr.Attempt()
	defer e.manifests.RefineMilestones(tr)
	do, ok := actions[r.Kind]
	if !ok {
		return nil, engine.Errorf("InvalidArgument", "unknown kind of op %q", r.Kind)
	}
	return do(e, ctx, r, tr)
}

// Close stops the watches and the listener.
func (e *Engine) Close() error {
	var errs []error
	e.closeOnce.Do(func() {
		close(e.Closed)
		e.probes.Stop()
		e.leases.Stop()
		if e.Agents != nil {
			errs = append(errs, e.Agents.Close())
		}
		for _, p := range e.proxies {
			if p != nil {
				errs = append(errs, p.Close())
			}
		}
		e.manifests.CloseWatches()
		if e.watches != nil {
			e.logWatchStats()
			e.watches.Close()
		}
		if e.Client != nil {
			e.Client.Close()
		}
	})
	return errors.Join(errs...)
}

func (e *Engine) cleaner() *cleanup.Cleaner {
	return &cleanup.Cleaner{Run: e.Run, StopProbes: e.probes.Stop, IsGroupMember: e.provisioner.IsGroupMember,
		ReleaseLeases: func(ctx context.Context) error { return lease.Release(ctx, e.Run, e.leases) }}
}

// Teardown removes everything that the run created; see cleanup.Cleaner.
func (e *Engine) Teardown(ctx context.Context, ledger engine.Ledger) error {
	return e.cleaner().Teardown(ctx, ledger)
}

// TeardownRun removes what carries the label of a run; see cleanup.Cleaner.
func (e *Engine) TeardownRun(ctx context.Context, runID string) error {
	return e.cleaner().TeardownRun(ctx, runID)
}

// IsOfKind says whether an entry of a ledger is of a kind: Owed lists its objects.
func IsOfKind(entry op.LedgerEntry) bool { return core.IsOfKind(entry) }

// Owed lists what Teardown would remove; see cleanup.Cleaner.
func (e *Engine) Owed(ctx context.Context, ledger engine.Ledger) ([]string, error) {
	return e.cleaner().Owed(ctx, ledger)
}
