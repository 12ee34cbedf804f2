package interference

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Threshold is the least length of a stall that is listed, in ns; OwnThreshold
// that of one while an op on the same volume was in progress: a cause is at
// hand, and what a driver calls a freeze of 50 ms begins before all I/O stops.
const (
	Threshold    = int64(50e6)
	OwnThreshold = int64(30e6)
)

// Stall is a time in which I/O was pending on a volume and none completed.
type Stall struct {
	Instance  string `json:"instance"`
	Volume    string `json:"volume"`
	Direction string `json:"direction"` // "write", "read" or "read+write"
	// Source is "canary": the stall may have begun up to ErrorNs earlier, when
	// no I/O of the canary was due. "canary+workload": the longest I/O of the
	// workload in that time says when, ± ErrorNs. "workload": the longest I/O that
	// completed in the tool's time slice [From, To): exact in length, not in
	// place; ErrorNs is 0.
	Source   string  `json:"source"`
	From     op.Time `json:"from"`
	To       op.Time `json:"to"` // null: it was never seen to end
	LengthNs int64   `json:"lengthNs"`
	ErrorNs  int64   `json:"errorNs"`
	// Ops in progress during the stall: first those on the same volume that were
	// when it began, then the others on the same volume, then by overlap; at most a
	// handful, MoreOps counts the others.
	Ops     []Culprit `json:"ops"`
	MoreOps int       `json:"moreOps,omitempty"`
	// OwnOps and OtherOps count the ops that were in progress when the stall began:
	// those on the same volume, and those on others.
	OwnOps   int `json:"ownOps"`
	OtherOps int `json:"otherOps"`
}

// Culprit is an op that was in progress during a stall.
type Culprit struct {
	Op        int64  `json:"op"`
	Action    string `json:"action"`
	Instance  int    `json:"instance"`
	Target    string `json:"target"`
	Own       bool   `json:"own"`     // on the volume that stalled
	AtBegin   bool   `json:"atBegin"` // in progress when the stall began, as far as that is known
	OverlapNs int64  `json:"overlapNs"`
}

// maxCulprits listed of a stall.
const maxCulprits = 5

// Stalls finds the stalls of at least Threshold (by the canary: those that
// may have been), in order of time. ws are all ops' windows; end is when the
// recording ended, for I/O that never did.
func Stalls(d *dataset.Data, ws []dataset.Window, end op.Time) []Stall {
	slow := ofSlices(d)
	var list []Stall
	for _, c := range d.Canaries {
		list = append(list, refine(ofCanary(settled(d, c), end), slow)...)
	}
	list = append(list, unseen(d, list, slow)...)
	// latest[i] is when the last of ws[:i+1] ended: the first that can matter
	// to a stall is found by bisection.
	latest := make([]op.Time, len(ws))
	for i, w := range ws {
		latest[i] = w.To
		if i > 0 {
			latest[i] = max(w.To, latest[i-1])
		}
	}
	for i := range list {
		from := list[i].earliest()
		first, _ := slices.BinarySearch(latest, from)
		list[i].blame(d, ws[first:], from, end)
	}
	list = slices.DeleteFunc(list, func(s Stall) bool { return !s.listed() })
	slices.SortFunc(list, func(a, b Stall) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Volume, b.Volume))
	})
	return list
}

// settled is a canary whose I/Os that were pending when their phase ended are
// taken to have ended then: that of the next phase saw what followed.
func settled(d *dataset.Data, c dataset.Canary) dataset.Canary {
	if len(d.Phases(c.Action)) == 0 {
		return c
	}
	until, watched := c.Until(), d.Watched(&c)
	c.IOs = slices.Clone(c.IOs)
	for i, io := range c.IOs {
		if !io.Ended.Known() && watched(io) < until {
			c.IOs[i].Ended = watched(io)
		}
	}
	return c
}

// ofCanary finds the stalls of one volume: by direction, since a frozen file
// system still reads; both at once are one stall.
func ofCanary(c dataset.Canary, end op.Time) []Stall {
	var merged []Stall
	for _, write := range []bool{true, false} {
		for _, s := range gaps(c, write, end) {
			s.Instance, s.Volume = c.Instance, c.Volume
			i := slices.IndexFunc(merged, func(m Stall) bool {
				return m.Direction != s.Direction && m.From <= s.to(end) && s.From <= m.to(end)
			})
			if i < 0 {
				merged = append(merged, s)
				continue
			}
			m := &merged[i]
			m.From, m.Direction = min(m.From, s.From), "read+write"
			if m.To.Known() && s.To.Known() {
				m.To = max(m.To, s.To)
			} else {
				m.To = op.Never
			}
			m.LengthNs = int64(m.to(end) - m.From)
		}
	}
	return merged
}

func (s *Stall) to(end op.Time) op.Time {
	if s.To.Known() {
		return s.To
	}
	return end
}

// gaps are the times between one completion and the next, less those in which
// nothing was pending.
func gaps(c dataset.Canary, write bool, end op.Time) []Stall {
	var ios []op.CanaryIO
	for _, io := range c.IOs {
		if io.Write == write {
			if !io.Ended.Known() {
				io.Ended = math.MaxInt64
			}
			ios = append(ios, io)
		}
	}
	interval := medianInterval(ios)
	slices.SortStableFunc(ios, func(a, b op.CanaryIO) int { return cmp.Compare(a.Ended, b.Ended) })
	// pending[i] is the earliest intended time of those that end i-th or later.
	pending := make([]op.Time, len(ios))
	for i := len(ios) - 1; i >= 0; i-- {
		pending[i] = ios[i].Intended
		if i+1 < len(ios) {
			pending[i] = min(pending[i], pending[i+1])
		}
	}
	direction := "read"
	if write {
		direction = "write"
	}
	var list []Stall
	for i, io := range ios {
		from := pending[i]
		if i > 0 {
			from = max(from, ios[i-1].Ended)
		}
		s := Stall{Direction: direction, Source: "canary", From: from, To: io.Ended, ErrorNs: interval}
		if io.Ended == math.MaxInt64 {
			s.To = op.Never
		}
		s.LengthNs = int64(s.to(end) - from)
		if s.LengthNs >= OwnThreshold {
			list = append(list, s)
		}
		if !s.To.Known() {
			break // all that follow are pending in the same stall
		}
	}
	return list
}

// medianInterval between the instants at which I/Os were due, which are in
// order; a read and a write may share one.
func medianInterval(ios []op.CanaryIO) int64 {
	var diffs []int64
	for i := 1; i < len(ios); i++ {
		if d := int64(ios[i].Intended - ios[i-1].Intended); d > 0 {
			diffs = append(diffs, d)
		}
	}
	if len(diffs) == 0 {
		return 0
	}
	slices.Sort(diffs)
	return diffs[len(diffs)/2]
}

// ofSlices takes the longest I/O of each slice: of reads and writes the
// longer, and of an I/O that ended with one slice and began the next once. Of
// objects it takes none: a slow answer of a store is no time without any.
func ofSlices(d *dataset.Data) []Stall {
	var list []Stall
	last := map[string]int{} // by instance, in list
	for _, h := range d.Slices {
		if d.OfObjects(h.Instance) || h.From < d.MeasuredFrom(h.Instance) {
			continue
		}
		s := Stall{Instance: h.Instance, Direction: h.Metric, Source: "workload", From: h.From, To: h.To, LengthNs: h.Hist.Max()}
		if s.LengthNs < Threshold {
			continue
		}
		i, ok := last[h.Instance]
		switch {
		case ok && list[i].From == s.From:
			if s.LengthNs > list[i].LengthNs {
				list[i] = s
			}
		case ok && list[i].To >= s.From && near(list[i].LengthNs, s.LengthNs):
		default:
			last[h.Instance] = len(list)
			list = append(list, s)
		}
	}
	return list
}

// near says that two lengths are the same but for the buckets of histograms.
func near(a, b int64) bool { return max(a, b)-min(a, b) <= max(a, b)/200 }

// refine lets the workload say when a stall began, where its longest I/O of
// that time lies within the canary's error: it has I/O pending all the time.
func refine(stalls, slow []Stall) []Stall {
	for i := range stalls {
		s := &stalls[i]
		for _, w := range slow {
			if w.Instance == s.Instance && s.To.Known() && w.From <= s.To && w.To >= s.To-op.Time(s.ErrorNs) &&
				w.LengthNs > s.LengthNs && w.LengthNs <= s.LengthNs+s.ErrorNs {
				least, most := s.LengthNs, s.LengthNs+s.ErrorNs
				s.Source, s.LengthNs, s.From = "canary+workload", w.LengthNs, s.To-op.Time(w.LengthNs)
				s.ErrorNs = max(w.LengthNs-least, most-w.LengthNs)
				break
			}
		}
	}
	return stalls
}

// unseen are the workload's slow I/Os that no canary saw: of instances
// without one, and those so short that they fit between two of its I/Os. A
// longer one that the canary did not meet was slow by itself, not a stall.
func unseen(d *dataset.Data, seen, slow []Stall) []Stall {
	interval := map[string]int64{}
	for _, c := range d.Canaries {
		interval[c.Instance] = max(interval[c.Instance], medianInterval(c.IOs))
	}
	var list []Stall
	for _, w := range slow {
		every, watched := interval[w.Instance]
		if watched && w.LengthNs > every {
			continue
		}
		if !slices.ContainsFunc(seen, func(s Stall) bool {
			return s.Instance == w.Instance && s.From < w.To && (!s.To.Known() || s.To >= w.From)
		}) {
			list = append(list, w)
		}
	}
	return list
}

// listed says whether a stall is long enough, by the canary: may be.
func (s *Stall) listed() bool {
	return s.OwnOps > 0 || s.LengthNs >= Threshold-min(s.ErrorNs, Threshold/5)
}

// earliest is when a stall may have begun: sooner by its error; that of a
// slice by its whole length, if it ended as the slice began.
func (s *Stall) earliest() op.Time {
	if s.Source == "workload" {
		return s.From - op.Time(s.LengthNs)
	}
	return s.From - op.Time(s.ErrorNs)
}

// latest is when a stall may have begun at the latest: the I/O that was pending
// first may have been under way, as usual, until then.
func (s *Stall) latest() op.Time {
	if s.Source == "workload" {
		return s.To - op.Time(s.LengthNs)
	}
	return s.From + op.Time(min(s.ErrorNs, s.LengthNs/2))
}

// blame lists the ops in progress. What began after the stall did not cause it.
func (s *Stall) blame(d *dataset.Data, ws []dataset.Window, from, end op.Time) {
	to := s.to(end)
	for _, w := range ws {
		if w.From > to {
			break
		}
		if w.To < from {
			continue
		}
		s.Ops = append(s.Ops, Culprit{
			Op: w.Op, Action: w.Action, Instance: w.Instance, Target: w.Target,
			Own:       d.Owns(s.Instance, s.Volume, w.Target),
			AtBegin:   w.From <= s.latest(),
			OverlapNs: int64(min(w.To, to) - max(w.From, from)),
		})
	}
	for _, c := range s.Ops {
		switch {
		case c.AtBegin && c.Own:
			s.OwnOps++
		case c.AtBegin:
			s.OtherOps++
		}
	}
	slices.SortStableFunc(s.Ops, func(a, b Culprit) int {
		return cmp.Or(cmp.Compare(b.rank(), a.rank()), cmp.Compare(b.OverlapNs, a.OverlapNs))
	})
	if n := len(s.Ops); n > maxCulprits {
		s.Ops, s.MoreOps = s.Ops[:maxCulprits], n-maxCulprits
	}
}

// rank is higher the likelier the op is what the stall was caused by.
func (c Culprit) rank() int {
	switch {
	case c.Own && c.AtBegin:
		return 2
	case c.Own:
		return 1
	}
	return 0
}

// Named says which ops a stall coincides with: those on the same volume that were
// in progress when it began, else how many there were on other volumes, else
// "none". An op that began later is not named.
func (s Stall) Named() string {
	switch {
	case s.OwnOps > 1:
		return fmt.Sprintf("%s and %d more", s.Ops[0], s.OwnOps-1)
	case s.OwnOps == 1:
		return s.Ops[0].String()
	case s.OtherOps == 1:
		return "1 op on another volume"
	case s.OtherOps > 1:
		return fmt.Sprintf("%d ops on other volumes", s.OtherOps)
	}
	return "none"
}

// String names the op: "snapshots/7".
func (c Culprit) String() string { return fmt.Sprintf("%s/%d", c.Action, c.Instance) }

// Longest are the n longest stalls, in order of time.
func Longest(all []Stall, n int) []Stall {
	byLength := slices.Clone(all)
	slices.SortStableFunc(byLength, func(a, b Stall) int { return cmp.Compare(b.LengthNs, a.LengthNs) })
	top := byLength[:min(n, len(byLength))]
	slices.SortStableFunc(top, func(a, b Stall) int { return cmp.Compare(a.From, b.From) })
	return top
}
