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
// interval are spread evenly over it. The grid begins with the first interval, so that the
// rows of one log match its steps.
type rates struct {
	step  op.Time
	base  op.Time // of cell 0
	cells map[string]map[int64]*cell
	first map[string]op.Time // start and end of what is known
	last  map[string]op.Time
}

type cell struct{ ios, bytes float64 }

func newRates(step time.Duration) *rates {
	return &rates{step: op.Time(step), cells: make(map[string]map[int64]*cell), first: make(map[string]op.Time),
		last: make(map[string]op.Time)}
}

// maxCells bounds the memory of the grid.
const maxCells = 1 << 16

func (r *rates) add(name string, from, to op.Time, n, size float64) {
	if to <= from || (to-from)/r.step > maxCells {
		return
	}
	if len(r.cells) == 0 {
		r.base = from
	}
	if r.cells[name] == nil {
		r.cells[name] = make(map[int64]*cell)
		r.first[name], r.last[name] = from, to
	}
	r.first[name], r.last[name] = min(r.first[name], from), max(r.last[name], to)
	for i := int64(math.Floor(float64(from-r.base) / float64(r.step))); r.cellStart(i) < to; i++ {
		lo, hi := max(from, r.cellStart(i)), min(to, r.cellStart(i+1))
		share := n * float64(hi-lo) / float64(to-from)
		c := r.cells[name][i]
		if c == nil {
			c = &cell{}
			r.cells[name][i] = c
		}
		c.ios += share
		c.bytes += share * size
	}
}

// cellStart returns the begin of cell i.
func (r *rates) cellStart(i int64) op.Time { return r.base + op.Time(i)*r.step }

// series returns the rate of each step. The first and the last step are divided by their
// covered part, and left out if that is less than a tenth of a step.
func (r *rates) series() []metric.Series {
	var list []metric.Series
	for _, name := range slices.Sorted(maps.Keys(r.cells)) {
		cells := r.cells[name]
		iops := metric.Series{Metric: name + metric.IOPS, Unit: metric.PerSecond, Step: int64(r.step)}
		bandwidth := metric.Series{Metric: name + metric.Bandwidth, Unit: metric.BytesPerSecond, Step: int64(r.step)}
		for _, i := range slices.Sorted(maps.Keys(cells)) {
			lo, hi := max(r.first[name], r.cellStart(i)), min(r.last[name], r.cellStart(i+1))
			if hi-lo < r.step/10 && len(cells) > 1 {
				continue
			}
			seconds := float64(hi-lo) / float64(time.Second)
			iops.Points = append(iops.Points, metric.Point{At: lo, Value: cells[i].ios / seconds})
			bandwidth.Points = append(bandwidth.Points, metric.Point{At: lo, Value: cells[i].bytes / seconds})
		}
		list = append(list, iops, bandwidth)
	}
	return list
}
