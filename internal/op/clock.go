package op

import "time"

// Clock is the runner's clock: monotonic, zero at the run's start. The zero value is not usable. A Clock is
// passed by value and is safe for concurrent use.
type Clock struct{ start time.Time }

// NewClock returns a Clock that starts now.
func NewClock() Clock { return Clock{start: time.Now()} }

// Now returns the time since the run's start.
func (c Clock) Now() Time { return Time(time.Since(c.start)) }

// At converts a time of the run to a time.Time. The result has a monotonic reading, so that time.Until and
// timers are exact.
func (c Clock) At(t Time) time.Time { return c.start.Add(time.Duration(t)) }

// Of converts a time.Time of this process, from time.Now, to a time of the run.
func (c Clock) Of(t time.Time) Time { return Time(t.Sub(c.start)) }

// Start returns the wall-clock time of zero, for display. Do not compute durations from it.
func (c Clock) Start() time.Time { return c.start }

// WallAhead returns how far a machine's wall clock, which shows unixNanos at time t of the run, is ahead of the wall
// clock that the runner had at the start, plus t.
func (c Clock) WallAhead(unixNanos int64, t Time) int64 {
	return unixNanos - c.start.UnixNano() - int64(t)
}
