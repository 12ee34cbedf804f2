package provision

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Resize increases a claim's request. The controller's part is done when the PersistentVolume is larger, the node's
// when the claim's capacity is.
func (e *Provisioner) Resize(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	v := e.Volume(r.Target.Name)
	if v == nil {
		return nil, core.NotFound(r.Target)
	}
	ch := e.newClaimUpdate(v, tr)
	defer ch.close()
	want := *resource.NewQuantity(r.Resize.Bytes, resource.BinarySI)
	body := map[string]any{"spec": map[string]any{"resources": map[string]any{"requests": map[string]any{"storage": want.String()}}}}
	if err := ch.patch(ctx, body); err != nil {
		return nil, err
	}
	mounted := v.Holder != nil || v.Object.Owner != ""
	var larger resource.Quantity // current size of the volume
	stuck, pending := false, false
	err := ch.wait(ctx, func(ev watch.Event) bool {
		switch o := ev.Object.(type) {
		case *corev1.PersistentVolume:
			if larger = o.Spec.Capacity[corev1.ResourceStorage]; larger.Cmp(want) >= 0 {
				ch.Milestones.Add(op.Controller, v.Object.Name, ev)
				return pending && ch.finish(nodePending)
			}
		case *corev1.PersistentVolumeClaim:
			if c := o.Status.Capacity[corev1.ResourceStorage]; c.Cmp(want) >= 0 {
				ch.Milestones.Add(op.Node, v.Object.Name, ev)
				v.Object.Bytes = c.Value()
				return ch.finish(op.Node)
			}
			// Unmounted: the file system grows at the next mount.
			switch upTo, waits := nodeResize(o, larger); {
			case mounted || !waits:
			case upTo.Cmp(want) >= 0:
				v.Object.Bytes, pending = r.Resize.Bytes, true
				ch.Milestones.Add(nodePending, v.Object.Name, ev)
				// The volume grew before, but another watch reports it.
				return larger.Cmp(want) >= 0 && ch.finish(nodePending)
			case o.Status.AllocatedResourceStatuses != nil:
				stuck = true
				return true
			}
		}
		return false
	})
	if stuck {
		return nil, engine.Errorf("FailedPrecondition",
			"claim %s has a pending resize that ends when a pod mounts it, and Kubernetes starts no other until "+
				"then: set attach: true", v.Name)
	}
	if err != nil {
		return nil, err
	}
	e.StoreVolume(v)
	return []engine.Object{v.Object}, nil
}

// nodePending is the milestone at which only the node's part of a resize remains, of a volume that no pod mounts.
const nodePending = "nodePending"

// nodeResize says whether a claim's last resize waits only for a node that mounts it, and the size that the
// controller has reached. Before Kubernetes 1.32 that is the volume's size.
func nodeResize(c *corev1.PersistentVolumeClaim, volume resource.Quantity) (upTo resource.Quantity, pending bool) {
	if c.Status.AllocatedResourceStatuses != nil {
		return c.Status.AllocatedResources[corev1.ResourceStorage],
			c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimNodeResizePending
	}
	return volume, slices.ContainsFunc(c.Status.Conditions, func(cond corev1.PersistentVolumeClaimCondition) bool {
		return cond.Type == corev1.PersistentVolumeClaimFileSystemResizePending && cond.Status == corev1.ConditionTrue
	})
}

// Modify sets a claim's VolumeAttributesClass and waits until the driver has applied it.
func (e *Provisioner) Modify(ctx context.Context, r engine.Request, tr *op.Trace) error {
	v := e.Volume(r.Target.Name)
	if v == nil {
		return core.NotFound(r.Target)
	}
	class := r.Modify.Class
	if !e.hasAttributesClass(ctx, class) {
		var err error
		if class, err = e.attributesClass(ctx, v, r.Modify.Parameters); err != nil {
			return err
		}
	}
	ch := e.newClaimUpdate(v, tr)
	defer ch.close()
	if err := ch.patch(ctx, map[string]any{"spec": map[string]any{"volumeAttributesClassName": class}}); err != nil {
		return err
	}
	return ch.wait(ctx, func(ev watch.Event) bool {
		o, ok := ev.Object.(*corev1.PersistentVolumeClaim)
		if !ok || o.Status.CurrentVolumeAttributesClassName == nil ||
			*o.Status.CurrentVolumeAttributesClassName != class || o.Status.ModifyVolumeStatus != nil {
			return false
		}
		ch.Milestones.Add(op.Modified, v.Object.Name, ev)
		return ch.finish(op.Modified)
	})
}

// hasAttributesClass says whether the cluster has a class of this name.
func (e *Provisioner) hasAttributesClass(ctx context.Context, name string) bool {
	if name == "" {
		return false
	}
	e.Mu.Lock()
	has, known := e.existingClasses[name]
	e.Mu.Unlock()
	if known {
		return has
	}
	_, err := e.Client.Get(ctx, core.VolumeAttributesClasses, "", name, new(storagev1.VolumeAttributesClass))
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.existingClasses[name] = err == nil
	return err == nil
}

// attributesClass creates a VolumeAttributesClass for a driver and a set of parameters, once.
func (e *Provisioner) attributesClass(ctx context.Context, v *pods.Volume, parameters map[string]string) (string,
	error) {
	if len(parameters) == 0 {
		return "", engine.Errorf("InvalidArgument", "a VolumeAttributesClass has at least one parameter")
	}
	driver := e.Classes[v.Object.Class].Provisioner
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\n", driver)
	for _, k := range slices.Sorted(maps.Keys(parameters)) {
		fmt.Fprintf(h, "%s=%s\n", k, parameters[k])
	}
	name := e.Name(fmt.Sprintf("vac-%016x", h.Sum64()))
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if e.attributesClasses[name] {
		return name, nil
	}
	c := &storagev1.VolumeAttributesClass{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: e.Labels(nil, "")},
		DriverName: driver, Parameters: parameters}
	if err := e.LedgerAdd(core.VolumeAttributesClasses, name); err != nil {
		return "", err
	}
	if _, err := e.Create(ctx, core.VolumeAttributesClasses, c); err != nil {
		return "", err
	}
	e.attributesClasses[name] = true
	return name, nil
}

// claimUpdate follows a patched claim.
type claimUpdate struct {
	tracker.Observation
	provisioner *Provisioner
	v           *pods.Volume
	tr          *op.Trace
}

// newClaimUpdate follows a claim from now on.
func (e *Provisioner) newClaimUpdate(v *pods.Volume, tr *op.Trace) *claimUpdate {
	c := &claimUpdate{provisioner: e, v: v, tr: tr}
	c.Observation = e.Observe(tracker.ClaimUpdateCalls,
		func() []tracker.Pending { return []tracker.Pending{{Object: v.Object.Name, Names: []string{v.Name}}} })
	for _, what := range []tracker.Subject{tracker.Claim, tracker.VolumeOfClaim, tracker.EventsOf} {
		c.Feed.Add(what.Key(v.Name))
	}
	return c
}

func (c *claimUpdate) close() {
	c.Feed.Close()
	c.Milestones.Fill(c.tr, map[string][]string{})
	c.Calls.Fill(c.tr, false)
	c.provisioner.Attempts.Count(c.tr, c.v.Object.Name, c.Warnings, c.Calls)
}

func (c *claimUpdate) patch(ctx context.Context, body any) error {
	c.Feed.Drop()
	c.Calls.Follow(c.Feed, c.v.Object.Handle, c.v.Object.Name)
	data, err := json.Marshal(body)
	if err != nil {
		return err
	}
	answered, err := c.provisioner.Patch(ctx, api.PersistentVolumeClaims, c.v.Name, data)
	if err == nil {
		c.tr.MarkAt(op.Acked, answered, 0, "runner")
	}
	return err
}

// finish sets the end of the op to the last of the given milestones.
func (c *claimUpdate) finish(names ...string) bool {
	at := c.Milestones.Last(names...)
	c.tr.EndedAt(at)
	c.Milestones.Set(op.Ready, c.v.Object.Name, op.Milestone{At: at, Source: "runner"})
	return true
}

func (c *claimUpdate) wait(ctx context.Context, done func(watch.Event) bool) error {
	defer c.Waits.Done()
	pending := func() string { return c.Explain(fmt.Sprintf("claim %s was not changed yet", c.v.Name)) }
	for over := false; !over; {
		err := c.Next(ctx, pending, func(ev watch.Event) (err error) {
			over, err = c.handle(ev, done)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// handle handles an event; over is true when the update has ended.
func (c *claimUpdate) handle(ev watch.Event, done func(watch.Event) bool) (over bool, err error) {
	switch e, isEvent := ev.Object.(*corev1.Event); {
	case isEvent:
		c.Warnings.See(e)
		return false, nil
	case ev.Type == watch.Deleted:
		return true, engine.Errorf("Deleted", "claim %s was deleted meanwhile", c.v.Name)
	}
	return done(ev), nil
}
