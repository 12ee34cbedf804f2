package local

import (
	"context"
	"fmt"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// action is how the engine carries out one kind of op, and what it asks of a
// driver.
type action struct {
	do func(*Engine, context.Context, engine.Request, *op.Trace) ([]engine.Object, error)
	// offered says whether a driver has what the op needs; nil: any driver has.
	offered func(*driver) bool
}

// actions has an entry for each kind that the engine offers.
var actions = map[op.Kind]action{
	op.Create:   {do: (*Engine).create},
	op.Snapshot: {do: (*Engine).takeSnapshots, offered: offersSnapshots},
	op.Restore:  {do: (*Engine).createVolume, offered: offersSnapshots},
	op.Clone: {do: (*Engine).createVolume, offered: func(d *driver) bool {
		return d.controllerCaps[csi.ControllerServiceCapability_RPC_CLONE_VOLUME]
	}},
	op.Resize: {do: (*Engine).resize, offered: func(d *driver) bool {
		return d.controllerCaps[csi.ControllerServiceCapability_RPC_EXPAND_VOLUME] ||
			d.nodeCaps[csi.NodeServiceCapability_RPC_EXPAND_VOLUME]
	}},
	op.Modify: {do: makesNothing((*Engine).modify), offered: func(d *driver) bool {
		return d.controllerCaps[csi.ControllerServiceCapability_RPC_MODIFY_VOLUME]
	}},
	op.Check:    {do: makesNothing((*Engine).check)},
	op.Reattach: {do: makesNothing((*Engine).reattach)},
	op.Rollout:  {do: makesNothing((*Engine).rollout)},
	op.Kill:     {do: makesNothing((*Engine).kill)},
	op.Delete:   {do: makesNothing((*Engine).delete)},
}

func makesNothing(do func(*Engine, context.Context, engine.Request, *op.Trace) error) func(
	*Engine, context.Context, engine.Request, *op.Trace) ([]engine.Object, error) {
	return func(e *Engine, ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
		return nil, do(e, ctx, r, tr)
	}
}

func offersSnapshots(d *driver) bool {
	return d.controllerCaps[csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT]
}

// Capabilities of a single machine. What a driver offers is known after Open.
func (e *Engine) Capabilities() engine.Capabilities {
	c := engine.Capabilities{
		Engine: "local", BuiltInDrivers: true,
		Actions:  map[op.Kind]bool{},
		Features: map[string]bool{"groupSnapshot": true, "block": true, "rwx": true, ioLimit: true},
	}
	for kind := range actions {
		c.Actions[kind] = true
	}
	return c
}

// Do carries out one request; see engine.Engine.
func (e *Engine) Do(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	tr.On(e.node, r.Name)
	tr.Attempt()
	a, ok := actions[r.Kind]
	if !ok {
		return nil, &engine.Error{Code: "InvalidArgument", Message: "unknown kind of op " + string(r.Kind)}
	}
	return a.do(e, withTrace(ctx, tr, ""), r, tr)
}

// create makes a workload or a volume.
func (e *Engine) create(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	if r.Workload != nil {
		return e.createWorkload(ctx, r, tr)
	}
	return e.createVolume(ctx, r, tr)
}

func (e *Engine) takeSnapshots(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	if r.Snapshot.Group {
		return e.groupSnapshot(ctx, r, tr)
	}
	return e.snapshot(ctx, r, tr)
}

// delete removes an object with its dependants.
func (e *Engine) delete(ctx context.Context, r engine.Request, tr *op.Trace) error {
	o := r.Target
	tr.On(e.node, o.Name)
	switch o.Kind {
	case engine.VolumeObject:
		return e.deleteVolume(ctx, o.Name)
	case engine.SnapshotObject:
		return e.deleteSnapshot(ctx, o.Name)
	case engine.GroupSnapshotObject:
		return e.deleteGroup(ctx, o.Name)
	case engine.WorkloadObject:
		return e.deleteWorkload(ctx, o.Name)
	}
	return &engine.Error{Code: "InvalidArgument", Message: fmt.Sprintf("cannot delete a %s", o.Kind)}
}
