package loadgen

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// mostDue bounds how many instants of a schedule are counted: a minute of the highest rate.
const mostDue = 600_000_000

// Unknown is the label of operations whose outcome is unknown because their host was lost.
const Unknown = "hostLost"

// LostShare describes the share w of a work of a lost host: the part that is known from r (nil: it had not begun) and
// the part that is not. Operations of an open loop that were due after the last known one are added to r as lost,
// unless the host was stopped.
func LostShare(w *model.Work, r *WorkResult, stopped bool, stage string, seed uint64) string {
	text := fmt.Sprintf("its %d of %d workers ", w.Workers, w.AllWorkers())
	if r == nil || !r.Began.Known() {
		return text + "had not begun"
	}
	var kept int64
	for k, c := range r.Cells {
		if k.Label != Dropped && k.Whole() {
			kept += c.N
		}
	}
	until := time.Duration(r.Ended - r.Began)
	text += fmt.Sprintf("did %d operations that are kept, in the first %.1f s", kept, until.Seconds())
	planned := w.Planned()
	_, _, end := w.Windows()
	switch {
	case stopped:
		text += "; then it was told to end"
	case w.Rate != nil && end > 0:
		if n := loseUnknown(r, stage, seed); n > 0 {
			text += fmt.Sprintf("; %d that were due and are not kept count as lost", n)
		}
	case planned > 0:
		text += fmt.Sprintf("; %d are missing", max(0, planned-kept))
	case end == 0:
		text += "; how many are missing nobody knows"
	default:
		text += fmt.Sprintf("; those of the other %.1f s are missing", max(0, end-until).Seconds())
	}
	return text
}

// loseUnknown adds the operations of an open loop that were due in the measured window of a lost host's share as lost
// ones, divided by the weights of the mix. It returns their number.
func loseUnknown(w *WorkResult, stage string, seed uint64) int64 {
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
		if !k.Ramp && k.Whole() {
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
