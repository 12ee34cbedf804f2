package kubernetes

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"

	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/inventory"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/metrics"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/proxies"
	"github.com/cnsbench/cnsbench/internal/op"
)

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

// Environment describes the cluster.
func (e *Engine) Environment(ctx context.Context) (map[string]any, error) {
	env := map[string]any{
		"server": e.Config.Host, "namespace": e.Namespace, "agentDelivery": e.Delivery, "image": e.Image,
		"storageClasses": e.Classes, "groupSnapshots": e.GroupSnapshotVersion,
	}
	maps.Copy(env, inventory.Read(ctx, e.Client, e.DriversInUse()))
	limits, err := metrics.Limits(ctx, e.Client)
	if err != nil {
		inventory.Unread(env, "limits", err)
	} else {
		env["limits"] = limits
	}
	env["csiProxies"] = proxies.Describe(e.proxies)
	return env, nil
}
