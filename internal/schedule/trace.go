package schedule

import (
	"sort"
	"time"
)

// Trace is a sequence of recorded due times, in ascending order.
type Trace []time.Duration

// New returns the sequence; the seed is not used.
func (t Trace) New(uint64) Sequence { return &recorded{t, 0} }

// PerSecond returns the mean rate up to the last trigger.
func (t Trace) PerSecond() float64 {
	if len(t) == 0 || t[len(t)-1] <= 0 {
		return 0
	}
	return float64(len(t)) / t[len(t)-1].Seconds()
}

// Count returns the number of triggers up to until (0: in total). A trace always ends.
func (t Trace) Count(until time.Duration) (int64, bool) {
	if until == 0 {
		return int64(len(t)), true
	}
	return int64(sort.Search(len(t), func(i int) bool { return t[i] > until })), true
}

type recorded struct {
	Trace
	k int64
}

func (r *recorded) Next() (Trigger, bool) {
	if r.k >= int64(len(r.Trace)) {
		return Trigger{}, false
	}
	r.k++
	return Trigger{Due: r.Trace[r.k-1], Step: r.k - 1}, true
}
