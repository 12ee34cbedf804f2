package op

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Trace gathers the milestones of one op while an engine carries it out. Its
// methods are safe for concurrent use and never block on I/O.
type Trace struct {
	clock Clock

	mu         sync.Mutex
	milestones []Milestone
	attempts   int
	node       string
	object     string
	ended      Time
}

// NewTrace returns an empty trace whose marks are stamped by clock.
func NewTrace(clock Clock) *Trace {
	return &Trace{clock: clock, ended: Never, milestones: make([]Milestone, 0, 8)} // most ops have fewer
}

// Mark records that name happened now, seen by source on the runner's clock.
func (t *Trace) Mark(name, source string) { t.MarkAt(name, t.clock.Now(), 0, source) }

// MarkAt records an instant taken elsewhere, with its ± error in nanoseconds.
func (t *Trace) MarkAt(name string, at Time, err int64, source string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.milestones = append(t.milestones, Milestone{Name: name, At: at, Err: err, Source: source})
}

// MarkPolled records an instant that was found by looking each interval: it lay
// somewhere between the last two looks, so it is set to their middle, ± half.
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

// EndedAt says when the op ended, where that is not when its engine returns:
// one that watches may still wait for word of what has happened by then.
func (t *Trace) EndedAt(at Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ended = at
}

// Refine lets do change each milestone so far, such as its error by what came to be
// known after it. do must not call t.
func (t *Trace) Refine(do func(*Milestone)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.milestones {
		do(&t.milestones[i])
	}
}

// Fill gives what was gathered to o, milestones in order of time. Marks that
// come later are lost. An end that was stated replaces that of o.
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
