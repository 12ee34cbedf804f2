package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// Uncounted returns the values without those that are counts of a metric of the list, such as transaction.failed.
func Uncounted(ms []Metric, values []dataset.Figure) []dataset.Figure {
	return slices.DeleteFunc(slices.Clone(values), func(v dataset.Figure) bool {
		return slices.ContainsFunc(ms, func(m Metric) bool {
			suffix, of := strings.CutPrefix(v.Metric, m.Name)
			return of && slices.Contains([]string{metric.Completed, metric.Failed, metric.Lost}, suffix)
		})
	})
}

// Amount formats a value of a metric with its unit.
func Amount(v float64, unit string) string {
	switch unit {
	case "", metric.Count:
		return units.Count(v)
	case metric.PerSecond:
		return units.Count(v) + "/s"
	}
	return expr.Format(v, unit)
}

// maxRates is how many figures of a workload are in its line of the headline.
const maxRates = 2

// principalParts are the values for the headline: the principal figures of the tool in its order; those of a tool that
// names none are the rates of which more is better.
func principalParts(values []dataset.Figure) (parts []string) {
	named := slices.ContainsFunc(values, func(v dataset.Figure) bool { return v.Rank > 0 })
	values = slices.SortedStableFunc(slices.Values(values), func(a, b dataset.Figure) int {
		return cmp.Compare(a.Rank,
			b.Rank)
	})
	for _, v := range values {
		principal := v.Rank > 0 || !named && v.Kind == metric.Rate && v.Better == metric.Higher
		if principal && len(parts) < maxRates {
			parts = append(parts, fmt.Sprintf("%s %s", v.Metric, Amount(v.Value, v.Unit)))
		}
	}
	return parts
}
