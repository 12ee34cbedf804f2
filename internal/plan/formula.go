package plan

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// formula resolves a rate whose API type implements schedule.Formula.
func (l *loader) formula(path string, r *v1alpha1.Rate, out *Rate) {
	f, name := formulaOf(r)
	if f == nil {
		return
	}
	path += "." + name
	if checked, ok := f.(interface {
		Wrong() (field, problem string)
	}); ok {
		if field, problem := checked.Wrong(); problem != "" {
			l.fail(path+"."+field, "", "%s", problem)
			return
		}
	}
	out.Schedule = schedule.Closed{Formula: f}
}

// directions checks that a constantIncreaseDecreaseRateSpec has actions for both
// directions.
func (l *loader) directions(order []*info) {
	for i := range l.spec.Rates {
		r := &l.spec.Rates[i]
		if r.ConstantIncreaseDecreaseRateSpec == nil {
			continue
		}
		makes, removes := false, false
		for _, n := range order {
			if n.out.Rate == string(r.Name) {
				makes = makes || n.out.Way() == schedule.Up
				removes = removes || n.out.Way() == schedule.Down
			}
		}
		if makes != removes {
			l.fail(fmt.Sprintf("spec.rates[%d]", i),
				"one action that makes things and one with a deleteSpec, both with this rateName",
				"the number of objects could only go one way")
		}
	}
}

// singling checks that the actions of a lifetimeRateSpec act on single objects.
func (l *loader) singling(order []*info) {
	for i := range l.spec.Rates {
		r := &l.spec.Rates[i]
		for _, n := range order {
			if n.out.Rate == string(r.Name) && r.LifetimeRateSpec != nil &&
				(n.out.Target == nil || n.out.Snapshot != nil && n.out.Snapshot.Group) {
				l.fail(n.path+".rateName", "such as a deleteSpec",
					"a lifetimeRateSpec is for actions that are done to single objects")
			}
		}
	}
}

// ends reports whether the schedule has a finite number of triggers.
func (r *Rate) ends() bool {
	c, ok := r.Schedule.(schedule.Ending)
	if !ok {
		return false
	}
	_, ended := c.Count(0)
	return ended
}

// lifetime resolves a rate that triggers once for each object.
func (l *loader) lifetime(path string, spec *v1alpha1.LifetimeRateSpec, out *Rate) {
	life := schedule.Lifetime{Mean: l.positive(path+".mean", spec.Mean)}
	for i, q := range spec.Quantiles {
		life.Quantiles = append(life.Quantiles, q.Duration.Duration)
		if i > 0 && life.Quantiles[i] < life.Quantiles[i-1] {
			l.fail(fmt.Sprintf("%s.quantiles[%d]", path, i), "", "%v is less than the one before", q.Duration.Duration)
			return
		}
	}
	if life.Expected() > 0 {
		out.Lifetime = &life
	}
}

// Closed reports whether the rate is a closed loop.
func (r *Rate) Closed() bool { return r.Parallelism > 0 }

// rateOf returns the rate that triggers an action, or nil if there is none.
func (l *loader) rateOf(n *info) *Rate {
	for i := range l.plan.Rates {
		if r := &l.plan.Rates[i]; r.Name == n.out.Rate && len(n.heads) == 0 {
			return r
		}
	}
	return nil
}

// triggersOf returns the maximum number of triggers of one action of a rate. A trace
// triggers an action once for each of its steps. A rate that counts up and down uses
// half of its triggers for each direction. A lifetime rate counts as one trigger for
// all objects.
func (l *loader) triggersOf(r *Rate, n *info) (times int64, ended bool) {
	if r.Lifetime != nil {
		return 1, true
	}
	times, ended = l.triggers(r)
	c, closed := r.Schedule.(schedule.Closed)
	_, counts := c.Formula.(interface{ Level(int64) int64 })
	switch {
	case r.Steps != nil:
		times = 0
		for _, s := range slices.Concat(r.Before, r.Steps) {
			if l.plan.Actions[s.Action].Name == n.out.Name {
				times++
			}
		}
	case closed && counts && n.out.Way() != schedule.NoWay:
		times = (times + 1) / 2
	}
	return times, ended
}
