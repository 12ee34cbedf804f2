package op

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Trace collects the milestones of one op while an engine executes it. Its methods are safe for concurrent
// use and never block on I/O.
type Trace struct {
	clock Clock

	mu         sync.Mutex
	milestones []Milestone
	attempts   int
	node       string
	object     string
	ended      Time
}

// NewTrace returns an empty Trace that takes timestamps from clock.
func NewTrace(clock Clock) *Trace {
	return &Trace{clock: clock, ended: Never, milestones: make([]Milestone, 0, 8)} // most ops have fewer
}

// Mark records the milestone name at the current time of the runner's clock, as observed by source.
func (t *Trace) Mark(name, source string) { t.MarkAt(name, t.clock.Now(), 0, source) }

// MarkAt records a milestone with a time taken elsewhere and its ± error in nanoseconds.
func (t *Trace) MarkAt(name string, at Time, err int64, source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.milestones = append(t.milestones, Milestone{Name: name, At: at, Err: err, Source: source})
}

// MarkPolled records a milestone that was found by polling at an interval. It happened between the last two
// polls, so that its time is the middle between them, with an error of ± half the interval.
func (t *Trace) MarkPolled(name, source string, interval time.Duration) {
	half := int64(interval) / 2
	t.MarkAt(name, t.clock.Now()-Time(half), half, source)
}

// Attempt counts one request for the op's main step.
func (t *Trace) Attempt() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.attempts++
}

// On records the node where the op took place and the object it made.
func (t *Trace) On(node, object string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.node, t.object = node, object
}

// EndedAt sets when the op ended, if that differs from when the engine returns: an engine that watches
// objects may wait for events that happened before.
func (t *Trace) EndedAt(at Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = at
}

// Refine calls do for each milestone so far, for example to set its error by later information. do must not
// call methods of t.
func (t *Trace) Refine(do func(*Milestone)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.milestones {
		do(&t.milestones[i])
	}
}

// Fill moves what was collected to o, with the milestones in order of time. Later marks are lost. A time set
// by EndedAt replaces o.Ended unless it is before o.Started.
func (t *Trace) Fill(o *Op) {
	t.mu.Lock()
	defer t.mu.Unlock()
	o.Milestones, t.milestones = t.milestones, nil
	slices.SortStableFunc(o.Milestones, func(a, b Milestone) int { return cmp.Compare(a.At, b.At) })
	o.Attempts = t.attempts
	if t.ended.Known() && t.ended >= o.Started {
		o.Ended = t.ended
	}
	if t.node != "" {
		o.Node = t.node
	}
	if t.object != "" {
		o.Object = t.object
	}
}
