// Package throughput computes how many operations of an action are completed per second. rate() of objectives and
// studies, the achieved rate of the summary, and the sweeps of a study have it from here.
//
// A count between the first and the last completion is wrong for operations that end together: of waves of 8, the
// first wave takes no time. A count from the first start to the last end is wrong too: the last operations of a
// closed loop end one after another, while fewer and fewer are in flight. OfLoops and OfSchedule have no such bias.
package throughput

import (
	"iter"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// OfLoops returns the operations per second of closed loops: completed operations over the mean time of the loops. A
// loop lasts from the first start of all to the end of its last trigger; loops are the times of all triggers, of any
// outcome, in any order. The last trigger of a loop is one that ended after the last start of all. This is n/ΣX of a
// renewal process whose last interval is complete, so that latencies of any distribution are counted without bias.
func OfLoops(loops iter.Seq[dataset.Span], completed int) (perSecond float64, ok bool) {
	first, last := op.Time(math.MaxInt64), op.Time(math.MinInt64)
	for l := range loops {
		first, last = min(first, l.From), max(last, l.From)
	}
	sum, n := 0.0, 0
	for l := range loops {
		if l.To > last {
			sum += float64(l.To - first)
			n++
		}
	}
	if n == 0 {
		return 0, false
	}
	return float64(completed) / (sum / float64(n) / 1e9), true
}

// OfSchedule returns the operations per second where starts do not wait for ends. Of n ends, the mean instant of the
// last m lies (n − m) operations after that of the first m; m is the number of operations that had started when the
// first ended, at most n/2: the size of a burst or wave. The result is bounded by Little's law: the most operations in
// flight over their mean time.
//
// It is too low while the operations in flight still increase: by 3 % if operations (of exponentially distributed
// length) start for 30 times their mean time, by 25 % if for three times.
func OfSchedule(ended []dataset.Span) (perSecond float64, ok bool) {
	n := len(ended)
	starts, ends := make([]op.Time, n), make([]op.Time, n)
	var busy float64
	for i, c := range ended {
		starts[i], ends[i] = c.From, c.To
		busy += float64(c.To - c.From)
	}
	slices.Sort(starts)
	slices.Sort(ends)
	perSecond = math.Inf(1)
	if busy > 0 {
		perSecond = float64(mostInFlight(starts, ends)) * float64(n) / (busy / 1e9)
	}
	if n >= 2 {
		started := 0
		for _, c := range ended {
			if c.From < ends[0] {
				started++
			}
		}
		m := max(1, min(started, n/2))
		if between := mean(ends[n-m:]) - mean(ends[:m]); between > 0 {
			perSecond = min(perSecond, float64(n-m)/(between/1e9))
		}
	}
	return perSecond, !math.IsInf(perSecond, 0)
}

func mean(list []op.Time) float64 {
	sum := 0.0
	for _, t := range list {
		sum += float64(t - list[0])
	}
	return float64(list[0]) + sum/float64(len(list))
}

// mostInFlight is the greatest number of operations at once, by their starts and ends, each in order.
func mostInFlight(starts, ends []op.Time) int {
	ended, most := 0, 0
	for started, at := range starts {
		for ended < len(ends) && ends[ended] <= at {
			ended++
		}
		most = max(most, started+1-ended)
	}
	return max(1, most)
}
