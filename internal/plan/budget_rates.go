package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// triggers returns the maximum number of triggers of a rate, or the expected number
// if the schedule is random. ended is false if no bound is known before the run.
func triggers(runtime time.Duration, r *Rate) (n int64, ended bool) {
	length := r.Duration
	if runtime > 0 {
		left := max(runtime-r.StartAfter, 0)
		if length == 0 || left < length {
			length = left
		}
	}
	if c, ok := r.Schedule.(schedule.Ending); ok && (length > 0 || runtime == 0) {
		n, ended = c.Count(length)
		if r.Limit > 0 && (!ended || r.Limit < n) {
			n, ended = r.Limit, true
		}
		return n, ended
	}
	if r.Condition != nil && length > 0 {
		n = r.Condition.most(length)
		if r.Limit > 0 {
			n = min(n, r.Limit)
		}
		return n, true
	}
	if r.Schedule == nil || length == 0 && runtime == 0 {
		return r.Limit, r.Limit > 0
	}
	// 1e-6 compensates rounding: 30 s at an interval of 0.1 s is 300 triggers, not 299.
	expected := math.Floor(r.Schedule.PerSecond()*length.Seconds() + 1e-6)
	n = int64(min(expected, math.MaxInt64/4))
	if r.Limit > 0 && r.Limit < n {
		n = r.Limit
	}
	return n, true
}

// rateOf returns the rate that triggers an action, or nil if there is none.
func rateOf(p *Plan, n *node) *Rate {
	for i := range p.Rates {
		if r := &p.Rates[i]; r.Name == n.out.Rate && len(n.heads) == 0 {
			return r
		}
	}
	return nil
}

// triggersOf returns the maximum number of triggers of one action of a rate. A trace
// triggers an action once for each of its steps. A rate that counts up and down uses
// half of its triggers for each direction. A lifetime rate counts as one trigger for
// all objects.
func triggersOf(p *Plan, r *Rate, n *node) (times int64, ended bool) {
	if r.Lifetime != nil {
		return 1, true
	}
	times, ended = triggers(p.Runtime, r)
	c, closed := r.Schedule.(schedule.Closed)
	_, counts := c.Formula.(interface{ Level(int64) int64 })
	switch {
	case r.Steps != nil:
		times = 0
		for _, s := range slices.Concat(r.Before, r.Steps) {
			if p.Actions[s.Action].Name == n.out.Name {
				times++
			}
		}
	case closed && counts && n.out.Way() != schedule.NoWay:
		times = (times + 1) / 2
	}
	return times, ended
}

// openRate describes what a rate without an end adds, and until when.
func openRate(runtime time.Duration, r *Rate, parts map[string]float64) string {
	until := "until the workloads end"
	switch {
	case r.Duration > 0:
		until = fmt.Sprintf("for %v", r.Duration)
	case runtime > 0:
		until = fmt.Sprintf("until %v after the barrier", runtime)
	}
	var texts []string
	for _, thing := range sortedKeys(parts) {
		switch n := parts[thing]; {
		case r.Schedule == nil:
			texts = append(texts, thing)
		case math.IsInf(n, 1):
			texts = append(texts, "ever more "+thing)
		default:
			texts = append(texts, expr.Format(n*r.Schedule.PerSecond(), "digits")+" "+thing)
		}
	}
	last := len(texts) - 1
	what := texts[last]
	if last > 0 {
		what = strings.Join(texts[:last], ", ") + " and " + what
	}
	if r.Lifetime != nil {
		return fmt.Sprintf("%s: %s, one for each object, %v after it was made on average, %s", r.Name, what,
			r.Lifetime.Expected(), until)
	}
	if c := r.Condition; c != nil {
		return fmt.Sprintf("%s: %s for each time that its condition becomes true, at most each %v, %s", r.Name, what,
			max(c.Cooldown, c.Every()), until)
	}
	if r.Schedule == nil {
		return fmt.Sprintf("%s: as many %s as %d operations at once can make %s", r.Name, what, r.Parallelism, until)
	}
	return fmt.Sprintf("%s: %s per second %s", r.Name, what, until)
}
