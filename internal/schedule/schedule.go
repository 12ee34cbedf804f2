// Package schedule implements rates as pure functions from a trigger's number to its due time.
package schedule

import (
	"math"
	"math/rand/v2"
	"time"
)

// Schedule is a sequence of due times of triggers, counted from the rate's start. It is immutable. New begins
// a pass over it; the same seed gives the same times.
type Schedule interface {
	New(seed uint64) Sequence
	// PerSecond is the mean rate of triggers.
	PerSecond() float64
}

// Sequence is one pass over a Schedule. Next returns the next trigger, or false at the end;
// due times never decrease. It is not safe for concurrent use.
type Sequence interface {
	Next() (t Trigger, ok bool)
}

// Trigger is a time at which an action is due.
type Trigger struct {
	Due time.Duration
	// Way selects the actions of a rate that counts objects up and down; Level is their
	// number afterwards.
	Way   Way
	Level int64
	// Step is the number of the trigger, from 0.
	Step int64
}

// Way is the direction in which a rate changes the number of objects.
type Way int8

// The ways. Rates that do not count objects have NoWay.
const (
	NoWay Way = iota
	Up
	Down
)

// Ending is a Schedule whose triggers can be counted.
type Ending interface {
	// Count returns the number of triggers up to until (0: in total); ended is false if
	// it is infinite.
	Count(until time.Duration) (n int64, ended bool)
}

// Constant is one trigger each Interval: trigger k = 0, 1, … is due at (k+1)·Interval, like the ticks of a
// time.Ticker. Times are computed without accumulation, so they do not drift.
type Constant struct {
	Interval time.Duration
	// Rate, if positive, replaces Interval: due at (k+1)/Rate seconds, rounded to the ns.
	Rate float64
}

// PerSecond returns 1/Interval, or Rate.
func (c Constant) PerSecond() float64 {
	if c.Rate > 0 {
		return c.Rate
	}
	return float64(time.Second) / float64(c.Interval)
}

// New returns the sequence; the seed is not used.
func (c Constant) New(uint64) Sequence { return &constant{Constant: c} }

type constant struct {
	Constant
	k int64
}

func (c *constant) Next() (Trigger, bool) {
	t := Trigger{Step: c.k}
	c.k++
	if c.Rate > 0 {
		t.Due = seconds(float64(c.k) / c.Rate)
	} else {
		t.Due = time.Duration(c.k) * c.Interval
	}
	return t, true
}

// Poisson has independent exponential gaps with a mean of 1/Rate seconds.
type Poisson struct{ Rate float64 }

// PerSecond returns the mean rate.
func (p Poisson) PerSecond() float64 { return p.Rate }

// New draws a sequence from seed (PCG).
func (p Poisson) New(seed uint64) Sequence {
	return &poisson{rate: p.Rate, rng: rand.New(rand.NewPCG(seed, 0x706f6973736f6e))}
}

type poisson struct {
	rate float64
	rng  *rand.Rand
	at   float64 // seconds; float64 keeps ns exact beyond 10^6 s
	k    int64
}

func (p *poisson) Next() (Trigger, bool) {
	p.at += p.rng.ExpFloat64() / p.rate
	p.k++
	return Trigger{Due: seconds(p.at), Step: p.k - 1}, true
}

// Burst is Size triggers at once each Interval, the first at Interval.
type Burst struct {
	Size     int
	Interval time.Duration
}

// PerSecond returns the mean rate over the interval.
func (b Burst) PerSecond() float64 {
	return float64(b.Size) * float64(time.Second) / float64(b.Interval)
}

// New returns the sequence; the seed is not used.
func (b Burst) New(uint64) Sequence { return &burst{Burst: b} }

type burst struct {
	Burst
	k int64
}

func (b *burst) Next() (Trigger, bool) {
	round := b.k/int64(b.Size) + 1
	b.k++
	return Trigger{Due: time.Duration(round) * b.Interval, Step: b.k - 1}, true
}

func seconds(s float64) time.Duration {
	ns := math.Round(s * float64(time.Second))
	if ns >= math.MaxInt64 {
		return math.MaxInt64
	}
	return time.Duration(ns)
}
