package plan

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// replay assigns each record of each trace to an action of its rate that can execute
// it.
func replay(report *parse.Report, plan *Plan, recordings []recording, order []*node) {
	for _, r := range recordings {
		out := &plan.Rates[r.rate]
		p := assignment{out: out, made: map[string]int{}, there: map[string]*trace.Record{}, gone: map[string]bool{},
			left: map[string]int{}}
		for i, n := range order {
			if n.out.Rate == out.Name {
				p.actions = append(p.actions, candidate{i, n})
			}
		}
		if len(p.actions) == 0 {
			continue // checkRates warns of it
		}
		due := schedule.Trace{}
		for i := range r.records {
			if at := &r.records[i]; p.record(at) {
				due = append(due, time.Duration(float64(at.Time)*r.scale))
			}
		}
		out.Schedule = due
		longTrace(report, plan.Runtime, r.path+".source", out, due)
		for _, what := range sortedKeys(p.left) {
			report.Warn(r.path+".source", "", "%d of %d records are not replayed: %s", p.left[what], len(r.records), what)
		}
		if len(due) == 0 {
			report.Fail(r.path+".source", "an action with this rateName for what the trace does",
				"the actions of the rate do nothing of what is in the trace")
		}
	}
}

// longTrace warns of a trace with operations that are due after the end of the run.
func longTrace(report *parse.Report, runtime time.Duration, path string, out *Rate, due schedule.Trace) {
	left := 0
	for _, at := range due {
		if runtime > 0 && out.StartAfter+at >= runtime {
			left++
		}
	}
	if left > 0 {
		report.Warn(path, "a longer spec.runtime, or a smaller timeScale",
			"%d of the trace's %d operations are due after the run's end, %v after the barrier", left, len(due), runtime)
	}
}

// assignment is the state of the assignment of one trace to actions.
type assignment struct {
	out     *Rate
	actions []candidate
	made    map[string]int           // action that creates each existing object
	there   map[string]*trace.Record // objects that existed at the start of the trace
	gone    map[string]bool          // deleted objects
	left    map[string]int           // number of records that are not replayed, by reason
}

// candidate is an action of the rate, with its index in the plan.
type candidate struct {
	index int
	*node
}

// record appends the step for a record. It returns false if the record triggers
// nothing.
func (p *assignment) record(r *trace.Record) bool {
	switch {
	case r.Op == trace.End:
		return false
	case r.Time < 0 || r.Op == trace.Exists:
		p.there[r.Key()] = r
		return false
	}
	s, reason := p.step(r)
	if reason != "" {
		p.left[reason]++
		return false
	}
	p.out.Steps = append(p.out.Steps, s)
	return true
}

// step returns the step for a record: the action and its objects. If the record cannot
// be replayed, it returns the reason.
func (p *assignment) step(r *trace.Record) (s Step, reason string) {
	if !r.Op.Replayed() {
		return s, fmt.Sprintf("%s has no action of its own", r.Op)
	}
	on := r.Key()
	switch {
	case r.Op == trace.Create:
		on = ""
	case r.Op.Makes(): // the sources of the copy
		on = strings.Join(r.SourceKeys(), " ")
	}
	if p.gone[on] {
		return s, "they act on what was deleted before"
	}
	var ok bool
	if s.Action, ok = p.action(r, on); !ok {
		return s, fmt.Sprintf("no action of the rate does %s of a %s", r.Op, r.Kind)
	}
	if r.Op != trace.Create {
		if s.On = p.existing(on, r); s.On == "" {
			return s, "no action of the rate makes what they act on"
		}
	}
	if r.Op.Makes() {
		s.Makes = r.Key()
		p.made[s.Makes] = s.Action
		delete(p.gone, s.Makes)
	}
	if r.Op.Removes() {
		delete(p.made, s.On)
		p.gone[s.On] = true
	}
	return s, ""
}

// action chooses the action for a record among the actions of the rate with that kind.
// It prefers an action whose target is the action that created the object or, for a
// create, an action with the record's StorageClass. Otherwise it chooses the first.
func (p *assignment) action(r *trace.Record, on string) (index int, ok bool) {
	maker, known := p.made[on]
	for _, c := range p.actions {
		n := c.node
		if string(n.kind) != string(r.Op) || n.does.fits != nil && !n.does.fits(n, r) {
			continue
		}
		if known && n.out.Target != nil && n.out.Target.Action == p.name(maker) || r.Op == trace.Create &&
			r.Class != "" && n.class() == r.Class {
			return c.index, true
		}
		if !ok {
			index, ok = c.index, true
		}
	}
	return index, ok
}

func (p *assignment) name(index int) string {
	for _, c := range p.actions {
		if c.index == index {
			return c.out.Name
		}
	}
	return ""
}

// class returns the StorageClass of the first volume that an action creates, or an
// empty string.
func (n *node) class() string {
	if len(n.claims) == 0 {
		return ""
	}
	return className(&n.claims[0])
}

// existing ensures that an object exists when a record acts on it. For an object that
// existed before the trace began, it adds a step before the barrier. It returns the
// name of the object, or an empty string if no action creates it.
func (p *assignment) existing(object string, by *trace.Record) string {
	if object == "" { // the trace does not name the source of a copy
		object = "source of " + by.Key()
	}
	if _, ok := p.made[object]; ok {
		return object
	}
	before, s := p.there[object], Step{Makes: object}
	if before == nil {
		before = &trace.Record{Op: trace.Create, Kind: trace.Volume}
		if k, name, ok := strings.Cut(object, "/"); ok && !strings.HasPrefix(object, "source of") {
			before.Kind, before.Object = trace.Kind(k), name
		}
	}
	made := *before
	switch made.Kind {
	case trace.Snapshots:
		made.Op = trace.Snapshot
		if s.On = p.existing(strings.Join(made.SourceKeys(), " "), &made); s.On == "" {
			return ""
		}
	default:
		made.Op = trace.Create
	}
	var ok bool
	if s.Action, ok = p.action(&made, s.On); !ok {
		return ""
	}
	p.out.Before = append(p.out.Before, s)
	p.made[object] = s.Action
	return object
}
