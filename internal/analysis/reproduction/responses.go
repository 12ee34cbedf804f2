package reproduction

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// factorName and trialName are the names of the compared factor and of one value.
const (
	factorName = "side"
	trialName  = "run"
)

// schedules compares the schedules of two runs. Rates that wait for the end of operations have none, and later steps
// of an episode neither.
func schedules(then, now run) ([]Schedule, error) {
	a, err := intended(then)
	if err != nil {
		return nil, err
	}
	b, err := intended(now)
	if err != nil {
		return nil, err
	}
	var plan resolved
	if len(then.bundle.Run.Plan) > 0 {
		if err := json.Unmarshal(then.bundle.Run.Plan, &plan); err != nil {
			return nil, fmt.Errorf("read plan of run.json: %w", err)
		}
	}
	list := []Schedule{}
	for _, action := range then.data.Spec.Actions {
		x, y := a[action.Name], b[action.Name]
		if action.RateName == "" || slices.Contains(plan.Closed, action.Name) || len(x)+len(y) == 0 {
			continue
		}
		s := Schedule{Action: action.Name, Then: len(x), Now: len(y)}
		for s.Equal < min(s.Then, s.Now) && x[s.Equal]-x[0] == y[s.Equal]-y[0] {
			s.Equal++
		}
		s.Same = s.Equal > 0 && s.Equal == min(s.Then, s.Now)
		list = append(list, s)
	}
	return list, nil
}

// intended has the scheduled instants of each action in order.
func intended(r run) (map[string][]op.Time, error) {
	all := map[string][]op.Time{}
	for o, err := range r.bundle.Ops() {
		if err != nil {
			return nil, err
		}
		if o.Intended.Known() {
			all[o.Action] = append(all[o.Action], o.Intended)
		}
	}
	for _, list := range all {
		slices.Sort(list)
	}
	return all, nil
}

// results compares the figures.
func (r *Result) results(then, now []run) error {
	b := observation.NewBuilder([]string{factorName}, "", "")
	index := map[string]int{}
	r.Responses = []Response{}
	for side, list := range [][]run{then, now} {
		for _, one := range list {
			for _, v := range one.values {
				i, ok := index[v.Metric.Name]
				if !ok {
					i = len(r.Responses)
					index[v.Metric.Name] = i
					r.Responses = append(r.Responses, Response{Metric: v.Metric.Name, Unit: v.Metric.Unit, Then: []*float64{},
						Now: []*float64{}})
				}
				r.Responses[i].add(side, v)
				b.Add(observation.Row{Levels: []string{[]string{Then, Now}[side]}, Metric: v.Metric, Value: v.Value,
					State: v.State})
			}
		}
	}
	for i := range r.Responses {
		r.Responses[i].conclude()
	}
	table := b.Table()
	if len(table.Cells) < 2 {
		return nil // one side has no figures
	}
	var err error
	r.Comparison, err = compare.Run(table, compare.Options{Factor: factorName, Trial: trialName, Against: Then,
		Directions: map[string]verdict.Direction{}})
	if err != nil || len(then) > 1 || len(now) > 1 {
		return err
	}
	return r.within(then[0], now[0])
}

// within compares the latencies within two single runs.
func (r *Result) within(then, now run) error {
	a, err := trial.Series(then.data)
	if err != nil {
		return err
	}
	b, err := trial.Series(now.data)
	if err != nil {
		return err
	}
	r.Comparison.Distributions = compare.Distributions(Then, Now, a, b)
	return nil
}

func (x *Response) add(side int, v trial.Value) {
	var value *float64
	if v.State != observation.Infinite {
		value = &v.Value
	}
	x.Bounds = x.Bounds || v.State == observation.AtLeast
	to := []*[]*float64{&x.Then, &x.Now}[side]
	*to = append(*to, value)
}

// conclude computes the ratio of the medians, and where the only earlier value is.
func (x *Response) conclude() {
	a, b := Median(x.Then), Median(x.Now)
	if a != nil && b != nil && *a > 0 {
		ratio := *b / *a
		x.Ratio = &ratio
	}
	if len(x.Then) == 1 && len(x.Now) > 1 && !x.Bounds {
		was := numbers(x.Then)[0]
		now := numbers(x.Now)
		outside := was < slices.Min(now) || was > slices.Max(now)
		x.Outside = &outside
	}
}

// Range returns the least and the greatest value; nil if it is infinite, or if there are no values.
func Range(list []*float64) (low, high *float64) {
	if len(list) == 0 {
		return nil, nil
	}
	values := numbers(list)
	known := func(v float64) *float64 {
		if math.IsInf(v, 0) {
			return nil
		}
		return &v
	}
	return known(slices.Min(values)), known(slices.Max(values))
}

// numbers returns the values with +Inf for nil.
func numbers(list []*float64) []float64 {
	values := make([]float64, len(list))
	for i, v := range list {
		values[i] = math.Inf(1)
		if v != nil {
			values[i] = *v
		}
	}
	return values
}

// Median returns the median; nil if it is infinite or there are no values.
func Median(list []*float64) *float64 {
	values := numbers(list)
	if m := stats.Median(values); len(values) > 0 && !math.IsInf(m, 0) && !math.IsNaN(m) {
		return &m
	}
	return nil
}
