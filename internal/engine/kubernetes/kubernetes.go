// Package kubernetes runs a Benchmark on a cluster: requests create API objects; milestones come from watches and
// from the agents in the pods. Nothing has to be installed in the cluster. docs/design/kubernetes.md describes the
// parts.
package kubernetes

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
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
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Options say which cluster to use and how its pods reach the runner.
type Options = core.Options

// Engine is the engine of one run. It implements engine.Engine.
type Engine struct {
	*pods.State
	provisioner  *provision.Provisioner
	manifests    *manifests.Manifests
	disruptor    *disrupt.Disruptor
	watches      *watch.Watches
	proxies      []*csiproxy.Client
	leases       *lease.Holder
	probes       *lagprobe.Probes
	metrics      *metrics.Collector
	inventory    map[string]*csiproxy.Inventory // by proxy, before the run
	hasSnapshots bool
	closeOnce    sync.Once
}

var (
	_ engine.Engine   = (*Engine)(nil)
	_ engine.Preparer = (*Engine)(nil)
	_ engine.Reporter = (*Engine)(nil)
)

// New returns an engine that has not connected yet.
func New(o Options) *Engine {
	o.Delivery = cmp.Or(o.Delivery, podspec.DeliverInit)
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
		Engine: "kubernetes",
		Actions: map[op.Kind]bool{
			op.Create: true, op.Snapshot: true, op.Restore: true, op.Clone: true,
			op.Resize: true, op.Modify: true, op.Delete: true, op.Reattach: true, op.Rollout: true,
			op.Drain: true, op.Scale: true, op.Kill: true,
		},
		Features: map[string]bool{"groupSnapshot": true, "block": true, "rwx": true, "genericEphemeral": true,
			"static": true, "volumeAttributesClass": true,
			"manifest": true, "node: other": true, "undo": true, "object": true},
	}
}

// Open connects, reads what the cluster offers, opens the watches and listens for agents.
func (e *Engine) Open(ctx context.Context, s engine.Session) error {
	e.Session, e.Ctx, e.Executing = s, context.WithoutCancel(ctx), true
	if e.ID = s.Identity; e.ID == (owned.Identity{}) {
		e.ID = owned.New(s.RunID)
	}
	e.ID.Namespace, e.ID.Server = e.Namespace, cmp.Or(e.ID.Server, e.Config.Host)
	if err := e.Connect(s.Clock); err != nil {
		return err
	}
	if err := e.readClasses(ctx); err != nil {
		return err
	}
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

// readClasses reads the StorageClasses, the CSIDrivers and the served snapshot kinds.
func (e *Engine) readClasses(ctx context.Context) error {
	e.Classes, e.Drivers = map[string]storagev1.StorageClass{}, map[string]storagev1.CSIDriver{}
	list, _, err := e.Client.List(ctx, api.StorageClasses, "", metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("read the cluster's StorageClasses: %w", err)
	}
	for _, o := range list {
		e.Classes[o.GetName()] = *o.(*storagev1.StorageClass)
	}
	list, _, err = e.Client.List(ctx, api.CSIDrivers, "", metav1.ListOptions{})
	if err != nil { // few runs need this right: without it, all drivers are assumed to attach
		e.Session.Sink.Log("engine", fmt.Sprintf("the cluster's CSIDrivers cannot be read: %v", err))
	}
	for _, o := range list {
		e.Drivers[o.GetName()] = *o.(*storagev1.CSIDriver)
	}
	return e.findSnapshotKinds(ctx)
}

// findSnapshotKinds finds the snapshot kinds that the cluster serves.
func (e *Engine) findSnapshotKinds(ctx context.Context) error {
	if !e.needsSnapshots() {
		return nil // needs no right to them
	}
	one := metav1.ListOptions{}
	_, _, err := e.Client.List(ctx, api.VolumeSnapshots, e.Namespace, one)
	switch {
	case err == nil:
		e.hasSnapshots = true
	case core.NotServed(err):
		return engine.Errorf("Unimplemented",
			"the cluster has no VolumeSnapshots (snapshot.storage.k8s.io/v1): install the external snapshotter's "+
				"CRDs and controller")
	default:
		return fmt.Errorf("look for VolumeSnapshots: %w", err)
	}
	if !e.Session.Needs.Features["groupSnapshot"] {
		return nil
	}
	for _, version := range []string{"v1", "v1beta2", "v1beta1"} {
		_, _, err := e.Client.List(ctx, api.VolumeGroupSnapshots(version), e.Namespace, one)
		if err == nil {
			e.GroupSnapshotVersion = version
			return nil
		}
	}
	return engine.Errorf("Unimplemented", "the cluster has no VolumeGroupSnapshots (groupsnapshot.storage.k8s.io)")
}

// needsSnapshots says whether the plan uses snapshots.
func (e *Engine) needsSnapshots() bool {
	return e.Session.Needs.Kinds[op.Snapshot] || e.Session.Needs.Kinds[op.Restore]
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
	return err
}

// routeTo returns the local address of the route to the API server. Connecting a UDP socket sends nothing.
func routeTo(ctx context.Context, server string) (string, error) {
	host := server
	if u, err := url.Parse(server); err == nil && u.Host != "" {
		host = u.Hostname()
	}
	c, err := (&net.Dialer{}).DialContext(ctx, "udp", net.JoinHostPort(host, "9"))
	if err != nil {
		return "", err
	}
	defer c.Close()
	address, _, err := net.SplitHostPort(c.LocalAddr().String())
	return address, err
}

// openWatches opens all watches, before the first op.
func (e *Engine) openWatches(ctx context.Context) error {
	e.Tracker = tracker.New(e.Namespace)
	selector := e.Selector()
	kinds := []watch.Source{
		{Kind: api.Pods, Namespace: e.Namespace, LabelSelector: selector},
		{Kind: api.PersistentVolumeClaims, Namespace: e.Namespace, LabelSelector: selector},
		{Kind: api.PersistentVolumes},
		{Kind: api.VolumeAttachments},
		{Kind: api.Events, Namespace: e.Namespace},
		{Kind: api.ConfigMaps, Namespace: e.Namespace, FieldSelector: "metadata.name=" + e.Name(lagprobe.ObjectName)},
	}
	if e.hasSnapshots {
		kinds = append(kinds, watch.Source{Kind: api.VolumeSnapshots, Namespace: e.Namespace},
			watch.Source{Kind: api.VolumeSnapshotContents})
	}
	if e.GroupSnapshotVersion != "" {
		kinds = append(kinds,
			watch.Source{Kind: api.VolumeGroupSnapshots(e.GroupSnapshotVersion), Namespace: e.Namespace})
	}
	var err error
	e.watches, err = watch.Open(context.WithoutCancel(ctx),
		watch.Config{Host: e.Config, Clock: e.Session.Clock, Sources: kinds, Handler: e.handleEvent, Gap: e.logGap})
	if err != nil {
		return err
	}
	e.manifests.Watches = e.watches
	e.Client.Sending, e.Client.Seen = e.manifests.Sending, e.manifests.Wrote
	return nil
}

// handleEvent passes an event of a watch on.
func (e *Engine) handleEvent(ev watch.Event) {
	e.leases.ObserveVolume(ev)
	e.Attempts.See(ev)
	e.Tracker.See(ev)
}

// logGap logs when a watch was lost and when it was back.
func (e *Engine) logGap(g watch.Gap) {
	if !g.To.Known() {
		e.Session.Sink.Log("watch",
			fmt.Sprintf("the watch of %s was lost: %s; milestones until it is back are known to that interval only",
				g.Kind, g.Cause))
		return
	}
	line := fmt.Sprintf("the watch of %s is back after %v, at attempt %d", g.Kind,
		time.Duration(g.To-g.From).Round(time.Millisecond), g.Attempts)
	if g.Last != "" {
		line += "; before that: " + g.Last
	}
	e.Session.Sink.Log("watch", line)
}

// logWatchStats logs the lags of the watches and the throttled requests.
func (e *Engine) logWatchStats() {
	for _, l := range e.watches.Lags() {
		line, err := json.Marshal(l)
		if err == nil {
			e.Session.Sink.Log("watch", string(line))
		}
	}
	if n := e.Client.Throttled(); n > 0 {
		e.Session.Sink.Log("engine", fmt.Sprintf("the API server throttled %d requests (429); none was retried", n))
	}
}

// Do executes one request; see engine.Engine.
func (e *Engine) Do(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	tr.On("", r.Name)
	tr.Attempt()
	defer e.manifests.RefineMilestones(tr)
	switch {
	case r.Workload != nil:
		return e.provisioner.CreateWorkload(ctx, r, tr)
	case r.Volume != nil:
		return e.provisioner.CreateVolume(ctx, r, tr)
	case r.Snapshot != nil && r.Snapshot.Group:
		return e.provisioner.CreateGroupSnapshot(ctx, r, tr)
	case r.Snapshot != nil:
		return e.provisioner.CreateSnapshot(ctx, r, tr)
	case r.Resize != nil:
		return e.provisioner.Resize(ctx, r, tr)
	case r.Modify != nil:
		return nil, e.provisioner.Modify(ctx, r, tr)
	case r.Reattach != nil:
		return nil, e.disruptor.Reattach(ctx, r, tr)
	case r.Rollout != nil:
		return nil, e.disruptor.Rollout(ctx, r, tr)
	case r.Drain != nil:
		return nil, e.disruptor.Drain(ctx, r, tr)
	case r.Scale != nil:
		return nil, e.disruptor.Scale(ctx, r, tr)
	case r.Kill != nil:
		return nil, e.disruptor.Kill(ctx, r, tr)
	case r.Manifest != nil:
		return e.manifests.CreateObject(ctx, r, tr)
	case r.Delete != nil:
		tr.On("", r.Delete.Target.Name)
		return nil, e.deleteObject(ctx, r.Delete.Target, tr)
	}
	return nil, engine.Errorf("InvalidArgument", "the request has no action")
}

func (e *Engine) deleteObject(ctx context.Context, o engine.Object, tr *op.Trace) error {
	switch o.Kind {
	case engine.VolumeObject:
		return e.provisioner.DeleteVolume(ctx, o.Name, tr)
	case engine.SnapshotObject, engine.GroupSnapshotObject:
		return e.provisioner.DeleteSnapshot(ctx, o, tr)
	case engine.WorkloadObject:
		return e.provisioner.DeleteWorkload(ctx, o.Name, tr)
	case engine.ManifestObject:
		return e.manifests.DeleteObject(ctx, o, tr)
	}
	return engine.Errorf("InvalidArgument", "cannot delete a %s", o.Kind)
}

// Environment describes the cluster.
func (e *Engine) Environment(ctx context.Context) (map[string]any, error) {
	env := map[string]any{
		"server": e.Config.Host, "namespace": e.Namespace, "agentDelivery": e.Delivery, "image": e.Image,
		"storageClasses": e.Classes, "groupSnapshots": e.GroupSnapshotVersion,
	}
	nodes, _, err := e.Client.List(ctx, api.Nodes, "", metav1.ListOptions{})
	if err != nil {
		env["nodes"] = fmt.Sprintf("cannot be read: %v", err)
	} else {
		env["nodes"] = describeNodes(nodes)
	}
	env["limits"] = metrics.Limits(ctx, e.Client)
	env["csiProxies"] = proxies.Describe(e.proxies)
	return env, nil
}

func describeNodes(nodes []api.Object) []any {
	var list []any
	for _, o := range nodes {
		n := o.(*corev1.Node)
		list = append(list, map[string]any{
			"name": n.Name, "kubelet": n.Status.NodeInfo.KubeletVersion, "kernel": n.Status.NodeInfo.KernelVersion,
			"os": n.Status.NodeInfo.OSImage, "runtime": n.Status.NodeInfo.ContainerRuntimeVersion,
			"architecture": n.Status.NodeInfo.Architecture,
			"cpu":          n.Status.Allocatable.Cpu().String(), "memory": n.Status.Allocatable.Memory().String(),
			"pods": n.Status.Allocatable.Pods().String(),
		})
	}
	slices.SortFunc(list, func(a, b any) int {
		return cmp.Compare(a.(map[string]any)["name"].(string), b.(map[string]any)["name"].(string))
	})
	return list
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

// Owed lists what Teardown would remove; see cleanup.Cleaner.
func (e *Engine) Owed(ctx context.Context) ([]string, error) { return e.cleaner().Owed(ctx) }
