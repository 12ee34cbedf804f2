package run

import (
	"slices"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/workload/parser"
)

// checks remembers of which data the checked volumes are copies, since objects may be deleted before the outputs are
// parsed. It does nothing in a run without checks. It is safe for concurrent use.
type checks struct {
	wanted bool

	mu    sync.Mutex
	made  map[string]copied // volumes and snapshots, by kind and name
	ended []check
}

// copied is an object and when it was made.
type copied struct {
	engine.Object
	at parser.Interval
}

// check is an op that checked a volume.
type check struct {
	action, name string
	of           copied
}

func newChecks(p *plan.Plan) *checks {
	return &checks{made: map[string]copied{},
		wanted: slices.ContainsFunc(p.Actions, func(a plan.Action) bool { return a.Kind == op.Check })}
}

func keyOf(kind engine.ObjectKind, name string) string { return string(kind) + "/" + name }

// hasMade remembers what an op made.
func (c *checks) hasMade(o *op.Op, made []engine.Object) {
	if !c.wanted {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	to := o.Ended
	if ready := o.Milestone(op.Ready); ready.Known() {
		to = ready
	}
	for _, m := range made {
		c.made[keyOf(m.Kind, m.Name)] = copied{m, parser.Interval{From: o.Started, To: to}}
	}
}

// hasChecked remembers an op that has checked a volume.
func (c *checks) hasChecked(t *task) {
	if t.action.Kind != op.Check || t.op.Outcome != op.OK {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = append(c.ended, check{t.action.Name, t.request.Name,
		c.made[keyOf(engine.VolumeObject, t.targets[0].Name)]})
}

// origin returns the volume of a workload that a volume is a copy of, directly or not, and when the first of the copies
// was made; false: not known.
func (c *checks) origin(v copied) (source engine.Object, at parser.Interval, ok bool) {
	for range maxCopies {
		from, known := c.made[keyOf(engine.SnapshotObject, v.Source)]
		if !known {
			from, known = c.made[keyOf(engine.VolumeObject, v.Source)]
		}
		switch {
		case !known:
			return engine.Object{}, at, false
		case from.Kind == engine.VolumeObject && from.Owner != "":
			return from.Object, v.at, true
		}
		v = from
	}
	return engine.Object{}, at, false
}

// maxCopies bounds a chain of copies.
const maxCopies = 1000
