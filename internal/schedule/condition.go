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

// Reading is what is known of a condition at one time.
type Reading struct {
	When, Reset Truth
	// Measured is the time of the newest sample that the values are computed from.
	Measured time.Duration
	// Observed are the measured values, for people.
	Observed string
	// Missing says which samples were due and are not there; empty: none.
	Missing string
}

// Condition fires when a condition becomes true. It is pure: its times are offsets that the caller measures on one
// clock, and the same steps give the same firings.
//
// It fires once for each crossing. After a firing it is disarmed until When is False and, with HasReset, Reset is
// True. An unknown value neither fires nor re-arms, and ends the time that For counts: nothing shows that the
// condition held between two known values.
type Condition struct {
	For      time.Duration // how long the condition must hold
	Cooldown time.Duration // minimum time between two firings
	HasReset bool

	disarmed bool
	holds    bool
	since    time.Duration // when it began to hold; valid with holds
	last     time.Duration // the last firing; valid with fired
	fired    bool
	latest   time.Duration // the latest time of a step
}

// Step evaluates a reading at a time. A time before that of an earlier step counts as that one. If the condition
// fires, since is the time of the sample by which it began to hold.
func (c *Condition) Step(now time.Duration, r Reading) (since time.Duration, fires bool) {
	now = max(now, c.latest)
	c.latest = now
	if r.When != True {
		c.holds = false
		if r.When == False && (!c.HasReset || r.Reset == True) {
			c.disarmed = false
		}
		return 0, false
	}
	if !c.holds {
		c.holds, c.since = true, min(r.Measured, now)
	}
	if c.disarmed || now-c.since < c.For || c.fired && now-c.last < c.Cooldown {
		return 0, false
	}
	c.disarmed, c.fired, c.last = true, true, now
	return c.since, true
}
