package kubernetes

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// deleteSnapshot deletes a snapshot, or a group with its members, and returns
// when the contents are gone too, unless their class retains them.
func (e *Engine) deleteSnapshot(ctx context.Context, object engine.Object, tr *op.Trace) error {
	s := e.snapshot(object.Name)
	if s == nil {
		return gone(object)
	}
	list := []*snap{s}
	for _, m := range s.members {
		if member := e.snapshot(m); member != nil {
			list = append(list, member)
		}
	}
	u := e.uncut(list)
	defer u.Feed.Close()
	defer func() { u.Calls.Fill(tr, len(list) > 1) }()
	if err := e.delete(ctx, s.kind, s.name); err != nil {
		return err
	}
	tr.Mark(op.Acked, "runner")
	end, err := u.await(ctx, tr)
	if err != nil {
		return err
	}
	if end.At.Known() {
		tr.MarkAt(op.Gone, end.At, end.Err, end.Source)
		tr.EndedAt(end.At)
	}
	for _, c := range u.kept {
		e.markBehind(api.VolumeSnapshotContents, c)
	}
	return e.forgetSnapshots(list)
}

// uncutting follows snapshots to their end.
type uncutting struct {
	tracker.Observation
	left map[string]goingSnap // by "kind name"
	kept []*api.VolumeSnapshotContent
}

// goingSnap is what is still there of a snapshot: the loop's name of it, and the
// milestone of its end.
type goingSnap struct{ object, name, milestone string }

// uncut begins to follow snapshots, groups and the contents that go with them.
func (e *Engine) uncut(list []*snap) *uncutting {
	u := &uncutting{left: map[string]goingSnap{}}
	u.Observation = e.observe(tracker.SnapshotDeletionCalls, u.pending)
	for _, one := range list {
		object := one.object.Name
		u.Feed.Add(tracker.EventsOf.Key(one.name))
		if one.kind.Resource != api.VolumeSnapshots.Resource {
			u.Feed.Add(tracker.GroupSnapshot.Key(one.name))
			u.left["group "+one.name] = goingSnap{object, one.name, op.Gone}
			continue
		}
		u.Feed.Add(tracker.Snapshot.Key(one.name))
		u.left["snapshot "+one.name] = goingSnap{object, one.name, op.Gone}
		c, _ := e.tracker.Latest(tracker.ContentOfSnapshot.Key(one.name)).(*api.VolumeSnapshotContent)
		if c == nil {
			continue
		}
		if c.Spec.DeletionPolicy == "Retain" {
			u.kept = append(u.kept, c)
			continue
		}
		u.Feed.Add(tracker.ContentOfSnapshot.Key(one.name))
		u.Feed.Add(tracker.EventsOf.Key(c.Name))
		u.left["content "+one.name] = goingSnap{object, c.Name, contentGone}
		if c.Status != nil && c.Status.SnapshotHandle != nil {
			u.Calls.Follow(u.Feed, *c.Status.SnapshotHandle, object)
		}
	}
	return u
}

// pending lists the snapshots of which something is still there.
func (u *uncutting) pending() (list []tracker.Pending) {
	for _, what := range slices.Sorted(maps.Keys(u.left)) {
		g := u.left[what]
		i := slices.IndexFunc(list, func(p tracker.Pending) bool { return p.Object == g.object })
		if i < 0 {
			i, list = len(list), append(list, tracker.Pending{Object: g.object, Names: []string{g.object}})
		}
		list[i].Names = append(list[i].Names, g.name)
	}
	return list
}

// await waits until all that is left was deleted; the result is the last.
func (u *uncutting) await(ctx context.Context, tr *op.Trace) (op.Milestone, error) {
	defer u.Waits.Done()
	end := op.Milestone{At: op.Never}
	for len(u.left) > 0 {
		v, err := u.Feed.Next(ctx)
		if err != nil {
			return end, &engine.Error{Code: "Waiting", Message: u.stillThere(), Err: err}
		}
		switch v := v.(type) {
		case *csiproxy.Call:
			u.Calls.See(v)
		case watch.Event:
			if at := u.see(v, tr); at.At > end.At {
				end = at
			}
		}
		u.Waits.Saw(v)
	}
	return end, nil
}

func (u *uncutting) stillThere() string {
	var names []string
	for what := range u.left {
		names = append(names, what+" is still there")
	}
	slices.Sort(names)
	return u.Warnings.AppendTo(strings.Join(names, "; "))
}

// see takes one event; the result is when something of it was gone, if it was.
func (u *uncutting) see(ev watch.Event, tr *op.Trace) op.Milestone {
	what := ""
	switch o := ev.Object.(type) {
	case *api.VolumeSnapshot:
		what = "snapshot " + o.Name
	case *api.VolumeSnapshotContent:
		what = "content " + o.Spec.VolumeSnapshotRef.Name
		u.failed(ev, what, o)
	case *api.VolumeGroupSnapshot:
		what = "group " + o.Name
	case *corev1.Event:
		if ev.At >= u.Calls.Since { // what failed before is of other ops
			u.Warnings.See(o)
		}
		return op.Milestone{At: op.Never}
	}
	g, waited := u.left[what]
	if !waited || ev.Type != watch.Deleted {
		return op.Milestone{At: op.Never}
	}
	delete(u.left, what)
	if g.milestone != op.Gone {
		tr.MarkAt(g.milestone, ev.At, ev.Err, "watch")
	}
	return op.Milestone{At: ev.At, Err: ev.Err, Source: "watch"}
}

// failed notes a failure that has come into the status of a content.
func (u *uncutting) failed(ev watch.Event, what string, o *api.VolumeSnapshotContent) {
	if s := o.Status; s != nil && s.Error != nil && s.Error.Message != nil && ev.At >= u.Calls.Since {
		u.Warnings.Note(u.left[what].object, tracker.ContentError, *s.Error.Message, s.Error.Time)
	}
}

func (e *Engine) forgetSnapshots(list []*snap) error {
	var errs []error
	e.mu.Lock()
	for _, s := range list {
		delete(e.snapshots, s.object.Name)
	}
	e.mu.Unlock()
	for _, s := range list {
		errs = append(errs, e.done(s.kind, s.name))
	}
	return errors.Join(errs...)
}
