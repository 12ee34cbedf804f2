package compare

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/stats"
)

// SeriesOf are the values of a metric within one trial: counts for each step of time, in order.
type SeriesOf struct {
	Metric string
	Steps  []stats.Counts
}

// quantiles that are compared, each if both sides have enough values for it.
var quantiles = []float64{0.5, 0.9, 0.99}

// Distributions compares the metrics that both trials have.
func Distributions(a, b string, of, with []SeriesOf) []Distribution {
	var list []Distribution
	for _, x := range of {
		for _, y := range with {
			if x.Metric != y.Metric {
				continue
			}
			d := Distribution{Metric: x.Metric, A: a, B: b, StepsA: len(x.Steps), StepsB: len(y.Steps)}
			for _, q := range quantiles {
				if min(total(x.Steps), total(y.Steps)) < stats.MinN(q) {
					continue
				}
				if r, ok := stats.QuantileRatio(y.Steps, x.Steps, q, 1); ok {
					d.Quantiles = append(d.Quantiles, QuantileRatio{Q: q, Ratio: number(r.Value), Low: number(r.Low),
						High: number(r.High)})
				}
			}
			if len(d.Quantiles) > 0 {
				list = append(list, d)
			}
		}
	}
	return list
}

func total(steps []stats.Counts) (n int64) {
	for _, s := range steps {
		for _, c := range s {
			n += c.N
		}
	}
	return n
}

// Sentences name the quantiles that differ.
func (d *Distribution) Sentences() (list []string) {
	if d.StepsA == 0 { // of trials, whose table has them
		return nil
	}
	for _, q := range d.Quantiles {
		if q.Low != nil && (*q.Low > 1 || *q.High < 1) {
			times := (&Answer{Ratio: q.Ratio, Low: q.Low, High: q.High}).Times()
			list = append(list, fmt.Sprintf("Within these two runs the p%g of %s differs: %s against %s, %s.", 100*q.Q, d.Metric,
				d.B, d.A, times))
		}
	}
	return list
}
