package provision

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// snapshot is the state of a snapshot or of a group of snapshots.
type snapshot struct {
	object  engine.Object
	kind    api.Kind
	name    string   // in the cluster
	members []string // of a group: its snapshots' names in the run
}

// Milestones of a snapshot beyond those of package op.
const (
	contentCreated = "content"
	contentGone    = "contentGone"
	attemptFailed  = "attemptFailed" // as an event or status reported
)

// driverRequest is a sidecar's request to a driver.
type driverRequest struct{ name, driver string }

// CreateSnapshot creates a VolumeSnapshot and waits until it is ready.
func (e *Provisioner) CreateSnapshot(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	source := r.Snapshot.Sources[0]
	v := e.Volume(source.Name)
	if v == nil {
		return nil, core.NotFound(source)
	}
	vs := &api.VolumeSnapshot{
		ObjectMeta: e.Meta(metav1.ObjectMeta{}, r.Action, r.Name),
		Spec: api.VolumeSnapshotSpec{VolumeSnapshotClassName: optionalString(r.Snapshot.Class),
			Source: api.VolumeSnapshotSource{PersistentVolumeClaimName: &v.Name}},
	}
	s := &snapshot{kind: api.VolumeSnapshots, name: vs.Name, object: engine.Object{
		Kind: engine.SnapshotObject, Name: r.Name, Action: r.Action, Source: source.Name, Class: r.Snapshot.Class}}
	c := e.newSnapshotCreation(tr)
	defer c.close()
	c.follow(r.Name, vs.Name)
	answered, err := e.Create(ctx, api.VolumeSnapshots, vs)
	if err != nil {
		return nil, err
	}
	e.storeSnapshot(s)
	tr.MarkAt(op.Acked, answered, 0, "runner")
	err = c.wait(ctx)
	c.describe(&s.object, source)
	return []engine.Object{s.object}, err
}

// describe completes a snapshot's object. Without a restoreSize, the size is that of the source.
func (c *snapshotCreation) describe(o *engine.Object, source engine.Object) {
	o.Handle, o.Bytes = c.handles[o.Name], c.bytes[o.Name]
	if o.Bytes == 0 {
		o.Bytes = c.provisioner.claimedSize(&source)
	}
}

func optionalString(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (e *Provisioner) snapshot(name string) *snapshot {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	return e.snapshots[name]
}

func (e *Provisioner) storeSnapshot(s *snapshot) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.snapshots[s.object.Name] = s
}

// snapshotCreation follows snapshots until they are ready to use.
type snapshotCreation struct {
	tracker.Observation
	provisioner *Provisioner
	tr          *op.Trace
	objects     map[string]string // names in the run, by name in the cluster
	names       []string
	ready       map[string]bool
	requests    map[string]driverRequest // by object, until it has a handle
	handles     map[string]string
	bytes       map[string]int64 // restoreSize, by object
	group       *tracker.Pending // nil: ready, or no group
}

func (e *Provisioner) newSnapshotCreation(tr *op.Trace) *snapshotCreation {
	c := &snapshotCreation{provisioner: e, tr: tr, objects: map[string]string{}, ready: map[string]bool{},
		requests: map[string]driverRequest{},
		handles:  map[string]string{}, bytes: map[string]int64{}}
	c.Observation = e.Observe(tracker.SnapshotCalls, c.pending)
	return c
}

// pending lists the snapshots that are not ready yet.
func (c *snapshotCreation) pending() (list []tracker.Pending) {
	if c.group != nil {
		list = append(list, *c.group)
	}
	for name, object := range c.objects {
		if !c.ready[name] {
			list = append(list, tracker.Pending{Object: object, Names: []string{name, object}})
		}
	}
	return list
}

func (c *snapshotCreation) follow(object, name string) {
	c.objects[name] = object
	c.names = append(c.names, object)
	c.Feed.Add(tracker.Snapshot.Key(name))
	c.Feed.Add(tracker.ContentOfSnapshot.Key(name))
	c.Feed.Add(tracker.EventsOf.Key(name))
}

func (c *snapshotCreation) close() {
	c.Waits.Done()
	c.Feed.Close()
	ids := map[string][]string{contentCreated: c.names, op.Taken: c.names, op.Ready: c.names}
	c.Milestones.Fill(c.tr, ids)
	c.Calls.Fill(c.tr, len(c.names) > 1)
	for object, x := range c.requests {
		message, times := c.Warnings.FailedAttempts(object)
		c.provisioner.Attempts.CreationFailed(x.name,
			tracker.Creation{RPC: "CreateSnapshot", Driver: x.driver, Object: object, Times: times, Message: message})
	}
	c.provisioner.Attempts.Count(c.tr, strings.Join(c.names, ", "), c.Warnings, c.Calls)
}

// wait returns when all snapshots are ready.
func (c *snapshotCreation) wait(ctx context.Context) error {
	for len(c.ready) < len(c.objects) || len(c.Milestones[op.Taken]) < len(c.objects) {
		if err := c.Next(ctx, c.describePending, c.handle); err != nil {
			return err
		}
	}
	c.tr.EndedAt(c.Milestones.Last(op.Ready))
	return nil
}

func (c *snapshotCreation) handle(ev watch.Event) error {
	switch o := ev.Object.(type) {
	case *api.VolumeSnapshot:
		object := c.objects[o.Name]
		c.Calls.Follow(c.Feed, tracker.SnapshotRequestName(string(o.UID)), object)
		if ev.Type == watch.Deleted {
			return engine.Errorf("Deleted", "snapshot %s was deleted by another client", o.Name)
		}
		s := o.Status
		if s == nil {
			return nil
		}
		if s.CreationTime != nil {
			c.Milestones.Add(op.Taken, object, ev)
		}
		if s.Error != nil && s.Error.Message != nil {
			c.Warnings.Note(object, "SnapshotError", *s.Error.Message, s.Error.Time)
		}
		if s.ReadyToUse != nil && *s.ReadyToUse {
			c.Milestones.Add(op.Ready, object, ev)
			c.ready[o.Name] = true
			if s.RestoreSize != nil {
				c.bytes[object] = s.RestoreSize.Value()
			}
		}
	case *api.VolumeSnapshotContent:
		object := c.objects[o.Spec.VolumeSnapshotRef.Name]
		if ev.Type == watch.Deleted {
			return nil
		}
		c.Milestones.Add(contentCreated, object, ev)
		if c.handles[object] == "" {
			c.requests[object] = driverRequest{tracker.SnapshotRequestName(string(o.Spec.VolumeSnapshotRef.UID)), o.Spec.Driver}
		}
		if s := o.Status; s != nil {
			if s.CreationTime != nil && *s.CreationTime > 0 {
				c.Milestones.Add(op.Taken, object, ev)
			}
			if s.SnapshotHandle != nil {
				c.handles[object] = *s.SnapshotHandle
				delete(c.requests, object)
			}
			if s.Error != nil && s.Error.Message != nil &&
				c.Warnings.Note(object, tracker.ContentError, *s.Error.Message, s.Error.Time) {
				c.tr.MarkAt(attemptFailed, ev.At, ev.Err, "watch")
			}
		}
	case *corev1.Event:
		c.Warnings.See(o)
	}
	return nil
}

func (c *snapshotCreation) describePending() string {
	var parts []string
	for name := range c.objects {
		if !c.ready[name] {
			parts = append(parts, "snapshot "+name+" is not ready")
		}
	}
	slices.Sort(parts)
	return c.Explain(strings.Join(parts, "; "))
}

// CreateGroupSnapshot creates a VolumeGroupSnapshot of claims, which Prepare has labelled, and waits until all
// members are ready.
func (e *Provisioner) CreateGroupSnapshot(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object,
	error) {
	if e.GroupSnapshotVersion == "" {
		return nil, engine.Errorf("Unimplemented",
			"the cluster does not serve VolumeGroupSnapshots (groupsnapshot.storage.k8s.io)")
	}
	for _, o := range r.Snapshot.Sources {
		if e.Volume(o.Name) == nil {
			return nil, core.NotFound(o)
		}
	}
	kind := api.VolumeGroupSnapshots(e.GroupSnapshotVersion)
	name := e.Name(r.Name)
	g := &api.VolumeGroupSnapshot{
		ObjectMeta: e.Meta(metav1.ObjectMeta{}, r.Action, r.Name),
		Spec: api.VolumeGroupSnapshotSpec{VolumeGroupSnapshotClassName: optionalString(r.Snapshot.Class),
			Source: api.VolumeGroupSnapshotSource{Selector: &metav1.LabelSelector{
				MatchLabels: map[string]string{names.LabelGroup: name}}}},
	}
	group := &snapshot{kind: kind, name: name, object: engine.Object{Kind: engine.GroupSnapshotObject, Name: r.Name,
		Action: r.Action, Class: r.Snapshot.Class}}
	c := e.newSnapshotCreation(tr)
	defer c.close()
	c.group = &tracker.Pending{Object: r.Name, Names: []string{name, r.Name}}
	c.Feed.Add(tracker.GroupSnapshot.Key(name))
	c.Feed.Add(tracker.SnapshotOfGroup.Key(name))
	c.Feed.Add(tracker.EventsOf.Key(name))
	answered, err := e.Create(ctx, kind, g)
	if err != nil {
		return nil, err
	}
	e.storeSnapshot(group)
	tr.MarkAt(op.Acked, answered, 0, "runner")
	made, err := e.awaitGroup(ctx, r, group, c)
	return append(made, group.object), err
}

// awaitGroup follows the members of a group, whose names the cluster chooses.
func (e *Provisioner) awaitGroup(ctx context.Context, r engine.Request, group *snapshot,
	c *snapshotCreation) ([]engine.Object, error) {
	bySource := map[string]engine.Object{}
	for _, o := range r.Snapshot.Sources {
		bySource[e.Name(o.Name)] = o
	}
	members := map[string]engine.Object{}
	pending := func() string {
		return fmt.Sprintf("group snapshot %s has %d of %d members; %s",
			group.name, len(members), len(r.Snapshot.Sources), c.Warnings)
	}
	handle := func(ev watch.Event) error { return c.handleGroup(ev, r, bySource, members) }
	for c.group != nil || len(members) < len(r.Snapshot.Sources) {
		if err := c.Next(ctx, pending, handle); err != nil {
			return nil, err
		}
	}
	err := c.wait(ctx)
	var made []engine.Object
	for name, o := range members {
		c.describe(&o, bySource[e.Name(o.Source)])
		made = append(made, o)
		group.members = append(group.members, o.Name)
		e.storeSnapshot(&snapshot{kind: api.VolumeSnapshots, name: name, object: o})
	}
	slices.SortFunc(made, func(a, b engine.Object) int { return strings.Compare(a.Name, b.Name) })
	return made, err
}

// handleGroup handles an event while a group is not ready or incomplete.
func (c *snapshotCreation) handleGroup(ev watch.Event, r engine.Request, bySource,
	members map[string]engine.Object) error {
	switch o := ev.Object.(type) {
	case *api.VolumeGroupSnapshot:
		c.Calls.Follow(c.Feed, "groupsnapshot-"+string(o.UID), r.Name)
		s := o.Status
		if s != nil && s.Error != nil && s.Error.Message != nil {
			c.Warnings.Note(r.Name, "GroupSnapshotError", *s.Error.Message, s.Error.Time)
		}
		if s != nil && s.ReadyToUse != nil && *s.ReadyToUse {
			c.group = nil
		}
		return nil
	case *api.VolumeSnapshot:
		if _, known := members[o.Name]; known {
			break
		}
		source := o.Spec.Source.PersistentVolumeClaimName
		if source == nil || ev.Type == watch.Deleted {
			return nil
		}
		object := names.Raw + o.Name
		members[o.Name] = engine.Object{Kind: engine.SnapshotObject, Name: object, Action: r.Action, Owner: r.Name,
			Source: bySource[*source].Name, Class: r.Snapshot.Class}
		c.follow(object, o.Name)
	}
	return c.handle(ev)
}

// IsGroupMember says whether this process has seen a snapshot as a member of a group.
func (e *Provisioner) IsGroupMember(snapshot string) bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	_, member := e.snapshots[names.Raw+snapshot]
	return member
}
