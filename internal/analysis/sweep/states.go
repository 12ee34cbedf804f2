package sweep

import (
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// States counts operations in progress by state, and running pods, at instants of a run.
type States struct {
	At []op.Time
	// Pending: the pod has no node (on one machine: no volume); Creating: it has one
	// and is not up; Running: it is up and has not ended.
	Pending, Creating, Running []int
}

// instants is the number of samples.
const instants = 240

// statesOf samples at equal distances from the first start to the last end. A failed
// operation counts until its end.
func statesOf(ops []op.Op, ends map[string]op.Time) *States {
	var from, to op.Time
	seen := false
	for i := range ops {
		o := &ops[i]
		if !o.Started.Known() || !o.Ended.Known() {
			continue
		}
		if !seen {
			from, to, seen = o.Started, o.Ended, true
		}
		from, to = min(from, o.Started), max(to, o.Ended)
	}
	if !seen || to <= from {
		return nil
	}
	s := &States{At: make([]op.Time, instants), Pending: make([]int, instants), Creating: make([]int, instants),
		Running: make([]int, instants)}
	for i := range s.At {
		s.At[i] = from + (to-from)*op.Time(i)/(instants-1)
	}
	// index of the first instant that is not before t
	index := func(t op.Time) int {
		if t <= from {
			return 0
		}
		return int(min(((t-from)*(instants-1)+(to-from)-1)/(to-from), instants))
	}
	add := func(counts []int, begin, end op.Time) {
		for i := index(begin); i < index(end); i++ {
			counts[i]++
		}
	}
	for i := range ops {
		o := &ops[i]
		if !o.Started.Known() || !o.Ended.Known() {
			continue
		}
		placed := placedAt(o)
		if !placed.Known() || placed > o.Ended {
			placed = o.Ended
		}
		add(s.Pending, o.Started, placed)
		add(s.Creating, placed, o.Ended)
		if end, ok := ends[o.Target]; ok && o.Outcome == op.OK && end > o.Ended {
			add(s.Running, o.Ended, end)
		}
	}
	return s
}

// placedAt returns when the op had a node, or a volume where nodes are not observed.
func placedAt(o *op.Op) op.Time {
	for _, name := range []string{op.Scheduled, op.Provisioned, "CreateVolume.end"} {
		if at := dataset.Milestone(o, name); at.Known() {
			return at
		}
	}
	return op.Never
}
