package sweep

import (
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// States count, at instants of a run, the operations under way by where they
// stood, and the pods that ran.
type States struct {
	At []op.Time
	// Pending are those whose pod had no node yet (on one machine: whose volume
	// was not there yet), Creating those that were not up yet, Running the pods
	// that were up and had not ended.
	Pending, Creating, Running []int
}

// instants is how many are looked at.
const instants = 240

// statesOf counts at equal distances from the first start to the last end. An
// operation that failed is no longer under way from its end on.
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
	s := &States{At: make([]op.Time, instants), Pending: make([]int, instants), Creating: make([]int, instants), Running: make([]int, instants)}
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

// placedAt is when what was asked for had a node, or where that is not seen, a
// volume.
func placedAt(o *op.Op) op.Time {
	for _, name := range []string{op.Scheduled, op.Provisioned, "CreateVolume.end"} {
		if at := dataset.Milestone(o, name); at.Known() {
			return at
		}
	}
	return op.Never
}
