package figure

import (
	"slices"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// How many points a line of a panel has at most, besides those next to gaps: about one a pixel, and fewer where there
// are so many panels that they are folded, so that the page stays small.
const (
	maxPoints    = 800
	foldedPoints = 400
)

// lineOf returns the line of a name, with room for more points.
func lineOf(lines *[]Line, name string, more int) *Line {
	i := slices.IndexFunc(*lines, func(l Line) bool { return l.Name == name })
	if i < 0 {
		i = len(*lines)
		*lines = append(*lines, Line{Name: name})
	}
	l := &(*lines)[i]
	l.Points = slices.Grow(l.Points, more)
	return l
}

// addRates adds points of a rate. One over a very short time, such as a work's last, is merged
// with the one before: alone it would be a spike.
func (l *Line) addRates(points []metric.Point, step op.Time) {
	for _, x := range points {
		p := Point{x.At, x.At + step, x.Value}
		if n := len(l.Points); n > 0 {
			last := &l.Points[n-1]
			if length, more := float64(last.To-last.From), float64(p.To-p.From); p.From == last.To && more < length/20 {
				last.Value, last.To = (last.Value*length+p.Value*more)/(length+more), p.To
				continue
			}
		}
		l.Points = append(l.Points, p)
	}
}

// mean and greatest combine the values of successive points; shares are those of their time.
func mean(a, share, b float64) float64 { return a + share*(b-a) }

func greatest(a, _, b float64) float64 { return max(a, b) }

// reduce joins successive points of lines that have more than most. It returns the longest time of a joined point; 0:
// there is none.
func reduce(lines []Line, most int, combine func(a, share, b float64) float64) (longest op.Time) {
	for i := range lines {
		l := &lines[i]
		together := (len(l.Points) + most - 1) / most
		if together < 2 {
			continue
		}
		n, joined := 0, 0 // points that are left, and points in the last of them
		for k, p := range l.Points {
			if k > 0 && joined < together && !p.afterGap(&l.Points[n-1]) {
				last := &l.Points[n-1]
				share := float64(p.To-p.From) / float64(max(1, p.To-last.From))
				last.Value, last.To = combine(last.Value, share, p.Value), p.To
				longest = max(longest, last.To-last.From)
				joined++
				continue
			}
			l.Points[n] = p
			n, joined = n+1, 1
		}
		l.Points = slices.Clip(slices.Clone(l.Points[:n]))
	}
	return longest
}

// afterGap reports whether a point is drawn apart from the one before it.
func (p *Point) afterGap(before *Point) bool { return p.From > before.To+(p.To-p.From) }
