package op

import "time"

// Clock is the runner's clock: monotonic, zero at the run's start. The zero
// Clock is not usable. It is a value, safe for concurrent use.
type Clock struct{ start time.Time }

// NewClock starts a clock now.
func NewClock() Clock { return Clock{start: time.Now()} }

// Now is the time since the run's start.
func (c Clock) Now() Time { return Time(time.Since(c.start)) }

// At turns an instant of the run into one of the process: it carries the
// monotonic reading, so that time.Until and timers are exact.
func (c Clock) At(t Time) time.Time { return c.start.Add(time.Duration(t)) }

// Of turns an instant of this process, taken by time.Now, into one of the run.
func (c Clock) Of(t time.Time) Time { return Time(t.Sub(c.start)) }

// Start is the wall-clock time of zero, for people; never subtract from it.
func (c Clock) Start() time.Time { return c.start }
