package summary

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/shape"
	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/analysis/throughput"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// tally sums one action's ops in one pass.
type tally struct {
	name, rate                  string
	kind                        op.Kind
	outcomes                    map[op.Outcome]int64
	lateness, response, service stats.Sample
	milestones, spans           spanSet
	courses                     shape.Cache[*course]
	failures                    dataset.Failures
	intended, started           throughput.Extent
	attribution                 attribution.Tally
	causes                      attribution.Search
	maxErr                      int64  // greatest ± of a milestone
	noOps                       string // why there is none
	achieved                    *float64
}

func newTally(d *dataset.Data, name string, kind op.Kind) *tally {
	t := &tally{name: name, kind: kind, outcomes: map[op.Outcome]int64{}}
	t.attribution.OneMachine = d.Bundle.Run.OneMachine()
	t.courses.Make = func(sketch *op.Op) *course {
		return &course{sketch: sketch, spans: t.spans.passages(span.Of(sketch))}
	}
	return t
}

// tallies are those of all actions.
type tallies struct {
	data   *dataset.Data
	known  attribution.Context
	byName map[string]*tally
}

// of returns the tally of an op's action.
func (ts *tallies) of(o *op.Op) *tally {
	t := ts.byName[o.Action]
	if t == nil {
		t = newTally(ts.data, o.Action, o.Kind)
		t.causes.Context = ts.known
		t.causes.ClosedLoop = closedLoop(ts.data, o.Action)
		ts.byName[o.Action] = t
	}
	return t
}

// tallyOps sums all ops by action, in the order of the spec, then by name. Actions of the
// spec without ops are included. They are added to meters, and visit is called for each too, in a goroutine of its own.
func tallyOps(d *dataset.Data, meters *throughput.Meters, visit func(*op.Op)) ([]*tally, error) {
	times := tallies{d, causeContext(d), map[string]*tally{}}
	parts := tallies{d, times.known, map[string]*tally{}}
	workers := newPool(func(o *op.Op) { times.of(o).add(o) }, func(o *op.Op) { parts.of(o).attribute(o) },
		func(o *op.Op) { meters.Add(o); visit(o) })
	for batch, err := range d.Bundle.OpBatches(inUse) {
		if err != nil {
			workers.wait()
			return nil, err
		}
		workers.add(batch)
	}
	workers.wait()
	byName := times.byName
	for name, t := range byName {
		t.attribution, t.causes = parts.byName[name].attribution, parts.byName[name].causes
	}
	for name, t := range byName {
		if v, _, ok := meters.PerSecond(name); ok {
			t.achieved = &v
		}
	}
	addActionsWithoutOps(d, byName)
	position := map[string]int{}
	for i, a := range d.Spec.Actions {
		position[a.Name] = i - len(d.Spec.Actions)
		byName[a.Name].rate = a.RateName
	}
	return slices.SortedFunc(maps.Values(byName), func(a, b *tally) int {
		return cmp.Or(cmp.Compare(position[a.name], position[b.name]), cmp.Compare(a.name, b.name))
	}), nil
}

// Actions are the figures of each action of data that is already read, as in a Summary.
func Actions(d *dataset.Data) ([]Action, error) {
	tallies, err := tallyOps(d, throughput.NewMeters(d), func(*op.Op) {})
	if err != nil {
		return nil, err
	}
	var actions []Action
	for _, t := range tallies {
		actions = append(actions, t.action())
	}
	return actions, nil
}

func (t *tally) add(o *op.Op) {
	t.outcomes[o.Outcome]++
	t.intended.Add(o.Intended)
	if v, ok := o.Lateness(); ok {
		t.lateness.Add(v)
		t.started.Add(o.Started)
	}
	dataset.AddLatencies(o, &t.response, &t.service)
	if o.Outcome != op.OK {
		t.failures.Add(o)
	}
	for i := range o.Milestones {
		t.maxErr = max(t.maxErr, o.Milestones[i].Err)
	}
	if c, at, ok := t.courses.Of(o); ok {
		t.addCourse(c, o, at)
		return
	}
	for _, p := range span.Of(o) {
		t.spans.add(t.spans.index(&p), p.Ns, p.Err)
	}
	if o.Outcome != op.Error { // the instants of a failure are no latencies
		for _, p := range reached(o) {
			t.milestones.add(t.milestones.index(&p), p.Ns, 0)
		}
	}
}

// course is what the ops of a shape have in common.
type course struct {
	sketch            *op.Op // nil: milestones are known
	spans, milestones []passage
}

func (t *tally) addCourse(c *course, o *op.Op, at []op.Time) {
	t.spans.addPassages(c.spans, o, at)
	if o.Outcome == op.Error { // the instants of a failure are no latencies
		return
	}
	if c.sketch != nil {
		c.milestones, c.sketch = t.milestones.passages(reached(c.sketch)), nil
	}
	t.milestones.addPassages(c.milestones, o, at)
}

// attribute adds an op to the time of components, which takes as long as all else.
func (t *tally) attribute(o *op.Op) {
	t.attribution.Add(o)
	t.causes.Add(o)
}

func (t *tally) action() Action {
	a := Action{
		Name: t.name, Kind: t.kind, Rate: t.rate, N: t.intended.N, NoOps: t.noOps, Outcomes: t.outcomes,
		Lateness: latencyOf(&t.lateness), Response: latencyOf(&t.response), Service: latencyOf(&t.service),
		Milestones: t.milestones.list(), Spans: t.spans.list(), Attribution: t.attribution.Shares(), Causes: t.causes.Causes(),
		Failures: t.failures.List(),
	}
	a.StandsOut = t.causes.StandsOut(a.Causes)
	a.OfferedPerSecond, _ = t.rates()
	a.AchievedPerSecond = t.achieved
	return a
}

// rates returns the rate of ops due after the first instant over the time since it, and
// that of ops that were ok over the same time, or that of the starts where it is longer,
// so that a backlog lowers it: the rate at which they were started.
func (t *tally) rates() (offered, started *float64) {
	o, ok := t.intended.PerSecond()
	if !ok {
		return nil, nil
	}
	length := max(t.intended.Last-t.intended.First, t.started.Last-t.started.First)
	done := float64(t.outcomes[op.OK]) * float64(t.intended.N-t.intended.AtFirst) / float64(t.intended.N)
	a := done / (float64(length) / 1e9)
	return &o, &a
}

func (t *tally) facts(a Action) validity.Action {
	f := validity.Action{
		Name: t.name, N: a.N, Failed: t.outcomes[op.Error] + t.outcomes[op.Timeout],
		Censored: t.outcomes[op.Censored], Dropped: t.outcomes[op.Dropped], MaxErrorNs: t.maxErr,
	}
	f.Started, f.Scheduled = t.lateness.N(), t.rate != ""
	if p50, ok := t.lateness.Quantile(0.5); ok {
		p99, _ := t.lateness.Quantile(0.99)
		f.LatenessP50Ns, f.LatenessP99Ns = p50.Value, p99.Value
	}
	if e, ok := t.response.Quantile(0.5); ok && !e.Infinite {
		f.ResponseP50Ns = e.Value
	} else { // most were never started
		f.ResponseP50Ns, _ = t.response.MedianKnown()
	}
	f.DoubtfulSpans = t.spans.doubtful()
	for _, s := range a.Attribution {
		if attribution.DriverUnseen(s.Component) {
			f.DriverUnseen += s.Share
		}
		if s.Component == attribution.Harness || s.Component == attribution.HarnessOrDriver {
			f.Harness += s.Share
		}
	}
	if offered, started := t.rates(); offered != nil {
		f.OfferedPerSecond, f.StartedPerSecond = *offered, *started
	}
	return f
}
