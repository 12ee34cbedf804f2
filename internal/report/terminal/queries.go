package terminal

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// maxQuerySeries bounds the series of one query; the report has the rest.
const maxQuerySeries = 5

// queries shows what a Prometheus server answered.
func (p *printer) queries(s *summary.Summary) {
	t := table{head: []string{"Prometheus", "mean", "min", "max", "n"}}
	for i := range s.Queries {
		q := &s.Queries[i]
		for _, x := range q.Series[:min(maxQuerySeries, len(q.Series))] {
			t.row(q.Name+" "+x.Name, units.Count(x.Mean), units.Count(x.Min), units.Count(x.Max), fmt.Sprint(x.N))
		}
	}
	if len(t.rows) > 0 {
		p.table(t)
	}
	for i := range s.Queries {
		q := &s.Queries[i]
		if more := len(q.Series) - maxQuerySeries; more > 0 {
			p.note(fmt.Sprintf("%s: %d more series are in the report", q.Name, more))
		}
		if m := q.Missing(); m != "" {
			p.note(q.Name + ": " + summary.OneLine(m))
		}
	}
}
