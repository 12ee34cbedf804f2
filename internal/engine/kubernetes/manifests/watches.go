package manifests

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Watch opens the watch of an object: one for all objects of the run of a kind, one for each existing object.
func (e *Manifests) Watch(ctx context.Context, m *Manifest) error {
	src := watch.Source{Kind: m.Kind, Namespace: m.Namespace, LabelSelector: e.Selector()}
	if m.foreign {
		src.LabelSelector, src.FieldSelector = "", "metadata.name="+m.Name
	}
	id := src.String() + " " + src.Namespace + " " + src.FieldSelector
	e.openingMu.Lock()
	defer e.openingMu.Unlock()
	e.watchesMu.Lock()
	there := e.further[id] != nil
	e.watchesMu.Unlock()
	if there {
		return nil
	}
	w, err := watch.Open(context.WithoutCancel(ctx),
		watch.Config{Host: e.Config, Clock: e.Session.Clock, Sources: []watch.Source{src}, Gap: e.LogGap,
			Handler: func(ev watch.Event) {
				e.Tracker.SeeObject(tracker.ObjectKey(m.Kind, ev.Object.GetNamespace(), ev.Object.GetName()), ev)
			}})
	if err != nil {
		return core.APIError(ctx, err)
	}
	e.watchesMu.Lock()
	defer e.watchesMu.Unlock()
	e.further[id] = w
	return nil
}

// Sending and wrote pass the run's writes to the watches, which measure their lag by them.
func (e *Manifests) Sending(c api.Call) { e.eachWatch(func(w *watch.Watches) { w.Sending(c) }) }

// Wrote passes a write of the run to all watches; see watch.Watches.Wrote.
func (e *Manifests) Wrote(c api.Call) { e.eachWatch(func(w *watch.Watches) { w.Wrote(c) }) }

func (e *Manifests) eachWatch(do func(*watch.Watches)) {
	if e.Watches == nil {
		return // not open
	}
	do(e.Watches)
	e.watchesMu.Lock()
	defer e.watchesMu.Unlock()
	for _, w := range e.further {
		do(w)
	}
}

// RefineMilestones sets the errors of an op's milestones, which depend on later events too.
func (e *Manifests) RefineMilestones(tr *op.Trace) {
	tr.Refine(func(m *op.Milestone) {
		if m.Source == "watch" {
			e.eachWatch(func(w *watch.Watches) { m.Err = w.Settled(m.At, m.Err) })
		}
	})
}

// CloseWatches closes the watches of manifests.
func (e *Manifests) CloseWatches() {
	for _, w := range e.further {
		w.Close()
	}
}
