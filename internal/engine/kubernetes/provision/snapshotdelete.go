package provision

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// DeleteSnapshot deletes a snapshot, or a group with its members, and returns when the contents are gone too,
// unless they are retained.
func (e *Provisioner) DeleteSnapshot(ctx context.Context, object engine.Object, tr *op.Trace) error {
	s := e.snapshot(object.Name)
	if s == nil {
		return core.NotFound(object)
	}
	list := []*snapshot{s}
	for _, m := range s.members {
		if member := e.snapshot(m); member != nil {
			list = append(list, member)
		}
	}
	d := e.newSnapshotDeletion(list)
	defer d.Feed.Close()
	defer func() { d.Calls.Fill(tr, len(list) > 1) }()
	if err := e.Delete(ctx, s.kind, s.name); err != nil {
		return err
	}
	tr.Mark(op.Acked, "runner")
	end, err := d.wait(ctx, tr)
	if err != nil {
		return err
	}
	if end.At.Known() {
		tr.MarkAt(op.Gone, end.At, end.Err, end.Source)
		tr.EndedAt(end.At)
	}
	for _, c := range d.kept {
		e.MarkRetained(api.VolumeSnapshotContents, c)
	}
	return e.forgetSnapshots(list)
}

// snapshotDeletion follows snapshots until they are gone.
type snapshotDeletion struct {
	tracker.Observation
	left map[string]pendingSnapshot // by "kind name"
	kept []*api.VolumeSnapshotContent
}

// pendingSnapshot is a remaining object of a snapshot, with the milestone of its end.
type pendingSnapshot struct{ object, name, milestone string }

// newSnapshotDeletion follows snapshots, groups and their contents.
func (e *Provisioner) newSnapshotDeletion(list []*snapshot) *snapshotDeletion {
	d := &snapshotDeletion{left: map[string]pendingSnapshot{}}
	d.Observation = e.Observe(tracker.SnapshotDeletionCalls, d.pending)
	for _, one := range list {
		object := one.object.Name
		d.Feed.Add(tracker.EventsOf.Key(one.name))
		if one.kind.Resource != api.VolumeSnapshots.Resource {
			d.Feed.Add(tracker.GroupSnapshot.Key(one.name))
			d.left["group "+one.name] = pendingSnapshot{object, one.name, op.Gone}
			continue
		}
		d.Feed.Add(tracker.Snapshot.Key(one.name))
		d.left["snapshot "+one.name] = pendingSnapshot{object, one.name, op.Gone}
		c, _ := e.Tracker.Latest(tracker.ContentOfSnapshot.Key(one.name)).(*api.VolumeSnapshotContent)
		if c == nil {
			continue
		}
		if c.Spec.DeletionPolicy == "Retain" {
			d.kept = append(d.kept, c)
			continue
		}
		d.Feed.Add(tracker.ContentOfSnapshot.Key(one.name))
		d.Feed.Add(tracker.EventsOf.Key(c.Name))
		d.left["content "+one.name] = pendingSnapshot{object, c.Name, contentGone}
		if c.Status != nil && c.Status.SnapshotHandle != nil {
			d.Calls.Follow(d.Feed, *c.Status.SnapshotHandle, object)
		}
	}
	return d
}

// pending lists the snapshots with remaining objects.
func (d *snapshotDeletion) pending() (list []tracker.Pending) {
	for _, what := range slices.Sorted(maps.Keys(d.left)) {
		g := d.left[what]
		i := slices.IndexFunc(list, func(p tracker.Pending) bool { return p.Object == g.object })
		if i < 0 {
			i, list = len(list), append(list, tracker.Pending{Object: g.object, Names: []string{g.object}})
		}
		list[i].Names = append(list[i].Names, g.name)
	}
	return list
}

// wait returns when everything is deleted, with the last milestone.
func (d *snapshotDeletion) wait(ctx context.Context, tr *op.Trace) (op.Milestone, error) {
	defer d.Waits.Done()
	end := op.Milestone{At: op.Never}
	handle := func(ev watch.Event) error {
		if at := d.handle(ev, tr); at.At > end.At {
			end = at
		}
		return nil
	}
	for len(d.left) > 0 {
		if err := d.Next(ctx, d.describePending, handle); err != nil {
			return end, err
		}
	}
	return end, nil
}

func (d *snapshotDeletion) describePending() string {
	var names []string
	for what := range d.left {
		names = append(names, what+" is still there")
	}
	slices.Sort(names)
	return d.Warnings.AppendTo(strings.Join(names, "; "))
}

// handle handles an event. It returns the milestone if an object was deleted.
func (d *snapshotDeletion) handle(ev watch.Event, tr *op.Trace) op.Milestone {
	what := ""
	switch o := ev.Object.(type) {
	case *api.VolumeSnapshot:
		what = "snapshot " + o.Name
	case *api.VolumeSnapshotContent:
		what = "content " + o.Spec.VolumeSnapshotRef.Name
		d.noteError(ev, what, o)
	case *api.VolumeGroupSnapshot:
		what = "group " + o.Name
	case *corev1.Event:
		if ev.At >= d.Calls.Since { // earlier failures belong to other ops
			d.Warnings.See(o)
		}
		return op.Milestone{At: op.Never}
	}
	g, waited := d.left[what]
	if !waited || ev.Type != watch.Deleted {
		return op.Milestone{At: op.Never}
	}
	delete(d.left, what)
	if g.milestone != op.Gone {
		tr.MarkAt(g.milestone, ev.At, ev.Err, "watch")
	}
	return op.Milestone{At: ev.At, Err: ev.Err, Source: "watch"}
}

// noteError adds an error in the status of a content to the warnings.
func (d *snapshotDeletion) noteError(ev watch.Event, what string, o *api.VolumeSnapshotContent) {
	if s := o.Status; s != nil && s.Error != nil && s.Error.Message != nil && ev.At >= d.Calls.Since {
		d.Warnings.Note(d.left[what].object, tracker.ContentError, *s.Error.Message, s.Error.Time)
	}
}

func (e *Provisioner) forgetSnapshots(list []*snapshot) error {
	var errs []error
	e.Mu.Lock()
	for _, s := range list {
		delete(e.snapshots, s.object.Name)
	}
	e.Mu.Unlock()
	for _, s := range list {
		errs = append(errs, e.LedgerDone(s.kind, s.name))
	}
	return errors.Join(errs...)
}
