package dataset

import (
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Query is what a Prometheus server answered to one query during the run.
type Query struct {
	Name   string
	Series []QuerySeries
	// Readings have an entry for each instant, without the values.
	Readings []op.QueryReading
}

// QuerySeries is one series of a query. It has no points where there was no value.
type QuerySeries struct {
	Labels map[string]string
	Points []metric.Point
}

// Name is the series as Prometheus writes it.
func (s *QuerySeries) Name() string {
	var parts []string
	for _, k := range slices.Sorted(maps.Keys(s.Labels)) {
		if k != "__name__" {
			parts = append(parts, k+"="+s.Labels[k])
		}
	}
	if name := s.Labels["__name__"]; name != "" || len(parts) == 0 {
		parts = slices.Insert(parts, 0, name)
	}
	return strings.TrimSpace(strings.Join(parts, " "))
}

// Add adds an answer. Answers come in order of time.
func (q *Query) Add(r op.QueryReading) {
	for _, v := range r.Values {
		if v.Series == len(q.Series) {
			q.Series = append(q.Series, QuerySeries{Labels: v.Labels})
		}
		if v.Series >= 0 && v.Series < len(q.Series) {
			s := &q.Series[v.Series]
			s.Points = append(s.Points, metric.Point{At: r.At, Value: v.Value})
		}
	}
	r.Values = nil
	q.Readings = append(q.Readings, r)
}

// Forget drops the answers before an instant.
func (q *Query) Forget(before op.Time) {
	q.Readings = slices.DeleteFunc(q.Readings, func(r op.QueryReading) bool { return r.At < before })
	for i := range q.Series {
		s := &q.Series[i]
		s.Points = slices.DeleteFunc(s.Points, func(p metric.Point) bool { return p.At < before })
	}
}

// QueryFigure is a query, or one of its series, over some of its instants.
type QueryFigure struct {
	Mean, Min, Max float64 // the mean over time of each series, and of these the mean
	N              int64   // values
	Instants, Gaps int64   // and those without a value
}

// Over returns the figure of the instants that are wanted; N is 0 without values. Gaps are left out, never filled.
func (q *Query) Over(wanted func(at op.Time) bool) QueryFigure {
	f := QueryFigure{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, r := range q.Readings {
		if wanted(r.At) {
			f.Instants++
			if r.Problem != "" {
				f.Gaps++
			}
		}
	}
	series := 0
	for i := range q.Series {
		if one := q.Series[i].Over(wanted); one.N > 0 {
			f.Mean, f.N = f.Mean+one.Mean, f.N+one.N
			f.Min, f.Max = min(f.Min, one.Min), max(f.Max, one.Max)
			series++
		}
	}
	f.Mean /= float64(max(1, series))
	return f
}

// Over returns the figure of one series.
func (s *QuerySeries) Over(wanted func(at op.Time) bool) QueryFigure {
	f := QueryFigure{Min: math.Inf(1), Max: math.Inf(-1)}
	for _, p := range s.Points {
		if wanted(p.At) {
			f.N++
			f.Mean += (p.Value - f.Mean) / float64(f.N)
			f.Min, f.Max = min(f.Min, p.Value), max(f.Max, p.Value)
		}
	}
	return f
}
