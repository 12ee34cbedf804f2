package attribution

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/cnsbench/cnsbench/internal/op"
)

type stepKey struct{ component, step string }

// waits are the times that ops spent in one step.
type waits struct {
	stepKey
	of []wait
}

type wait struct {
	op       int
	from, to op.Time
	busy     int64
}

// Bounds of queues.
const (
	leastPeak   = 3                            // ops that wait at the same time
	leastGaps   = 10                           // intervals between ends
	leastGap    = int64(20 * time.Millisecond) // below, scheduling of threads is as large
	even        = 0.2                          // how far an interval between ends may be from the median
	evenShare   = 0.5                          // of the intervals; of exponential ones 14 % are that near
	chanceShare = 1.0 / 3                      // of the intervals of a distribution with a peak, by chance
	chance      = 0.05                         // greatest probability of as many even intervals by chance
	singleShare = 0.8                          // of the time with ops waiting, in which one call is in progress
	severalMost = 0.05                         // of that time, in which there may be more
)

// queue is how the waits of a step end.
type queue struct {
	kind Kind
	gap  int64 // between two ends, in ns: the median
	peak int   // of the ops that wait at the same time
}

// queue finds whether ops of a step wait for each other. calls are those that the step waits for; nil: none is
// observed.
func (w *waits) queue(calls *waits, closedLoop bool) queue {
	q := queue{kind: Slow, peak: w.peak()}
	if q.peak < leastPeak {
		return q
	}
	gaps := w.gaps()
	if len(gaps) < leastGaps {
		return q
	}
	q.gap = median(gaps)
	if calls != nil && calls != w && w.single(calls) {
		q.kind = OneAtATime
		return q
	}
	if q.gap < leastGap || !isEven(gaps, q.gap) {
		return q
	}
	if !closedLoop && near(w.arrivals(), q.gap) >= evenShare {
		return q // they end as evenly as they begin
	}
	q.kind = RateLimited
	return q
}

// callEnd is the end of the call at whose begin a step ends; empty: at none.
func callEnd(step string) string {
	if rpc, ok := strings.CutSuffix(step, ".start"); ok {
		return rpc + ".end"
	}
	return ""
}

// change is a begin (+1) or an end (−1) of a wait, or of a call.
type change struct {
	at          op.Time
	wait, calls int
}

func changes(w *waits, wait, call int) []change {
	list := make([]change, 0, 2*len(w.of))
	for _, x := range w.of {
		list = append(list, change{x.from, wait, call}, change{x.to, -wait, -call})
	}
	return list
}

func inOrder(list []change) []change {
	slices.SortFunc(list, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.wait+a.calls, b.wait+b.calls)) // ends first
	})
	return list
}

// peak is the greatest number of ops that wait at the same time.
func (w *waits) peak() int {
	begins, ends := make([]op.Time, len(w.of)), make([]op.Time, len(w.of))
	for i, x := range w.of {
		begins[i], ends[i] = x.from, x.to
	}
	slices.Sort(begins)
	slices.Sort(ends)
	ended, most := 0, 0
	for i, at := range begins {
		for ended < len(ends) && ends[ended] <= at {
			ended++
		}
		most = max(most, i+1-ended)
	}
	return most
}

// single reports whether no two calls are in progress while ops wait for one.
func (w *waits) single(calls *waits) bool {
	var one, several, all int64
	waiting, called, last := 0, 0, op.Time(0)
	for _, c := range inOrder(append(changes(w, 1, 0), changes(calls, 0, 1)...)) {
		if d := int64(c.at - last); waiting > 0 {
			all += d
			switch {
			case called == 1:
				one += d
			case called > 1:
				several += d
			}
		}
		waiting, called, last = waiting+c.wait, called+c.calls, c.at
	}
	return float64(one) >= singleShare*float64(all) && float64(several) <= severalMost*float64(all)
}

// gaps are the intervals between consecutive ends, where the op of the second already waited at the first.
func (w *waits) gaps() []int64 {
	ends := slices.Clone(w.of)
	slices.SortFunc(ends, func(a, b wait) int { return cmp.Compare(a.to, b.to) })
	list := make([]int64, 0, len(ends))
	for i := 1; i < len(ends); i++ {
		if ends[i].from <= ends[i-1].to {
			list = append(list, int64(ends[i].to-ends[i-1].to))
		}
	}
	return list
}

// arrivals are the intervals between consecutive begins.
func (w *waits) arrivals() []int64 {
	begins := make([]op.Time, len(w.of))
	for i, x := range w.of {
		begins[i] = x.from
	}
	slices.Sort(begins)
	var list []int64
	for i := 1; i < len(begins); i++ {
		list = append(list, int64(begins[i]-begins[i-1]))
	}
	return list
}

func median(values []int64) int64 {
	sorted := slices.Clone(values)
	slices.Sort(sorted)
	return sorted[len(sorted)/2]
}

// isEven reports whether most intervals are near a value, and more of them than chance explains.
func isEven(gaps []int64, gap int64) bool {
	share, n := near(gaps, gap), float64(len(gaps))
	byChance := distuv.Binomial{N: n, P: chanceShare}
	return share >= evenShare && byChance.Survival(math.Round(share*n)-1) <= chance
}

// near is the share of values that are within a fifth of a value.
func near(values []int64, of int64) float64 {
	n := 0
	for _, v := range values {
		if d := float64(v - of); max(d, -d) <= even*float64(of) {
			n++
		}
	}
	return float64(n) / float64(max(1, len(values)))
}
