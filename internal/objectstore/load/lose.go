package load

import (
	"github.com/cnsbench/cnsbench/internal/op"
)

// mostDue bounds how many instants of a schedule are looked at: it is a minute
// of the highest rate.
const mostDue = 600_000_000

// Unknown is the label of operations whose end nobody knows: their host was lost.
const Unknown = "hostLost"

// LoseUnknown adds the operations of an open loop that were due in the measured
// window of a share, and of which nothing is known since its host was lost, as
// lost ones. They are told apart by weight, as the mix has them. It returns how
// many there are.
func LoseUnknown(w *WorkResult, stage string, seed uint64) int64 {
	work := w.Work
	from, to, end := work.Windows()
	if work.Rate == nil || end == 0 {
		return 0
	}
	var due, known int64
	turns := work.Turns()
	seq := work.Rate.New(seedOf(seed, stage, work.Name))
	for k, taken := int64(0), int64(0); k < mostDue; k++ {
		t, ok := seq.Next()
		if !ok || t.Due >= end || work.TotalOps > 0 && taken == work.TotalOps {
			break
		}
		if !turns.Fall(k) {
			continue
		}
		if taken++; t.Due >= from && t.Due < to {
			due++
		}
	}
	for k, c := range w.Cells {
		if !k.Ramp && k.Check == "" {
			known += c.N
		}
	}
	lost, left := max(0, due-known), max(0, due-known)
	for i := range work.Ops {
		n := min(left, (lost*int64(work.Ops[i].Weight)+99)/100)
		if left -= n; n > 0 {
			w.Cells.cell(Key{Op: i, Label: Unknown, Lost: true}).N += n
		}
	}
	w.To = w.Began + op.Time(to)
	return lost
}
