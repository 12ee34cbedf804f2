// Package schedule has the schedules: pure functions that say when the k-th
// trigger is due. They know nothing of clocks, goroutines or actions.
package schedule

import (
	"math"
	"math/rand/v2"
	"time"
)

// Schedule says when triggers are due, counted from the rate's start. It is
// immutable; New begins one pass over it, and the same seed gives the same times.
type Schedule interface {
	New(seed uint64) Sequence
	// PerSecond is the mean rate of triggers, for budgets and sanity checks.
	PerSecond() float64
}

// Sequence is one pass over a Schedule, for one goroutine. Next returns the next
// trigger; ok is false when there are no more. Due times never decrease.
type Sequence interface {
	Next() (t Trigger, ok bool)
}

// Trigger is an instant at which something is to be done.
type Trigger struct {
	Due time.Duration
	// Way says which of the rate's actions are meant, where the rate counts
	// objects up and down; Level is their number afterwards.
	Way   Way
	Level int64
	// Step is the number of the trigger, from 0.
	Step int64
}

// Way is a direction.
type Way int8

// The ways: rates that do not count objects have none.
const (
	NoWay Way = iota
	Up
	Down
)

// Ending is a Schedule that ends by itself, or whose triggers can be counted.
type Ending interface {
	// Count is how many triggers are due until then (0: at all); ended is false
	// if there is no end to them.
	Count(until time.Duration) (n int64, ended bool)
}

// Constant is one trigger each Interval: the k-th (k = 0, 1, …) is due at
// (k+1)·Interval, as a ticker's would be. Times are computed, not added up, so
// that they do not drift.
type Constant struct {
	Interval time.Duration
	// Rate, if positive, is triggers per second and takes the place of
	// Interval: due (k+1)/Rate, rounded to the nanosecond.
	Rate float64
}

// PerSecond is 1/Interval.
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

// Poisson has independent exponential gaps of mean 1/Rate seconds: the
// arrivals of many independent users.
type Poisson struct{ Rate float64 }

// PerSecond is the mean rate.
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

// PerSecond is the mean over the interval.
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
