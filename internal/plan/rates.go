package plan

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// maxPerSecond is the highest accepted rate in triggers per second.
const maxPerSecond = 1e6

// resolveRates resolves spec.rates.
func (l *loader) resolveRates() {
	l.rates = map[string]*v1alpha1.Rate{}
	for i := range l.spec.Rates {
		r := &l.spec.Rates[i]
		l.rates[string(r.Name)] = r
		path := fmt.Sprintf("spec.rates[%d]", i)
		out := Rate{
			Name: string(r.Name), StartAction: string(r.StartAfterAction),
			Duration: l.positive(path+".duration", r.Duration), Queue: r.OnSaturation == "queue",
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
			l.startAfterAction(path+".startAfterAction", string(r.StartAfterAction))
		}
		l.schedule(path, r, &out)
		l.lateStart(path, &out)
		l.plan.Rates = append(l.plan.Rates, out)
	}
}

// schedule sets the schedule of a rate, or its closed loop, trace or lifetime.
func (l *loader) schedule(path string, r *v1alpha1.Rate, out *Rate) {
	switch {
	case r.ConstantRateSpec != nil:
		at := path + ".constantRateSpec"
		c := schedule.Constant{}
		switch s := r.ConstantRateSpec; {
		case s.Interval != nil:
			c.Interval = l.interval(at+".interval", *s.Interval, 1)
		case s.PerSecond != nil:
			c.Rate = l.perSecond(at+".perSecond", *s.PerSecond)
		}
		if c.Interval > 0 || c.Rate > 0 {
			out.Schedule = c
		}
	case r.PoissonRateSpec != nil:
		if p := l.perSecond(path+".poissonRateSpec.perSecond", r.PoissonRateSpec.PerSecond); p > 0 {
			out.Schedule = schedule.Poisson{Rate: p}
		}
	case r.BurstRateSpec != nil:
		b := r.BurstRateSpec
		if d := l.interval(path+".burstRateSpec.interval", b.Interval, int(b.Size)); d > 0 && b.Size > 0 {
			out.Schedule = schedule.Burst{Size: int(b.Size), Interval: d}
		}
	case r.ConcurrencySpec != nil:
		out.Parallelism = int(r.ConcurrencySpec.Parallelism)
		out.UntilEnded = r.ConcurrencySpec.Until == "ended"
	case r.TraceRateSpec != nil:
		l.trace(path, r.TraceRateSpec, out)
	case r.LifetimeRateSpec != nil:
		l.lifetime(path+".lifetimeRateSpec", r.LifetimeRateSpec, out)
	case r.TriggerRateSpec != nil:
		l.later(path+".triggerRateSpec", "triggerRateSpec")
	default:
		l.formula(path, r, out)
	}
}

// interval returns the time between groups of size triggers. It returns 0 if it
// reported a problem.
func (l *loader) interval(path string, d v1alpha1.Duration, size int) time.Duration {
	v := l.positive(path, &d)
	if v > 0 && float64(size)/v.Seconds() > maxPerSecond {
		l.fail(path, "no more than a million a second", "%v makes %.3g triggers a second", v, float64(size)/v.Seconds())
		return 0
	}
	return v
}

// perSecond returns a rate in triggers per second. It returns 0 if it reported a
// problem.
func (l *loader) perSecond(path string, n v1alpha1.Number) float64 {
	switch {
	case !(n.Value > 0):
		l.fail(path, "", "must be more than 0")
		return 0
	case n.Value > maxPerSecond:
		l.fail(path, "no more than a million a second", "%.3g triggers a second are too many", n.Value)
		return 0
	}
	return n.Value
}

// lateStart warns of a rate whose first trigger is due after the end of the run.
func (l *loader) lateStart(path string, r *Rate) {
	if l.plan.Runtime == 0 {
		return
	}
	first := r.StartAfter
	if r.Schedule != nil {
		if t, ok := r.Schedule.New(l.plan.Seed).Next(); ok {
			first += t.Due
		}
	}
	if first >= l.plan.Runtime {
		l.warn(path, "", "the first trigger is due after %v, but the run ends after %v", first, l.plan.Runtime)
	}
}

// actionRate resolves the rate of an action. startAfter and startAfterAction of an
// action give a rate with one trigger.
func (l *loader) actionRate(n *info) {
	name := string(n.spec.RateName)
	if n.spec.StartAfter != nil || n.spec.StartAfterAction != "" {
		once := l.once(n)
		l.lateStart(n.path+".startAfter", &once)
		n.out.Rate = once.Name
		l.plan.Rates = append(l.plan.Rates, once)
		return
	}
	if name == "" {
		return
	}
	n.out.Rate = name
	r, ok := l.rates[name]
	if !ok {
		l.fail(n.path+".rateName", suggest(name, sortedKeys(l.rates)), "rate %q not found", name)
		return
	}
	l.used[name] = true
	if c := r.ConcurrencySpec; c != nil && c.Until == "ended" && n.does != nil && n.made() != engine.WorkloadObject {
		l.fail(n.path+".rateName", "until: running", "rate %q waits until a workload has ended, but %s makes none",
			name, n.does.field)
	}
}

func (l *loader) unusedRates() {
	for i, r := range l.spec.Rates {
		if !l.used[string(r.Name)] {
			l.warn(fmt.Sprintf("spec.rates[%d].name", i), "rateName of an action would use it",
				"no action uses rate %q", r.Name)
		}
	}
}
