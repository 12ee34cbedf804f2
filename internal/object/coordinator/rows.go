package coordinator

import (
	"math"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/op"
)

// rows are the seconds of a work, of all hosts together. The k-th row sums up the k-th second of each host; it is
// reported when no host can add to it.
type rows struct {
	told int // rows
	of   map[int]loadgen.Cells
}

// add takes in what a host did until an instant after the start.
func (r *rows) add(g *progress, until op.Time, cells loadgen.Cells) error {
	if r.of == nil {
		r.of = map[int]loadgen.Cells{}
	}
	g.row = max(r.told, int(time.Duration(until).Round(time.Second)/time.Second)-1)
	if r.of[g.row] == nil {
		r.of[g.row] = loadgen.Cells{}
	}
	return r.of[g.row].Merge(cells)
}

// slowest is the first row of a work that a host may still add to.
func (t *tally) slowest(i int) int {
	k := math.MaxInt
	for _, h := range t.hosts {
		if h != nil && h.works[i] != nil && h.works[i].open {
			k = min(k, h.works[i].row)
		}
	}
	return k
}

// tell reports the rows before k.
func (t *tally) tell(i, k int) {
	r := &t.rows[i]
	for ; r.told < k && len(r.of) > 0; r.told++ {
		cells := r.of[r.told]
		if cells == nil {
			cells = loadgen.Cells{}
		}
		delete(r.of, r.told)
		from := t.at + op.Time(r.told)*op.Time(time.Second)
		t.controller.Observer.Second(t.spec.Name, &t.spec.Works[i], from, from+op.Time(time.Second), cells)
	}
}

// flush reports all rows at the end of a round.
func (t *tally) flush() {
	for i := range t.rows {
		t.tell(i, math.MaxInt)
	}
}
