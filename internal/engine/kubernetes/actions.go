package kubernetes

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// action executes one kind of op.
type action func(*Engine, context.Context, engine.Request, *op.Trace) ([]engine.Object, error)

// actions has an entry for each kind of op that the engine supports.
var actions = map[op.Kind]action{
	op.Create:   (*Engine).create,
	op.Snapshot: (*Engine).snapshot,
	op.Restore:  (*Engine).create,
	op.Clone:    (*Engine).create,
	op.Resize: func(e *Engine, ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
		return e.provisioner.Resize(ctx, r, tr)
	},
	op.Modify:   makesNothing(func(e *Engine) does { return e.provisioner.Modify }),
	op.Reattach: makesNothing(func(e *Engine) does { return e.disruptor.Reattach }),
	op.Rollout:  makesNothing(func(e *Engine) does { return e.disruptor.Rollout }),
	op.Drain:    makesNothing(func(e *Engine) does { return e.disruptor.Drain }),
	op.Scale:    makesNothing(func(e *Engine) does { return e.disruptor.Scale }),
	op.Kill:     makesNothing(func(e *Engine) does { return e.disruptor.Kill }),
	op.Check:    makesNothing(func(e *Engine) does { return e.check }),
	op.Delete: func(e *Engine, ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
		tr.On("", r.Target.Name)
		return nil, e.delete(ctx, r.Target, tr)
	},
}

// does executes an op that makes no objects.
type does = func(context.Context, engine.Request, *op.Trace) error

func makesNothing(of func(*Engine) does) action {
	return func(e *Engine, ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
		return nil, of(e)(ctx, r, tr)
	}
}

// kinds are the keys of actions.
func kinds() map[op.Kind]bool {
	all := map[op.Kind]bool{}
	for kind := range actions {
		all[kind] = true
	}
	return all
}

func (e *Engine) create(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	switch {
	case r.Workload != nil:
		return e.provisioner.CreateWorkload(ctx, r, tr)
	case r.Manifest != nil:
		return e.manifests.CreateObject(ctx, r, tr)
	}
	return e.provisioner.CreateVolume(ctx, r, tr)
}

func (e *Engine) snapshot(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	if r.Snapshot.Group {
		return e.provisioner.CreateGroupSnapshot(ctx, r, tr)
	}
	return e.provisioner.CreateSnapshot(ctx, r, tr)
}

func (e *Engine) delete(ctx context.Context, o engine.Object, tr *op.Trace) error {
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
