package interference

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Threshold is the least length of a listed stall in ns; OwnThreshold applies while an
// op on the same volume was in progress, since a freeze of 50 ms by the driver begins
// before all I/O stops.
const (
	Threshold    = int64(50e6)
	OwnThreshold = int64(30e6)
)

// Stall is a time in which I/O was pending on a volume and none completed.
type Stall struct {
	Instance  string `json:"instance"`
	Volume    string `json:"volume"`
	Direction string `json:"direction"` // "write", "read" or "read+write"
	// Source is "canary": the stall may have begun up to ErrorNs earlier, between two
	// I/Os of the canary; "canary+workload": the workload's longest I/O in that time
	// gives the begin, ± ErrorNs; "workload": the longest I/O that completed in the
	// tool's time slice [From, To), exact in length only, ErrorNs is 0, or one that ended such a slice, which gives the
	// begin, ± ErrorNs; "operations": see ZeroPeriods.
	Source   string  `json:"source"`
	From     op.Time `json:"from"`
	To       op.Time `json:"to"`       // null: it was never seen to end
	LengthNs int64   `json:"lengthNs"` // without an end: until its volume was no longer observed
	ErrorNs  int64   `json:"errorNs"`
	// Ops in progress during the stall: first those on the same volume at its begin,
	// then others on the same volume, then by overlap. MoreOps counts what is not listed.
	Ops     []ConcurrentOp `json:"ops"`
	MoreOps int            `json:"moreOps,omitempty"`
	// OwnOps and OtherOps count the ops in progress when the stall began, on the same
	// volume and on others.
	OwnOps   int `json:"ownOps"`
	OtherOps int `json:"otherOps"`
}

// ConcurrentOp is an op in progress during a stall.
type ConcurrentOp struct {
	Op        int64  `json:"op"`
	Action    string `json:"action"`
	Instance  int    `json:"instance"`
	Target    string `json:"target"`
	Own       bool   `json:"own"`     // on the volume that stalled
	AtBegin   bool   `json:"atBegin"` // in progress when the stall began, as far as that is known
	OverlapNs int64  `json:"overlapNs"`
}

// maxStallOps is how many ops a stall lists.
const maxStallOps = 5

// Periods are the stalls, and the times in which an instance completed no operation, that are looked for in a run.
type Periods struct {
	data   *dataset.Data
	stalls []Stall // of at least OwnThreshold
	zeros  []Stall
}

// Find finds the periods of a run without their ops; end is the end of the recording.
func Find(d *dataset.Data, end op.Time) *Periods {
	slow := sliceStalls(d)
	p := &Periods{data: d, zeros: slices.DeleteFunc(silent(d), func(z Stall) bool {
		return slices.ContainsFunc(slow, func(s Stall) bool { return s.covers(&z) })
	})}
	var m gapMemory
	for _, c := range d.Canaries {
		watched := m.canaryStalls(endPendingAtPhase(d, c), d.EndOf(c.Instance, end))
		p.stalls = append(p.stalls, refine(watched, slow)...)
	}
	p.stalls = append(p.stalls, workloadStalls(d, p.stalls, slow)...)
	return p
}

// Around returns the instants in which Stalls and ZeroPeriods look for ops in progress. Windows that do not overlap it
// may be left out of their ws, which bounds the memory for many ops.
func (p *Periods) Around() dataset.Union {
	var ws []dataset.Window
	for _, list := range [][]Stall{p.stalls, p.zeros} {
		for i := range list {
			ws = append(ws, dataset.Window{From: list[i].earliest(), To: list[i].Until()})
		}
	}
	dataset.SortWindows(ws)
	return dataset.UnionOf(ws)
}

// Stalls returns the stalls of at least Threshold (for the canary: within its error), in order of time. ws are the
// windows of all ops.
func (p *Periods) Stalls(ws []dataset.Window) []Stall {
	list := slices.DeleteFunc(p.withOps(p.stalls, ws), func(s Stall) bool { return !s.listed() })
	slices.SortFunc(list, func(a, b Stall) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.Instance, b.Instance), cmp.Compare(a.Volume, b.Volume))
	})
	return list
}

// withOps returns periods with the ops in progress in each.
func (p *Periods) withOps(periods []Stall, ws []dataset.Window) []Stall {
	// latest[i] is the last end in ws[:i+1], for a binary search of the first window
	// that can overlap a stall.
	latest := make([]op.Time, len(ws))
	for i, w := range ws {
		latest[i] = w.To
		if i > 0 {
			latest[i] = max(w.To, latest[i-1])
		}
	}
	list := slices.Clone(periods)
	for i := range list {
		from := list[i].earliest()
		first, _ := slices.BinarySearch(latest, from)
		list[i].addOps(p.data, ws[first:], from)
	}
	return list
}

// endPendingAtPhase returns the canary with I/Os that were pending at the end of their
// phase ended there: the canary of the next phase observes what follows.
func endPendingAtPhase(d *dataset.Data, c dataset.Canary) dataset.Canary {
	if len(d.Phases(c.Action)) == 0 {
		return c
	}
	until, watched := c.Until(), d.WatchedUntil(&c)
	c.IOs = slices.Clone(c.IOs)
	for i, io := range c.IOs {
		if !io.Ended.Known() && watched(io) < until {
			c.IOs[i].Ended = watched(io)
		}
	}
	return c
}

// canaryStalls finds the stalls of one volume by direction, since a frozen file system
// still serves reads; overlapping ones are one stall. The volume was watched until end.
func (m *gapMemory) canaryStalls(c dataset.Canary, end op.Time) []Stall {
	var merged []Stall
	for _, write := range []bool{true, false} {
		for _, s := range m.gaps(c, write, end) {
			s.Instance, s.Volume = c.Instance, c.Volume
			i := slices.IndexFunc(merged, func(m Stall) bool {
				return m.Direction != s.Direction && m.From <= s.Until() && s.From <= m.Until()
			})
			if i < 0 {
				merged = append(merged, s)
				continue
			}
			x := &merged[i]
			until := max(x.Until(), s.Until())
			x.From, x.Direction = min(x.From, s.From), "read+write"
			if x.To.Known() && s.To.Known() {
				x.To = max(x.To, s.To)
			} else {
				x.To = op.Never
			}
			x.LengthNs = int64(until - x.From)
		}
	}
	return merged
}

// Until is the end of a stall, or the last instant at which it was seen to last.
func (s *Stall) Until() op.Time {
	if s.To.Known() {
		return s.To
	}
	return s.From + op.Time(s.LengthNs)
}

// Length is the length with its unit: "120 ms", or "≥ 2 s" of a stall that was not seen to end.
func (s Stall) Length() string {
	text := units.Duration(float64(s.LengthNs))
	if !s.To.Known() {
		return "≥ " + text
	}
	return text
}

// gapMemory is memory for the gaps of one canary after another.
type gapMemory struct {
	ios          []op.CanaryIO
	due, pending []op.Time
}

// gaps returns the times between two completions in which I/O was pending.
func (m *gapMemory) gaps(c dataset.Canary, write bool, end op.Time) []Stall {
	ios := m.ios[:0]
	for _, io := range c.IOs {
		if io.Write == write {
			if !io.Ended.Known() {
				io.Ended = math.MaxInt64
			}
			ios = append(ios, io)
		}
	}
	m.ios = ios
	m.due = m.due[:0]
	for i := range ios {
		m.due = append(m.due, ios[i].Intended)
	}
	slices.SortStableFunc(ios, func(a, b op.CanaryIO) int { return cmp.Compare(a.Ended, b.Ended) })
	// pending[i] is the earliest intended time of those that end i-th or later.
	m.pending = slices.Grow(m.pending[:0], len(ios))
	pending := m.pending[:len(ios)]
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
	lags := c.Lags(write)
	var list []Stall
	for i, io := range ios {
		from := pending[i]
		if i > 0 {
			from = max(from, ios[i-1].Ended)
		}
		s := Stall{Direction: direction, Source: "canary", From: from, To: io.Ended, LengthNs: int64(io.Ended - from)}
		if io.Ended == math.MaxInt64 {
			s.To, s.LengthNs = op.Never, int64(end-from)
		}
		if s.LengthNs >= OwnThreshold && !within(lags, &s) {
			s.ErrorNs = intervalAt(m.due, pending[i])
			list = append(list, s)
		}
		if !s.To.Known() {
			break // all that follow are in the same stall
		}
	}
	return list
}

// within reports whether a gap is in a lag of the canary, and no longer than I/Os commonly take there: the volume is slow,
// and nothing stalled.
func within(lags []dataset.Lag, s *Stall) bool {
	return slices.ContainsFunc(lags, func(l dataset.Lag) bool {
		return l.From <= s.Until() && s.From <= l.Ended && s.LengthNs <= 2*l.ServiceNs
	})
}

// intervalAt returns the time between I/Os around one of them: of due instants in order, the distance from it to its
// nearer neighbour. It is 0 without one.
func intervalAt(due []op.Time, at op.Time) int64 {
	i, _ := slices.BinarySearch(due, at)
	least := op.Time(math.MaxInt64)
	if i > 0 {
		least = at - due[i-1]
	}
	if i+1 < len(due) {
		least = min(least, due[i+1]-at)
	}
	if least == math.MaxInt64 {
		return 0
	}
	return int64(least)
}

// medianInterval returns the median distance between due instants, which are in order;
// a read and a write may share one.
func medianInterval(ios []op.CanaryIO) int64 {
	diffs := make([]int64, 0, len(ios))
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

// refine takes the begin of a stall from the workload's longest I/O of that time, where
// that lies within the canary's error: the workload always has I/O pending.
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

// workloadStalls returns the slow I/Os of workloads that no canary observed: of
// instances without a canary, and those shorter than its interval. A longer one that
// the canary did not observe was a slow I/O, not a stall.
func workloadStalls(d *dataset.Data, seen, slow []Stall) []Stall {
	if len(slow) == 0 {
		return nil
	}
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

// listed reports whether a stall is long enough, given its error.
func (s *Stall) listed() bool {
	return s.OwnOps > 0 || s.LengthNs >= Threshold-min(s.ErrorNs, Threshold/5)
}

// earliest returns the earliest possible begin: earlier by the error, or for a slice
// by the whole length.
func (s *Stall) earliest() op.Time {
	if s.ofSlice() {
		return s.From - op.Time(s.LengthNs)
	}
	return s.From - op.Time(s.ErrorNs)
}

// latest returns the latest possible begin: the first pending I/O may have made progress
// until then.
func (s *Stall) latest() op.Time {
	switch {
	case s.ofSlice():
		return s.To - op.Time(s.LengthNs-binError(s.LengthNs))
	case s.Source == Operations:
		return s.From
	}
	return s.From + op.Time(min(s.ErrorNs, s.LengthNs/2))
}

// addOps lists the ops in progress. An op that began after the stall did not cause it.
func (s *Stall) addOps(d *dataset.Data, ws []dataset.Window, from op.Time) {
	to := s.Until()
	for _, w := range ws {
		if w.From > to {
			break
		}
		if w.To < from {
			continue
		}
		c := ConcurrentOp{
			Op: w.Op, Action: w.Action, Instance: w.Instance, Target: w.Target,
			Own:       d.Owns(s.Instance, s.Volume, w.Target),
			AtBegin:   w.From <= s.latest(),
			OverlapNs: int64(min(w.To, to) - max(w.From, from)),
		}
		switch {
		case c.AtBegin && c.Own:
			s.OwnOps++
		case c.AtBegin:
			s.OtherOps++
		}
		s.addOp(&c)
	}
}

// addOp lists an op if it is one of the first.
func (s *Stall) addOp(c *ConcurrentOp) {
	at := len(s.Ops) // behind all that are before it, or equal
	for at > 0 && c.before(&s.Ops[at-1]) {
		at--
	}
	if len(s.Ops) == maxStallOps {
		s.MoreOps++
		if at == maxStallOps {
			return
		}
		s.Ops = s.Ops[:maxStallOps-1]
	}
	s.Ops = slices.Insert(s.Ops, at, *c)
}

// before reports whether an op is listed before another.
func (c *ConcurrentOp) before(other *ConcurrentOp) bool {
	if a, b := c.rank(), other.rank(); a != b {
		return a > b
	}
	return c.OverlapNs > other.OverlapNs
}

// rank orders ops by how likely they caused the stall.
func (c *ConcurrentOp) rank() int {
	switch {
	case c.Own && c.AtBegin:
		return 2
	case c.Own:
		return 1
	}
	return 0
}

// Named names the ops that a stall coincides with: those on the same volume in progress
// at its begin, else the number on other volumes, else "none".
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
func (c ConcurrentOp) String() string { return fmt.Sprintf("%s/%d", c.Action, c.Instance) }

// Longest returns the n longest stalls in order of time.
func Longest(all []Stall, n int) []Stall {
	byLength := slices.Clone(all)
	slices.SortStableFunc(byLength, func(a, b Stall) int { return cmp.Compare(b.LengthNs, a.LengthNs) })
	top := byLength[:min(n, len(byLength))]
	slices.SortStableFunc(top, func(a, b Stall) int { return cmp.Compare(a.From, b.From) })
	return top
}
