package trial

import (
	"errors"
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// Quantiles gathers the quantiles of the latencies of trials. It is not safe for concurrent use.
type Quantiles struct {
	rows []observation.Row
	of   map[string]compare.QuantileOf
}

// Add adds those of a run as a trial with the levels, occasion, block and repetition of at. A quantile of too few
// operations is marked.
func (x *Quantiles) Add(at observation.Row, d *dataset.Data) error {
	metrics := operations(d)
	for _, a := range d.Spec.Actions {
		metrics = append(metrics, expr.Metric{Action: a.Name})
	}
	var queries []expr.Query
	for _, m := range metrics {
		for _, q := range compare.ComparedQuantiles() {
			queries = append(queries, expr.Query{Func: expr.Quantile, Q: q, Metric: m})
		}
	}
	answers, err := slo.Answers(d, queries)
	if err != nil {
		return err
	}
	if x.of == nil {
		x.of = map[string]compare.QuantileOf{}
	}
	for i, a := range answers {
		r, q := at, queries[i]
		r.Metric, r.Value = observation.Metric{Name: q.String(), Unit: metric.Nanoseconds}, a.Value.Number
		switch {
		case errors.Is(a.Err, expr.ErrNoData):
			continue
		case a.Err != nil:
			return fmt.Errorf("%s: %w", q, a.Err)
		case math.IsInf(r.Value, 1):
			r.State = observation.Infinite
		case slo.TooFew(q, a.Value):
			r.State = observation.Few
		case a.Value.AtLeast:
			r.State = observation.AtLeast
		}
		x.of[q.String()] = compare.QuantileOf{Metric: q.Metric.String(), Q: q.Q}
		x.rows = append(x.rows, r)
	}
	return nil
}

// Fill adds the quantiles to a table.
func (x *Quantiles) Fill(b *observation.Builder) *compare.Quantiles {
	for _, r := range x.rows {
		b.Add(r)
	}
	return &compare.Quantiles{Table: b.Table(), Of: x.of}
}
