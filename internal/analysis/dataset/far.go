package dataset

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// farAway is how far before its begin and after its end a run may have records.
	farAway = op.Time(time.Hour)
	// longestRun bounds the times of a run whose end is not known or cannot be true.
	longestRun = op.Time(400 * 24 * time.Hour)
)

// Bounds are the times that a record of a run may have. A single one far in time, by a wrong clock or in a bundle of
// somebody else, would make every axis of time useless, and what divides it into steps endless.
type Bounds struct{ From, To op.Time }

// BoundsOf are the bounds of a run, by its own times.
func BoundsOf(r *bundle.Run) Bounds {
	end := r.EndedAt
	if end <= 0 || end > longestRun {
		end = longestRun
	}
	return Bounds{-farAway, end + farAway}
}

// Has reports whether times, of those that are known, are within the bounds.
func (b Bounds) Has(times ...op.Time) bool {
	for _, t := range times {
		if t.Known() && (t < b.From || t > b.To) {
			return false
		}
	}
	return true
}

// far counts the records that were left out for their times.
type far struct {
	mu   sync.Mutex
	left map[string]int // by what they are
}

// within reports whether a record is within the bounds of the run, and counts one that is not.
func (d *Data) within(what string, times ...op.Time) bool {
	if d.bounds.Has(times...) {
		return true
	}
	d.far.mu.Lock()
	defer d.far.mu.Unlock()
	d.far.left[what]++
	return false
}

// warnFar adds what was left out to the warnings of the bundle.
func (d *Data) warnFar() {
	if len(d.far.left) == 0 {
		return
	}
	var parts []string
	for _, what := range slices.Sorted(maps.Keys(d.far.left)) {
		parts = append(parts, fmt.Sprintf("%d %s", d.far.left[what], what))
	}
	text := "left out, because their times are more than " + time.Duration(farAway).String() +
		" before or after the run: " + strings.Join(parts, ", ")
	if b := d.Bundle; !slices.Contains(b.Warnings, text) {
		b.Warnings = append(slices.Clip(b.Warnings), text)
	}
}

// nearPoints removes the points of a series that are outside of the run.
func (d *Data) nearPoints(s *bundle.Series) {
	s.Points = slices.DeleteFunc(s.Points, func(p metric.Point) bool { return !d.within("points of series", p.At) })
	if s.Step < 0 || op.Time(s.Step) > d.bounds.To-d.bounds.From {
		s.Step = 0
	}
}
