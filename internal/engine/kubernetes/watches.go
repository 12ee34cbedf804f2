package kubernetes

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// watchObject opens the watch of an object: one for all objects of the run of a kind, one for each
// existing object.
func (e *Manifests) watchObject(ctx context.Context, m *manifest) error {
	src := watch.Source{Kind: m.kind, Namespace: m.namespace, LabelSelector: e.Selector()}
	if m.foreign {
		src.LabelSelector, src.FieldSelector = "", "metadata.name="+m.name
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
	w, err := watch.Open(context.WithoutCancel(ctx), watch.Config{Host: e.Config, Clock: e.Session.Clock, Sources: []watch.Source{src}, Gap: e.LogGap,
		Handler: func(ev watch.Event) {
			e.Tracker.SeeObject(tracker.ObjectKey(m.kind, ev.Object.GetNamespace(), ev.Object.GetName()), ev)
		}})
	if err != nil {
		return core.APIError(ctx, err)
	}
	e.watchesMu.Lock()
	defer e.watchesMu.Unlock()
	e.further[id] = w
	return nil
}

// sending and wrote pass the run's writes to the watches, which measure their lag by them.
func (e *Manifests) sending(c api.Call) { e.eachWatch(func(w *watch.Watches) { w.Sending(c) }) }

func (e *Manifests) wrote(c api.Call) { e.eachWatch(func(w *watch.Watches) { w.Wrote(c) }) }

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

// refineMilestones sets the errors of an op's milestones, which depend on later events too.
func (e *Manifests) refineMilestones(tr *op.Trace) {
	tr.Refine(func(m *op.Milestone) {
		if m.Source == "watch" {
			e.eachWatch(func(w *watch.Watches) { m.Err = w.Settled(m.At, m.Err) })
		}
	})
}

// closeWatches closes the watches of manifests.
func (e *Manifests) closeWatches() {
	for _, w := range e.further {
		w.Close()
	}
}
