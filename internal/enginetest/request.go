package enginetest

import (
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Complete fills in Kind and Target of a request from what it asks for, as the
// loop does.
func Complete(r engine.Request) engine.Request {
	switch {
	case r.Volume != nil && r.Volume.FromSnapshot != nil:
		r.Kind, r.Target = op.Restore, *r.Volume.FromSnapshot
	case r.Volume != nil && r.Volume.FromVolume != nil:
		r.Kind, r.Target = op.Clone, *r.Volume.FromVolume
	case r.Workload != nil, r.Volume != nil, r.Manifest != nil:
		r.Kind = op.Create
	case r.Snapshot != nil:
		r.Kind = op.Snapshot
	case r.Resize != nil:
		r.Kind, r.Target = op.Resize, r.Resize.Target
	case r.Modify != nil:
		r.Kind, r.Target = op.Modify, r.Modify.Target
	case r.Reattach != nil:
		r.Kind, r.Target = op.Reattach, r.Reattach.Target
	case r.Rollout != nil:
		r.Kind, r.Target = op.Rollout, r.Rollout.Target
	case r.Drain != nil:
		r.Kind = op.Drain
	case r.Scale != nil:
		r.Kind, r.Target = op.Scale, r.Scale.Target
	case r.Kill != nil:
		r.Kind, r.Target = op.Kill, r.Kill.Target
	case r.Delete != nil:
		r.Kind, r.Target = op.Delete, r.Delete.Target
	}
	return r
}
