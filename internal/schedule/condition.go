package schedule

import "time"

// Truth is the value of a condition: what could be measured may not decide it.
type Truth int8

// The values. Only True fires, and only False re-arms.
const (
	Unknown Truth = iota
	False
	True
)

// Condition fires when a condition becomes true. It is pure: its times are offsets that the caller measures on one
// clock, and the same steps give the same firings.
//
// It fires once for each crossing. After a firing it is disarmed until the condition is False and Reset, if there is
// one, is True. An unknown value neither fires nor re-arms, and ends the time that For counts: between two known
// values nothing shows that the condition held.
type Condition struct {
	For      time.Duration // how long the condition must hold
	Cooldown time.Duration // minimum time between two firings

	disarmed bool
	holds    bool
	since    time.Duration // when it began to hold; valid with holds
	last     time.Duration // the last firing; valid with fired
	fired    bool
	latest   time.Duration // the latest time of a step
}

// Step takes the values at a time now. measured is the time of the newest sample that when is computed from: the time
// for which it holds counts from there. reset is ignored unless hasReset. A time before that of an earlier step counts
// as that one. If the condition fires, since is when it began to hold.
func (c *Condition) Step(now, measured time.Duration, when, reset Truth, hasReset bool) (since time.Duration, fires bool) {
	now = max(now, c.latest)
	c.latest = now
	if when != True {
		c.holds = false
		if when == False && (!hasReset || reset == True) {
			c.disarmed = false
		}
		return 0, false
	}
	measured = min(measured, now)
	if !c.holds {
		c.holds, c.since = true, measured
	}
	// now, not measured: a value that holds until the next sample was not shown to hold for longer, but it was not
	// shown to end either, and the samples of a rare source would delay the firing by their interval.
	if c.disarmed || now-c.since < c.For || c.fired && now-c.last < c.Cooldown {
		return 0, false
	}
	c.disarmed, c.fired, c.last = true, true, now
	return c.since, true
}
