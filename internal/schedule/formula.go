package schedule

import (
	"math"
	"sort"
	"time"
)

// Formula is a rate in closed form. Rate types of the API implement it.
type Formula interface {
	// Due returns the due time of trigger k = 0, 1, …, or false after the last. It never
	// decreases with k.
	Due(k int64) (due time.Duration, ok bool)
	PerSecond() float64
}

// leveled is a Formula that counts objects up and down.
type leveled interface {
	Level(k int64) int64
}

// Closed is the Schedule of a Formula.
type Closed struct{ Formula }

// New returns the sequence; the seed is not used.
func (c Closed) New(uint64) Sequence { return &closed{Formula: c.Formula} }

// Count finds the first trigger after until by binary search.
func (c Closed) Count(until time.Duration) (int64, bool) {
	if until == 0 {
		if _, more := c.Due(math.MaxInt32); more {
			return 0, false
		}
		until = math.MaxInt64
	}
	n := sort.Search(math.MaxInt32, func(k int) bool {
		due, ok := c.Due(int64(k))
		return !ok || due > until
	})
	return int64(n), true
}

type closed struct {
	Formula
	k, level int64
}

func (c *closed) Next() (Trigger, bool) {
	due, ok := c.Due(c.k)
	t := Trigger{Due: due, Step: c.k}
	if l, counts := c.Formula.(leveled); counts && ok {
		t.Level, t.Way = l.Level(c.k), Up
		if t.Level < c.level {
			t.Way = Down
		}
		c.level = t.Level
	}
	c.k++
	return t, ok
}
