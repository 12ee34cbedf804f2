package fleet

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/objectstore/load"
	"github.com/cnsbench/cnsbench/internal/op"
)

// rows are the seconds of a work, of all hosts together: what each host did in
// its k-th second is put together, told once no host has more to say of it.
type rows struct {
	told int // rows
	of   map[int]load.Cells
	last map[*progress]int
}

// add takes in what a host did until an instant after the start.
func (r *rows) add(g *progress, until op.Time, cells load.Cells) error {
	if r.of == nil {
		r.of, r.last = map[int]load.Cells{}, map[*progress]int{}
	}
	k := max(r.told, int(time.Duration(until).Round(time.Second)/time.Second)-1)
	r.last[g] = k
	if r.of[k] == nil {
		r.of[k] = load.Cells{}
	}
	return r.of[k].Merge(cells)
}

// slowest is the first row of a work that a host may still add to.
func (t *tally) slowest(i int) int {
	k := int(^uint(0) >> 1)
	for _, h := range t.hosts {
		if h != nil && h.works[i] != nil && h.works[i].open {
			k = min(k, t.rows[i].last[h.works[i]])
		}
	}
	return k
}

// tell tells of the rows before k.
func (t *tally) tell(i, k int) {
	r := &t.rows[i]
	for ; r.told < k && len(r.of) > 0; r.told++ {
		cells, any := r.of[r.told]
		if !any {
			cells = load.Cells{}
		}
		delete(r.of, r.told)
		from := t.at + op.Time(r.told)*op.Time(time.Second)
		t.fleet.Observer.Second(t.spec.Name, &t.spec.Works[i], from, from+op.Time(time.Second), cells)
	}
}

// flush tells of all rows: the round is over.
func (t *tally) flush() {
	for i := range t.rows {
		t.tell(i, int(^uint(0)>>1))
	}
}
