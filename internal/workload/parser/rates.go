package parser

import (
	"maps"
	"math"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// rates sums completions in a grid of equal steps for each metric. Completions of an
// interval are spread evenly over it.
type rates struct {
	step  op.Time
	grids map[string]*grid
}

// grid has the cells of one metric. It begins with the first interval, so that the rows of one log match its steps.
type grid struct {
	step, base  op.Time // base: of cell 0
	cells       map[int64]*cell
	first, last op.Time // start and end of what is known
}

type cell struct {
	ios, bytes float64
	late       bool // a part of the I/O is of a longer interval
}

func newRates(step time.Duration) *rates {
	return &rates{step: op.Time(step), grids: make(map[string]*grid)}
}

// maxCells bounds the memory of the grid.
const maxCells = 1 << 16

func (r *rates) add(name string, from, to op.Time, n, size float64) {
	if to <= from || (to-from)/r.step > maxCells {
		return
	}
	g := r.grids[name]
	if g == nil {
		g = &grid{step: r.step, base: from, cells: make(map[int64]*cell), first: from, last: to}
		r.grids[name] = g
	}
	g.first, g.last = min(g.first, from), max(g.last, to)
	for i := int64(math.Floor(float64(from-g.base) / float64(r.step))); g.start(i) < to; i++ {
		lo, hi := max(from, g.start(i)), min(to, g.start(i+1))
		share := n * float64(hi-lo) / float64(to-from)
		c := g.cells[i]
		if c == nil {
			c = &cell{}
			g.cells[i] = c
		}
		c.late = c.late || n > 0 && metric.Late(int64(to-from), int64(r.step))
		c.ios += share
		c.bytes += share * size
	}
}

// start returns the begin of cell i.
func (g *grid) start(i int64) op.Time { return g.base + op.Time(i)*g.step }

// series returns the rate of each step, and of several together where an interval was longer. The first and the last
// step are divided by their covered part, and left out if that is less than a tenth of a step.
func (r *rates) series() (list []metric.Series) {
	for _, name := range slices.Sorted(maps.Keys(r.grids)) {
		g := r.grids[name]
		iops := metric.Series{Metric: name + metric.IOPS, Unit: metric.PerSecond, Step: int64(r.step)}
		bandwidth := metric.Series{Metric: name + metric.Bandwidth, Unit: metric.BytesPerSecond, Step: int64(r.step)}
		known := slices.Sorted(maps.Keys(g.cells))
		for k := 0; k < len(known); k++ {
			i, sum := known[k], *g.cells[known[k]]
			for sum.late && k+1 < len(known) && known[k+1] == known[k]+1 && g.cells[known[k+1]].late {
				k++
				sum.ios, sum.bytes = sum.ios+g.cells[known[k]].ios, sum.bytes+g.cells[known[k]].bytes
			}
			lo, hi := max(g.first, g.start(i)), min(g.last, g.start(known[k]+1))
			if hi-lo < r.step/10 && len(g.cells) > 1 {
				continue
			}
			seconds := float64(hi-lo) / float64(time.Second)
			list = addInterval(list, iops, lo, hi-lo, sum.ios/seconds)
			list = addInterval(list, bandwidth, lo, hi-lo, sum.bytes/seconds)
		}
	}
	return list
}
