package run

import (
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
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

// collectChecks parses the reports of all checks. Of the warnings of one action with one code it keeps the first, with
// their number: each snapshot of a driver that copies slowly may have one.
func (r *runner) collectChecks() {
	first, total := map[warned]parser.Warning{}, map[warned]int{}
	for _, c := range r.checks.ended {
		in := r.input(c.name, engine.CheckOutput)
		in.Made = &parser.Interval{}
		if source, at, known := r.checks.origin(c.of); known {
			in.Made = &at
			in.Earlier = r.outputsOf(source.Owner, math.MaxInt64)
		}
		result, err := parser.Integrity(in)
		for _, w := range result.Warnings {
			key := warned{c.action, w.Code}
			if total[key]++; total[key] == 1 {
				w.Message = c.name + ": " + w.Message
				first[key] = w
			}
		}
		result.Warnings = nil
		r.take(origin{c.action, c.name, c.name, 0}, result, err)
	}
	for key, w := range first {
		if more := total[key] - 1; more > 0 {
			w.Message += fmt.Sprintf("; and %d more checks", more)
		}
		r.take(origin{action: key.action, source: key.action}, parser.Result{Warnings: []parser.Warning{w}}, nil)
	}
}

// warned are the warnings of an action with one code.
type warned struct{ action, code string }

// outputsOf returns the outputs of the containers of an instance that started before an instant, in the order of their
// starts.
func (r *runner) outputsOf(instance string, before op.Time) (list []fs.FS) {
	for _, name := range r.instances.startedBefore(instance, before) {
		dir := filepath.Join(r.RawDir, instance, name)
		if _, err := os.Stat(dir); err == nil { // it has written something
			list = append(list, os.DirFS(dir))
		}
	}
	return list
}
