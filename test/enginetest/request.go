package enginetest

import (
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Complete sets the Kind of a request that has none, and the Target of a copy, as the
// loop does.
func Complete(r engine.Request) engine.Request {
	switch {
	case r.Kind != "":
	case r.Volume != nil && r.Volume.FromSnapshot != nil:
		r.Kind, r.Target = op.Restore, *r.Volume.FromSnapshot
	case r.Volume != nil && r.Volume.FromVolume != nil:
		r.Kind, r.Target = op.Clone, *r.Volume.FromVolume
	case r.Workload != nil, r.Volume != nil, r.Manifest != nil:
		r.Kind = op.Create
	case r.Snapshot != nil:
		r.Kind = op.Snapshot
	case r.Drain != nil:
		r.Kind = op.Drain
	}
	return r
}
