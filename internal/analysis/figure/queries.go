package figure

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// queryPanel is the name of the panel with the answers of a Prometheus server.
const queryPanel = "Prometheus"

// addQueries adds a panel with a band for each query.
func (t *Timeline) addQueries(d *dataset.Data) {
	p := Panel{Instance: queryPanel}
	for i := range d.Queries {
		q := &d.Queries[i]
		instants := map[op.Time]op.Time{} // and the one after it
		for j, r := range q.Readings {
			if j+1 < len(q.Readings) {
				instants[r.At] = q.Readings[j+1].At
			}
		}
		var b Band
		for j := range q.Series {
			name := strings.TrimSpace(q.Name + " " + q.Series[j].Name())
			switch {
			case len(q.Series[j].Points) == 0:
			case j < maxLines:
				b.Lines = append(b.Lines, pieces(name, q.Series[j].Points, instants)...)
			default:
				p.Omitted = append(p.Omitted, name)
			}
		}
		if len(b.Lines) > 0 {
			p.Values = append(p.Values, b)
		}
	}
	if len(p.Values) > 0 {
		t.Panels = append(t.Panels, p)
	}
}

// pieces are lines of consecutive instants. A value holds until the next instant, and only half as long if that has
// none: a gap is seen as one.
func pieces(name string, points []metric.Point, next map[op.Time]op.Time) (lines []Line) {
	l := Line{Name: name}
	for i, p := range points {
		to, known := next[p.At]
		if !known {
			to = p.At
		}
		gap := i+1 == len(points) || points[i+1].At != to
		if gap {
			to = p.At + (to-p.At)/2
		}
		l.Points = append(l.Points, Point{p.At, to, p.Value})
		if gap {
			lines, l = append(lines, l), Line{Name: name}
		}
	}
	return lines
}
