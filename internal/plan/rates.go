package plan

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// maxPerSecond is the highest accepted rate in triggers per second.
const maxPerSecond = 1e6

// resolveRates resolves spec.rates. It also returns the traces that they replay.
func resolveRates(g *graph) (rates []Rate, recordings []recording) {
	for i := range g.spec.Rates {
		r := &g.spec.Rates[i]
		path := fmt.Sprintf("spec.rates[%d]", i)
		out := Rate{
			Name: string(r.Name), StartAction: string(r.StartAfterAction),
			Duration: positive(g.Report, path+".duration", r.Duration), Queue: r.OnSaturation == "queue",
		}
		if r.StartAfter != nil {
			out.StartAfter = r.StartAfter.Duration.Duration
		}
		if r.Limit != nil {
			out.Limit = *r.Limit
		}
		if r.MaxInFlight != nil {
			out.MaxInFlight = int(*r.MaxInFlight)
		}
		if r.StartAfterAction != "" {
			checkStartAction(g.Report, g.spec.Actions, path+".startAfterAction", string(r.StartAfterAction))
		}
		if r.TraceRateSpec != nil {
			if read := readTrace(g, path+".traceRateSpec", r.TraceRateSpec, &out); read != nil {
				read.rate = i
				recordings = append(recordings, *read)
			}
		} else {
			resolveSchedule(g.Report, path, r, &out)
		}
		lateStart(g, path, &out)
		rates = append(rates, out)
	}
	return rates, recordings
}

// resolveSchedule sets the schedule of a rate that replays no trace, or its closed loop, lifetime
// or condition.
func resolveSchedule(report *parse.Report, path string, r *v1alpha1.Rate, out *Rate) {
	switch {
	case r.ConstantRateSpec != nil:
		at := path + ".constantRateSpec"
		c := schedule.Constant{}
		switch s := r.ConstantRateSpec; {
		case s.Interval != nil:
			c.Interval = interval(report, at+".interval", *s.Interval, 1)
		case s.PerSecond != nil:
			c.Rate = perSecond(report, at+".perSecond", *s.PerSecond)
		}
		if c.Interval > 0 || c.Rate > 0 {
			out.Schedule = c
		}
	case r.PoissonRateSpec != nil:
		if p := perSecond(report, path+".poissonRateSpec.perSecond", r.PoissonRateSpec.PerSecond); p > 0 {
			out.Schedule = schedule.Poisson{Rate: p}
		}
	case r.BurstRateSpec != nil:
		b := r.BurstRateSpec
		if d := interval(report, path+".burstRateSpec.interval", b.Interval, int(b.Size)); d > 0 && b.Size > 0 {
			out.Schedule = schedule.Burst{Size: int(b.Size), Interval: d}
		}
	case r.ConcurrencySpec != nil:
		out.Parallelism = int(r.ConcurrencySpec.Parallelism)
		out.UntilEnded = r.ConcurrencySpec.Until == "ended"
	case r.LifetimeRateSpec != nil:
		resolveLifetime(report, path+".lifetimeRateSpec", r.LifetimeRateSpec, out)
	case r.TriggerRateSpec != nil:
		resolveCondition(report, path+".triggerRateSpec", r.TriggerRateSpec, out)
	default:
		resolveFormula(report, path, r, out)
	}
}

// interval returns the time between groups of size triggers. It returns 0 if it
// reported a problem.
func interval(report *parse.Report, path string, d v1alpha1.Duration, size int) time.Duration {
	v := positive(report, path, &d)
	if v > 0 && float64(size)/v.Seconds() > maxPerSecond {
		report.Fail(path, "no more than a million a second",
			"%v makes %.7g triggers a second", v, float64(size)/v.Seconds())
		return 0
	}
	return v
}

// perSecond returns a rate in triggers per second. It returns 0 if it reported a
// problem.
func perSecond(report *parse.Report, path string, n v1alpha1.Number) float64 {
	switch {
	case !(n.Value > 0):
		report.Fail(path, "", "must be more than 0")
		return 0
	case n.Value > maxPerSecond:
		report.Fail(path, "no more than a million a second", "%.7g triggers a second are too many", n.Value)
		return 0
	}
	return n.Value
}

// lateStart warns of a rate whose first trigger is due after the end of the run.
func lateStart(g *graph, path string, r *Rate) {
	if g.runtime == 0 {
		return
	}
	first := r.StartAfter
	if r.Schedule != nil {
		if t, ok := r.Schedule.New(g.seed).Next(); ok {
			first += t.Due
		}
	}
	if first >= g.runtime {
		g.Warn(path, "", "the first trigger is due after %v, but the run ends after %v", first, g.runtime)
	}
}

// resolveActionRate resolves the rate of an action. startAfter and startAfterAction of an
// action give a rate with one trigger.
func resolveActionRate(g *graph, n *node) {
	name := string(n.spec.RateName)
	if n.spec.StartAfter != nil || n.spec.StartAfterAction != "" {
		once := onceRate(g, n)
		lateStart(g, n.path+".startAfter", &once)
		n.out.Rate = once.Name
		g.once = append(g.once, once)
		return
	}
	if name == "" {
		return
	}
	n.out.Rate = name
	r, ok := g.rates[name]
	if !ok {
		g.Fail(n.path+".rateName", hints.Suggest(name, sortedKeys(g.rates)), "rate %q not found", name)
		return
	}
	if c := r.ConcurrencySpec; c != nil && c.Until == "ended" && n.does != nil && n.made() != engine.WorkloadObject {
		g.Fail(n.path+".rateName", "until: running", "rate %q waits until a workload has ended, but %s makes none",
			name, n.does.field)
	}
}

// checkStartAction checks the startAfterAction of a rate or an action.
func checkStartAction(report *parse.Report, actions []v1alpha1.Action, path, name string) {
	var names []string
	for _, a := range actions {
		if string(a.Name) == name {
			return
		}
		names = append(names, string(a.Name))
	}
	report.Fail(path, hints.Suggest(name, names), "action %q not found", name)
}

// onceRate returns the rate of an action with startAfter or startAfterAction: one trigger
// during the run.
func onceRate(g *graph, n *node) Rate {
	r := Rate{Name: n.out.Name + ".startAfter", Limit: 1, Schedule: schedule.Constant{Interval: 1}}
	if n.spec.StartAfter != nil {
		r.Schedule = schedule.Constant{Interval: max(n.spec.StartAfter.Duration.Duration, 1)}
		return r
	}
	r.StartAction = string(n.spec.StartAfterAction)
	checkStartAction(g.Report, g.spec.Actions, n.path+".startAfterAction", r.StartAction)
	return r
}

// resolveFormula resolves a rate whose API type implements schedule.Formula.
func resolveFormula(report *parse.Report, path string, r *v1alpha1.Rate, out *Rate) {
	f, name := formulaOf(r)
	if f == nil {
		return
	}
	path += "." + name
	if checked, ok := f.(interface {
		Wrong() (field, problem string)
	}); ok {
		if field, problem := checked.Wrong(); problem != "" {
			report.Fail(path+"."+field, "", "%s", problem)
			return
		}
	}
	out.Schedule = schedule.Closed{Formula: f}
}

// resolveLifetime resolves a rate that triggers once for each object.
func resolveLifetime(report *parse.Report, path string, spec *v1alpha1.LifetimeRateSpec, out *Rate) {
	life := schedule.Lifetime{Mean: positive(report, path+".mean", spec.Mean)}
	for i, q := range spec.Quantiles {
		life.Quantiles = append(life.Quantiles, q.Duration.Duration)
		if i > 0 && life.Quantiles[i] < life.Quantiles[i-1] {
			report.Fail(fmt.Sprintf("%s.quantiles[%d]", path, i), "", "%v is less than the one before", q.Duration.Duration)
			return
		}
	}
	if life.Expected() > 0 {
		out.Lifetime = &life
	}
}
