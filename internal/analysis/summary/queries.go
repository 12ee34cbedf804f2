package summary

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// queries summarises the answers to all queries.
func queries(d *dataset.Data) (list []Query) {
	for i := range d.Queries {
		q := &d.Queries[i]
		one := Query{Name: q.Name, Expr: d.Spec.Metrics.Prometheus.Queries[q.Name], Gaps: map[op.QueryProblem]int64{},
			Series: []QuerySeries{}}
		for _, r := range q.Readings {
			if !d.Measured(r.At) {
				continue
			}
			one.Instants++
			if r.Problem == "" {
				continue
			}
			if one.Gaps[r.Problem]++; one.FirstGap == "" {
				one.FirstGap = fmt.Sprintf("at %s: %s", Instant(r.At), cmp.Or(r.Message, r.Problem.Words()))
			}
		}
		for j := range q.Series {
			s := &q.Series[j]
			if f := s.Over(d.Measured); f.N > 0 {
				one.Series = append(one.Series, QuerySeries{s.Name(), s.Labels, f.N, f.Mean, f.Min, f.Max})
			}
		}
		list = append(list, one)
	}
	return list
}

// Missing says how many instants have no value, and why; empty: all have one.
func (q *Query) Missing() string {
	var parts []string
	total := int64(0)
	for _, p := range slices.Sorted(maps.Keys(q.Gaps)) {
		parts = append(parts, fmt.Sprintf("%s %s", units.Count(float64(q.Gaps[p])), p))
		total += q.Gaps[p]
	}
	if total == 0 {
		return ""
	}
	return fmt.Sprintf("no value at %d of %d instants (%s); first %s", total, q.Instants, strings.Join(parts, ", "),
		q.FirstGap)
}

// queryFlags are the flags of queries without a value at some instants, or with series that are left out.
func queryFlags(d *dataset.Data, list []Query) (flags []bundle.Flag) {
	var gaps, left []string
	for i := range list {
		if m := list[i].Missing(); m != "" {
			gaps = append(gaps, fmt.Sprintf("query %s: %s", list[i].Name, OneLine(m)))
		}
	}
	for i := range d.Queries {
		most := 0
		for _, r := range d.Queries[i].Readings {
			most = max(most, r.LeftOut)
		}
		if most > 0 {
			left = append(left, fmt.Sprintf("query %s: up to %d series of an instant", d.Queries[i].Name, most))
		}
	}
	if len(gaps) > 0 {
		flags = append(flags, bundle.Flag{Name: "queryGaps", Severity: validity.Warning,
			Evidence: strings.Join(gaps, "; ") + "; these gaps are not filled"})
	}
	if len(left) > 0 {
		flags = append(flags, bundle.Flag{Name: "querySeriesLeftOut", Severity: validity.Info,
			Evidence: strings.Join(left, "; ") + ": they were not finite, were histograms, or beyond the first 100"})
	}
	return flags
}
