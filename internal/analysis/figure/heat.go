package figure

import (
	"math"

	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// heatBins is the greatest number of bins in time: there are between half as many and as many.
	heatBins = 128
	// maxCells is the number of cells above which bins are merged, so that the page stays small; leastBins are left.
	maxCells, leastBins = 1000, 16
	// firstBin is the first length of a bin; lengths are powers of two of it, so that 1 s, 2 s, 4 s … are among them.
	firstBin = op.Time(1e9) / 512
	// perDecade is the number of bins of latency for a factor of ten.
	perDecade = 10
)

// Heat counts the ops of an action in bins of time from the start of the run, and in each by response.
type Heat struct {
	Step op.Time // the length of a bin
	Bins []HeatBin
	// First and Last are the first and last instant at which an op was due or in progress.
	First, Last op.Time
}

// HeatBin is one bin of time.
type HeatBin struct {
	Due int // by the schedule
	// Rows counts ok ops that were due in the bin by their response: see RowNs.
	Rows map[int]int
	// NotOK counts the others that were due in the bin.
	NotOK int
	// OK, Failed, Late and Dropped count ops that ended in the bin. Late ones timed out, or had not ended at the end of
	// the run; dropped ones were due in it.
	OK, Failed, Late, Dropped int
	BusyNs                    int64 // the sum of the times in which ops were in progress
}

// RowNs returns the bounds of a bin of latency: at least from, less than to.
func RowNs(row int) (from, to float64) {
	return math.Pow(10, float64(row)/perDecade), math.Pow(10, float64(row+1)/perDecade)
}

func rowOf(ns int64) int { return int(math.Floor(perDecade * math.Log10(float64(max(1, ns))))) }

// InFlight is the mean number of ops in progress in a bin.
func (h *Heat) InFlight(i int) float64 { return float64(h.Bins[i].BusyNs) / float64(h.Step) }

// PerSecond is a count of a bin as a rate.
func (h *Heat) PerSecond(n int) float64 { return float64(n) / (float64(h.Step) / 1e9) }

// From is the begin of a bin.
func (h *Heat) From(i int) op.Time { return h.Step * op.Time(i) }

// Spread is the number of bins in which ops were due.
func (h *Heat) Spread() int {
	n := 0
	for _, b := range h.Bins {
		n += min(b.Due, 1)
	}
	return n
}

func (h *Heat) busy() bool { return len(h.Bins) > 0 }

// at returns the bin of an instant, and makes bins longer until there is one. What is before the start of the run is in
// the first.
func (h *Heat) at(t op.Time) *HeatBin {
	if h.Step == 0 {
		h.Step = firstBin
	}
	t = max(0, t)
	for t/h.Step >= heatBins {
		h.double()
	}
	for op.Time(len(h.Bins)) <= t/h.Step {
		h.Bins = append(h.Bins, HeatBin{Rows: map[int]int{}})
	}
	return &h.Bins[t/h.Step]
}

// limit merges bins while there are more than maxCells.
func (h *Heat) limit() {
	for len(h.Bins) >= 2*leastBins && h.cells() > maxCells {
		h.double()
	}
}

func (h *Heat) cells() (n int) {
	for _, b := range h.Bins {
		n += len(b.Rows)
	}
	return n
}

// double merges each two bins.
func (h *Heat) double() {
	h.Step *= 2
	for i, b := range h.Bins {
		if i%2 == 0 {
			h.Bins[i/2] = b
			continue
		}
		a := &h.Bins[i/2]
		for row, n := range b.Rows {
			a.Rows[row] += n
		}
		a.Due, a.NotOK, a.OK, a.Failed = a.Due+b.Due, a.NotOK+b.NotOK, a.OK+b.OK, a.Failed+b.Failed
		a.Late, a.Dropped, a.BusyNs = a.Late+b.Late, a.Dropped+b.Dropped, a.BusyNs+b.BusyNs
	}
	h.Bins = h.Bins[:(len(h.Bins)+1)/2]
}

// add counts an op; end is the end of the recording.
func (h *Heat) add(o *op.Op, end op.Time) {
	from, to := busy(o, end)
	if !h.busy() {
		h.First, h.Last = o.Intended, to
	}
	h.First, h.Last = min(h.First, o.Intended, from), max(h.Last, o.Intended, to)
	h.at(max(to, o.Intended)) // the bins do not change from here on
	due := h.at(o.Intended)
	due.Due++
	if ns, ok := o.Response(); ok && o.Outcome == op.OK {
		due.Rows[rowOf(ns)]++
	} else {
		due.NotOK++
	}
	switch ended := h.at(to); o.Outcome {
	case op.OK:
		ended.OK++
	case op.Error:
		ended.Failed++
	case op.Dropped:
		ended.Dropped++
	default:
		ended.Late++
	}
	for t := max(0, from); t < to; {
		next := min(to, (t/h.Step+1)*h.Step)
		h.at(t).BusyNs += int64(next - t)
		t = next
	}
}

// busy is the time in which an op was in progress: of one that never started its intended instant, of one without an
// end until the end of the recording.
func busy(o *op.Op, end op.Time) (from, to op.Time) {
	if !o.Started.Known() {
		return o.Intended, o.Intended
	}
	if !o.Ended.Known() {
		return o.Started, max(o.Started, end)
	}
	return o.Started, o.Ended
}
