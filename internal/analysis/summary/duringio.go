package summary

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
	"github.com/cnsbench/cnsbench/internal/op"
)

// opsDuringIO has of the ops what shows their effect on I/O. nil: no I/O over time was measured.
type opsDuringIO struct {
	data    *dataset.Data
	periods *interference.Periods
	around  dataset.Union // the periods
	busy    *dataset.Busy
	listed  []dataset.Window // ops that periods and recoveries list
}

func newOpsDuringIO(d *dataset.Data) *opsDuringIO {
	if !d.HasIO() && len(d.Series) == 0 {
		return nil
	}
	x := &opsDuringIO{data: d, periods: interference.Find(d, d.End()), busy: d.NewBusy()}
	x.around = x.periods.Around()
	return x
}

func (x *opsDuringIO) add(o *op.Op) {
	if x == nil || !o.Started.Known() {
		return
	}
	w := dataset.WindowOf(o)
	x.busy.Add(&w)
	if recovery.Disruptive(w.Kind) || x.around.Overlaps(w.From, w.To) {
		w.Target = strings.Clone(w.Target) // which shares memory with those of many ops
		x.listed = append(x.listed, w)
	}
}

// done ends add.
func (x *opsDuringIO) done() {
	if x != nil {
		x.busy.Done()
		dataset.SortWindows(x.listed)
	}
}

// effects are those on latencies; the same seed gives the same intervals.
func (x *opsDuringIO) effects(seed uint64) []interference.Effect {
	if x == nil {
		return nil
	}
	return interference.Effects(x.data, x.busy, seed)
}

// rateEffects are those on rates.
func (x *opsDuringIO) rateEffects(seed uint64) []interference.RateEffect {
	if x == nil {
		return nil
	}
	return interference.RateEffects(x.data, x.busy, seed)
}
