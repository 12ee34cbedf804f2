package figure

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestReduce: of a line with too many points successive ones are joined, by their mean over time or their greatest
// value, but none across a gap; others are left alone.
func TestReduce(t *testing.T) {
	const s = op.Time(1e9)
	line := func(n int) Line {
		var l Line
		for i := range n {
			at := op.Time(i) * s
			if i >= 1001 {
				at += 100 * s // a gap
			}
			l.Points = append(l.Points, Point{at, at + s, float64(i % 2)})
		}
		return l
	}
	lines := []Line{line(maxPoints), line(2 * maxPoints)}
	if longest := reduce(lines, maxPoints, mean); longest != 2*s {
		t.Errorf("a point stands for up to %d ns, want 2 s", longest)
	}
	if n := len(lines[0].Points); n != maxPoints {
		t.Errorf("%d points are left of %d", n, maxPoints)
	}
	sum, time := 0.0, op.Time(0)
	for i, p := range lines[1].Points {
		sum += p.Value * float64(p.To-p.From)
		time += p.To - p.From
		if i > 0 && p.From < lines[1].Points[i-1].To {
			t.Errorf("point %d begins before the end of the one before", i)
		}
	}
	if n := len(lines[1].Points); n != maxPoints+1 || time != 2*maxPoints*s || sum != float64(maxPoints*s) {
		t.Errorf("%d points of %d ns, integral %v; want %d, half of them 1", n, time, sum, maxPoints+1)
	}
	if p := lines[1].Points[500]; p.From != 1000*s || p.To != 1001*s {
		t.Errorf("the point before the gap is %+v", p)
	}
	worst := []Line{line(2 * maxPoints)}
	reduce(worst, maxPoints, greatest)
	if worst[0].Points[0].Value != 1 {
		t.Errorf("the greatest of 0 and 1 is %v", worst[0].Points[0].Value)
	}
}
