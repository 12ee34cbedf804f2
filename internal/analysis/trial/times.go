package trial

import (
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Times gathers the times of components of trials. It is not safe for concurrent use.
type Times struct {
	trials   []timesOf
	seen     map[string]map[string]bool // components by action
	explains map[string]compare.Explained
}

// timesOf are the times of one trial, with its place in the table.
type timesOf struct {
	at    observation.Row
	times map[string]map[string]float64
}

// Add adds the times of the ops of a bundle as those of a trial with these levels, occasion, block and repetition.
func (t *Times) Add(at observation.Row, b *bundle.Bundle) error {
	times, err := Components(b)
	if err != nil {
		return err
	}
	if t.seen == nil {
		t.seen = map[string]map[string]bool{}
	}
	for action, of := range times {
		if t.seen[action] == nil {
			t.seen[action] = map[string]bool{}
		}
		for component := range of {
			t.seen[action][component] = true
		}
	}
	t.trials = append(t.trials, timesOf{at, times})
	return nil
}

// Explain notes what the times explain of the values of a query.
func (t *Times) Explain(q expr.Query) {
	if t.explains == nil {
		t.explains = map[string]compare.Explained{}
	}
	latency := q.Metric.From == "" && (q.Metric.Name == "" || q.Metric.Name == op.Ready)
	switch q.Func {
	case expr.Quantile, expr.Min, expr.Max, expr.Mean:
		if latency {
			t.explains[q.String()] = compare.Explained{Action: q.Metric.Action}
		}
	case expr.Interference:
		t.explains[q.String()] = compare.Explained{Action: q.Windows[0].Action, Disturbed: q.Metric.String()}
	}
}

// Fill adds the times to a table: a value for each component of an action in each trial that has ops of it.
func (t *Times) Fill(b *observation.Builder) *compare.Times {
	for _, action := range slices.Sorted(maps.Keys(t.seen)) {
		for _, component := range slices.Sorted(maps.Keys(t.seen[action])) {
			for _, x := range t.trials {
				if len(x.times[action]) == 0 {
					continue
				}
				r := x.at
				r.Metric, r.Value = compare.TimeOf(action, component), x.times[action][component]
				b.Add(r)
			}
		}
	}
	return &compare.Times{Table: b.Table(), Explains: t.explains}
}
