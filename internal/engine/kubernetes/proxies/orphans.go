package proxies

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
)

// orphanGracePeriod is how long a volume may exist at a driver before the cluster refers to it.
const orphanGracePeriod = 5 * time.Second

// ListInventory lists what the drivers of the proxies have before the run.
func ListInventory(ctx context.Context, e *core.Run) map[string]*csiproxy.Inventory {
	inventory := map[string]*csiproxy.Inventory{}
	for _, address := range e.Proxies {
		list, err := csiproxy.List(ctx, address, e.ProxyToken)
		switch {
		case err == nil && list.Driver != "":
			inventory[address] = list
		case err != nil && !errors.Is(err, csiproxy.ErrNoList):
			e.Session.Sink.Log("engine", fmt.Sprintf("orphans will not be found: %v", err))
		}
	}
	return inventory
}

// FindOrphans reports what drivers list after the run, did not list before, and no object of the cluster refers to.
// listed names the drivers with complete lists.
func FindOrphans(ctx context.Context, e *core.Run, inventory map[string]*csiproxy.Inventory) (list []engine.Finding,
	listed map[string]bool) {
	listed = map[string]bool{}
	for _, address := range slices.Sorted(maps.Keys(inventory)) {
		before := inventory[address]
		left, err := unreferenced(ctx, e, address, before)
		if err == nil && len(left.Volumes)+len(left.Snapshots) > 0 { // it may be in creation
			select {
			case <-time.After(orphanGracePeriod):
			case <-ctx.Done():
			}
			var again *csiproxy.Inventory
			if again, err = unreferenced(ctx, e, address, before); err == nil {
				left = again
			}
		}
		if err != nil {
			e.Session.Sink.Log("engine", fmt.Sprintf("orphans of driver %s cannot be found: %v", before.Driver, err))
			continue
		}
		listed[before.Driver] = before.Volumes != nil && before.Snapshots != nil && !left.Cut
		list = append(list, orphanFindings(before.Driver, left)...)
	}
	return list, listed
}

// unreferenced returns what a driver has beyond the earlier inventory and without a reference.
func unreferenced(ctx context.Context, e *core.Run, address string, before *csiproxy.Inventory) (*csiproxy.Inventory,
	error) {
	now, err := csiproxy.List(ctx, address, e.ProxyToken)
	if err != nil {
		return nil, err
	}
	referred, err := referencedHandles(ctx, e, before.Driver) // read after the list, so that no reference is missed
	if err != nil {
		return nil, err
	}
	return &csiproxy.Inventory{Driver: before.Driver, Cut: before.Cut || now.Cut,
		Volumes: remaining(now.Volumes, before.Volumes, referred), Snapshots: remaining(now.Snapshots, before.Snapshots,
			referred)}, nil
}

func remaining(now, before map[string]csiproxy.Item, referred map[string]bool) map[string]csiproxy.Item {
	left := maps.Clone(now)
	maps.DeleteFunc(left, func(id string, _ csiproxy.Item) bool {
		_, old := before[id]
		return old || referred[id]
	})
	return left
}

// referencedHandles returns the handles of a driver that the cluster refers to.
func referencedHandles(ctx context.Context, e *core.Run, driver string) (map[string]bool, error) {
	handles := map[string]bool{}
	list, _, err := e.Client.List(ctx, api.PersistentVolumes, "", metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	for _, o := range list {
		if csi := o.(*corev1.PersistentVolume).Spec.CSI; csi != nil && csi.Driver == driver {
			handles[csi.VolumeHandle] = true
		}
	}
	list, _, err = e.Client.List(ctx, api.VolumeSnapshotContents, "", metav1.ListOptions{})
	if err != nil && !core.NotServed(err) {
		return nil, err
	}
	for _, o := range list {
		c := o.(*api.VolumeSnapshotContent)
		if c.Spec.Source.SnapshotHandle != nil {
			handles[*c.Spec.Source.SnapshotHandle] = true
		}
		if c.Status != nil && c.Status.SnapshotHandle != nil {
			handles[*c.Status.SnapshotHandle] = true
		}
	}
	return handles, nil
}

func orphanFindings(driver string, left *csiproxy.Inventory) []engine.Finding {
	var list []engine.Finding
	for _, one := range []struct {
		what, object string
		items        map[string]csiproxy.Item
	}{{"volumes", "PersistentVolume", left.Volumes}, {"snapshots", "VolumeSnapshotContent", left.Snapshots}} {
		var names []string
		for _, id := range slices.Sorted(maps.Keys(one.items)) {
			if of := one.items[id].Source; of != "" {
				id += " of volume " + of
			}
			names = append(names, id)
		}
		if len(names) > 0 {
			list = append(list, engine.Finding{Name: "orphan", Severity: "warning", Evidence: fmt.Sprintf(
				"driver %s lists %d %s that did not exist before the run and that no %s refers to; they will not "+
					"be deleted: %s",
				driver, len(names), one.what, one.object, tracker.JoinFirst(names))})
		}
	}
	return list
}
