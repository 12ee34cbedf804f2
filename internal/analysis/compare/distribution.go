package compare

import (
	"fmt"
	"slices"
	"strings"

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

// OfTrials says whether the quantiles are of trials, not within two single runs.
func (d *Distribution) OfTrials() bool { return d.StepsA == 0 }

// Times is the ratio with its interval: "×1.33 [0.71, 2.00]".
func (q *QuantileRatio) Times() string {
	return (&Answer{Ratio: q.Ratio, Low: q.Low, High: q.High}).Times()
}

// Sentences name the quantiles that differ.
func (d *Distribution) Sentences() (list []string) {
	if d.OfTrials() { // their table has them
		return nil
	}
	for i := range d.Quantiles {
		q := &d.Quantiles[i]
		if q.Low != nil && (*q.Low > 1 || *q.High < 1) {
			list = append(list, fmt.Sprintf("Within these two runs the p%g of %s differs: %s against %s, %s.", 100*q.Q, d.Metric,
				d.B, d.A, q.Times()))
		}
	}
	return list
}

// QuantilesNote says how to read the quantiles of a list that are of trials, or those that are not. "" if there are none.
func QuantilesNote(list []Distribution, ofTrials bool) string {
	var units []string
	for i := range list {
		d := &list[i]
		switch {
		case d.OfTrials() != ofTrials || len(d.Quantiles) == 0:
		case !ofTrials:
			return fmt.Sprintf("a: %s, b: %s; how these two runs differ, not whether two others would", d.A, d.B)
		default:
			for _, q := range d.Quantiles {
				if unit := q.UnitOfAnalysis + " (" + q.Scope + ")"; !slices.Contains(units, unit) {
					units = append(units, unit)
				}
			}
		}
	}
	if len(units) == 0 {
		return ""
	}
	return "one value of a quantile for each trial, where all have the operations that it needs (p90 29, p99 299); unit: " +
		strings.Join(units, ", ") + "; intervals by rank tests, not adjusted for the number of rows: no verdicts"
}
