package study

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
)

// What limited the rate of a step that did not hold.
const (
	ClientBound  = "client-bound"
	WorkerBound  = "worker-bound"
	StorageBound = "storage-bound"
)

// judge reads one step and adds it to the result. A step holds if the condition does, every operation succeeded, and
// the operations kept up with the rate. The message says why a step is undecided.
func (f *searching) judge(b *bundle.Bundle, t Trial, rate float64) (*summary.FindStep, string, error) {
	d, err := dataset.Read(b)
	if err != nil {
		return nil, "", err
	}
	sum, err := summary.Of(d)
	if err != nil {
		return nil, "", err
	}
	src, err := slo.NewSource(d, f.queries())
	if err != nil {
		return nil, "", err
	}
	s := f.dir.Search
	step := summary.FindStep{Stage: t.Name, PerSecond: rate, WindowNs: int64(s.window(rate))}
	var message string
	if rate == 0 {
		message = f.baseline(src, &step)
	} else {
		counted, err := count(b, s, rate)
		if err != nil {
			return nil, "", err
		}
		message = f.held(&step, counted, sum, src)
	}
	step.Undecided = message != ""
	f.result.Steps = append(f.result.Steps, step)
	return &f.result.Steps[len(f.result.Steps)-1], message, nil
}

// queries are those of the condition, also by service.
func (f *searching) queries() (list []expr.Query) {
	for _, q := range f.program.Queries() {
		q.Baseline = false
		list = append(list, q, byService(q))
	}
	return list
}

// baseline keeps the values of the step without the action.
func (f *searching) baseline(src expr.Source, step *summary.FindStep) string {
	f.base, f.hasBase = map[string]expr.Value{}, true
	for _, q := range f.program.Queries() {
		if !q.Baseline {
			continue
		}
		plain := q
		plain.Baseline = false
		v, err := src.Value(plain)
		if err == nil && (v.AtLeast || math.IsInf(v.Number, 0) || math.IsNaN(v.Number)) {
			err = fmt.Errorf("%w: it is not known exactly", expr.ErrNoData)
		}
		if err != nil {
			return fmt.Sprintf("%s: %v", q, err)
		}
		f.base[q.String()] = v
		step.Observed = append(step.Observed, expr.Observe(plain, v))
	}
	step.Held = true
	return ""
}

// view answers the queries of a condition from a step and the baseline; service: by service where a query has no view.
type view struct {
	step    expr.Source
	base    map[string]expr.Value
	service bool
}

// Value implements expr.Source.
func (w view) Value(q expr.Query) (expr.Value, error) {
	if q.Baseline {
		v, ok := w.base[q.String()]
		if !ok {
			return v, fmt.Errorf("%w: the baseline was not measured", expr.ErrNoData)
		}
		return v, nil
	}
	if w.service {
		q = byService(q)
	}
	return w.step.Value(q)
}

func byService(q expr.Query) expr.Query {
	if q.Metric.View == expr.Default && q.Metric.From == "" && q.Func.Latency() {
		q.Metric.View = expr.Service
	}
	return q
}

// held judges a step, and returns why it is undecided.
func (f *searching) held(step *summary.FindStep, n *counts, sum *summary.Summary, src expr.Source) string {
	s := f.dir.Search
	half := s.window(step.PerSecond).Seconds() / 2
	step.OfferedPerSecond, step.AchievedPerSecond = float64(n.due)/half, float64(n.done)/half
	if n.due > 0 {
		step.VisibleExcess = n.allowed / float64(n.due)
	}
	var action *summary.Action
	if i := slices.IndexFunc(sum.Actions, func(a summary.Action) bool { return a.Name == s.Action }); i >= 0 {
		action = &sum.Actions[i]
		step.Latency = action.Response
	}
	if n.all == 0 || action == nil {
		return errNoOps.Error()
	}
	v := f.program.Judge(view{src, f.base, false}, false)
	step.Observed = v.Observed
	var broken []string
	if n.notOK > 0 {
		broken = append(broken, fmt.Sprintf("%d of %d operations failed, were dropped or had not ended", n.notOK, n.all))
	}
	if float64(n.backlog) > n.allowed {
		if long := action.Service.P50.Ns; long != nil && float64(*long) > half*1e9 {
			return fmt.Sprintf("an operation takes %v, longer than half the window: use a longer --window",
				time.Duration(*long).Round(time.Millisecond))
		}
		broken = append(broken, fmt.Sprintf("in the second half of the window %d operations were due and %d ended: "+
			"the backlog grew by %d, chance explains %.0f", n.due, n.done, n.backlog, n.allowed))
	}
	if v.Status != expr.Pass && v.Status != expr.Fail && len(broken) == 0 {
		return v.Message
	}
	step.Held = v.Status == expr.Pass && len(broken) == 0
	if step.Held {
		return ""
	}
	f.bound(step, sum, src, n)
	step.Evidence = strings.Join(slices.DeleteFunc(append(broken, step.Evidence),
		func(s string) bool { return s == "" }), "; ")
	return ""
}

// bound says what limited a step that did not hold: this program, the permitted number of operations in flight, or
// the storage.
func (f *searching) bound(step *summary.FindStep, sum *summary.Summary, src expr.Source, n *counts) {
	step.Bound = StorageBound
	for _, flag := range sum.Validity {
		if (flag.Name == "dispatchLate" || flag.Name == "generatorCPUBound") && flag.Severity == validity.Warning {
			step.Bound, step.Evidence = ClientBound, flag.Name+": "+flag.Evidence
			return
		}
	}
	byService := f.program.Judge(view{src, f.base, true}, true).Status == expr.Pass
	if places := f.dir.Search.Places; byService && n.waited > 0 && places > 0 {
		step.Bound = WorkerBound
		step.Evidence = fmt.Sprintf("%d of %d operations waited for a place (maxInFlight is %[3]d); without that wait "+
			"the condition would have held", n.waited, n.all, places)
	}
}

// counts are those of a step's operations.
type counts struct {
	all, notOK int64
	waited     int64 // for a place
	// due and done are the operations that were due, and that ended, in the second half of the window; backlog is how
	// many more were due, and allowed how many more chance explains.
	due, done, backlog int64
	allowed            float64
}

// keepUp is the share by which the operations that end may fall behind those that are due.
const keepUp = 0.05

// count reads the operations of the searched action.
func count(b *bundle.Bundle, s *Search, rate float64) (*counts, error) {
	window := s.window(rate)
	end := b.Run.BarrierAt + op.Time(s.StartAfter+window)
	middle := end - op.Time(window/2)
	n := &counts{}
	for o, err := range b.Ops() {
		if err != nil {
			return nil, err
		}
		if o.Action != s.Action {
			continue
		}
		n.add(&o, middle, end)
	}
	n.backlog = n.due - n.done
	chance := 2.0
	if s.Schedule == Poisson { // two standard deviations of the number that was due
		chance = max(chance, 2*math.Sqrt(float64(n.due)))
	}
	n.allowed = max(chance, keepUp*float64(n.due))
	return n, nil
}

func (n *counts) add(o *op.Op, middle, end op.Time) {
	n.all++
	if o.Outcome != op.OK {
		n.notOK++
	}
	if dataset.Milestone(o, op.Unblocked).Known() {
		n.waited++
	}
	if o.Intended > middle && o.Intended <= end {
		n.due++
	}
	if o.Outcome == op.OK && o.Ended > middle && o.Ended <= end {
		n.done++
	}
}
