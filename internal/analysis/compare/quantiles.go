package compare

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/observation"
)

// Quantiles are those of the latencies in each trial.
type Quantiles struct {
	Table *observation.Table
	// Of says what each metric of the table is.
	Of map[string]QuantileOf
}

// QuantileOf is a quantile of a metric.
type QuantileOf struct {
	Metric string
	Q      float64
}

// ComparedQuantiles are those of a distribution that are compared, in ascending order.
func ComparedQuantiles() []float64 { return slices.Clone(quantiles) }

// distributions compares the quantiles of the trials, level with level. The unit is that of all comparisons: each trial
// has one value of a quantile. A quantile that not all trials of a cell have is left out.
func (s *study) distributions() error {
	of := s.options.Quantiles
	if of == nil || !slices.ContainsFunc(of.Table.Cells, func(cell []string) bool {
		return s.options.Against == "" || cell[s.factor] == s.options.Against
	}) {
		return nil
	}
	o := Options{Factor: s.options.Factor, Trial: s.options.Trial, Against: s.options.Against, Paired: s.options.Paired,
		PerRepetition: s.options.PerRepetition, AA: s.options.AA}
	r, err := newStudy(of.Table, &o)
	if err != nil {
		return err
	}
	r.levels = s.levels // in their order
	place := func(c context) int {
		return slices.IndexFunc(s.contexts, func(x context) bool { return slices.Equal(x.levels, c.levels) })
	}
	slices.SortStableFunc(r.contexts, func(a, b context) int { return place(a) - place(b) })
	r.describe()
	for m := range of.Table.Metrics {
		for c := range r.contexts {
			r.compare(m, &r.contexts[c])
		}
	}
	for i := range r.result.Comparisons {
		c := &r.result.Comparisons[i]
		a := &c.Answer
		if a.Low == nil && c.Within != nil {
			a = c.Within
		}
		if len(r.weak[r.keyOf(c, c.A)])+len(r.weak[r.keyOf(c, c.B)]) > 0 || a.Low == nil {
			continue
		}
		q := of.Of[c.Metric]
		list := &s.result.Distributions
		at := slices.IndexFunc(*list, func(d Distribution) bool {
			return d.Metric == q.Metric && d.A == c.A && d.B == c.B && slices.Equal(d.Context, c.Context)
		})
		if at < 0 {
			at = len(*list)
			*list = append(*list, Distribution{Metric: q.Metric, A: c.A, B: c.B, Context: c.Context})
		}
		d := &(*list)[at]
		d.Quantiles = append(d.Quantiles, QuantileRatio{Q: q.Q, Ratio: a.Ratio, Low: a.Low, High: a.High, N: a.N,
			UnitOfAnalysis: a.UnitOfAnalysis, Scope: a.Scope})
	}
	return nil
}

// keyOf is the key of one level of a comparison.
func (s *study) keyOf(c *Comparison, level string) key {
	i := slices.IndexFunc(s.result.Cells, func(x Cell) bool {
		return x.Metric == c.Metric && x.Level == level && slices.Equal(x.Context, c.Context)
	})
	return s.result.Cells[i].key
}
