package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// addActionsWithoutOps adds the actions of the file without ops, with the reason. An op
// that maxInFlight kept from starting is a dropped op, and counts as one.
func addActionsWithoutOps(d *dataset.Data, tallies map[string]*tally) {
	var unfired []*tally
	for i := range d.Spec.Actions {
		a := &d.Spec.Actions[i]
		if tallies[a.Name] == nil {
			t := newTally(d, a.Name, a.Kind)
			t.noOps = noOpReason(d, a, func(action string) bool {
				return tallies[action] != nil &&
					tallies[action].started.N > 0
			})
			unfired = append(unfired, t)
		}
	}
	for _, t := range unfired {
		tallies[t.name] = t
	}
}

// noOpReason returns why an action had no op; began reports whether another action did.
func noOpReason(d *dataset.Data, a *dataset.Action, began func(action string) bool) string {
	run := &d.Bundle.Run
	rate := rateOf(d, a.RateName)
	start := dataset.Start{
		StartAfter:       cmp.Or(a.StartAfter, rate.StartAfter),
		StartAfterAction: cmp.Or(a.StartAfterAction, rate.StartAfterAction),
	}
	var heads []string
	for _, h := range d.Spec.Actions {
		if slices.Contains(h.Then, a.Name) {
			heads = append(heads, h.Name)
		}
	}
	fired := slices.IndexFunc(run.Rates, func(r bundle.RateStats) bool {
		return r.Name == a.RateName &&
			r.Triggers > 0
	})
	switch {
	case d.Bundle.Live:
		return "the run is in progress"
	case !d.Bundle.Complete && run.State != bundle.Running:
		return "the bundle is incomplete, and may lack its ops: see the warning"
	case !d.Bundle.Complete:
		return "the bundle was never closed: the run ended before it, or its ops were not written"
	case len(heads) > 0:
		return fmt.Sprintf("it follows each op of %s, and none began", strings.Join(heads, " and "))
	case !run.BarrierAt.Known():
		return "the run ended before its barrier"
	case start.StartAfterAction != "" && !began(start.StartAfterAction):
		return fmt.Sprintf("it starts after an op of %s has ended, and none began", start.StartAfterAction)
	case fired >= 0:
		return fmt.Sprintf("rate %s triggered %s, none of them for it", a.RateName,
			plural(run.Rates[fired].Triggers, "time"))
	case a.RateName != "":
		return fmt.Sprintf("rate %s%s triggered nothing %s", a.RateName, timing(rate, start), measured(run))
	case start.StartAfter != "":
		return fmt.Sprintf("it starts %s after the barrier, and nothing was due %s", start.StartAfter, measured(run))
	}
	return "the run ended before it"
}

func rateOf(d *dataset.Data, name string) dataset.Rate {
	i := slices.IndexFunc(d.Spec.Rates, func(r dataset.Rate) bool { return r.Name == name })
	if i < 0 {
		return dataset.Rate{}
	}
	return d.Spec.Rates[i]
}

// timing describes when a rate's first trigger is due.
func timing(r dataset.Rate, start dataset.Start) string {
	text := ""
	for _, x := range []*dataset.Interval{r.ConstantRate, r.BurstRate} {
		if x != nil && x.Interval != "" {
			text += ", interval " + x.Interval
		}
	}
	if start.StartAfter != "" {
		text += ", from " + start.StartAfter + " after the barrier"
	}
	if text != "" {
		text += ","
	}
	return text
}

// measured describes the time in which rates trigger.
func measured(r *bundle.Run) string {
	if r.EndedAt < r.BarrierAt {
		return "before the end of the run"
	}
	if r.State == bundle.Interrupted { // EndedAt is later, by what was still in progress
		return "before the run was interrupted"
	}
	return fmt.Sprintf("in the %s from the barrier to the end of the run",
		units.Duration(float64(r.EndedAt-r.BarrierAt)))
}
