package op

import (
	"math"
	"slices"
)

// WallStep is a change of a machine's wall clock by something else than the passing of time: someone, or a program such
// as an NTP client, has set it.
type WallStep struct {
	From, To Time  // it was between these two readings
	ByNanos  int64 // forward: positive
}

// leastWallStep is the least change that counts, in ns. Readings of agents have the error of their clocks.
const leastWallStep = 100_000_000

// WallReadings finds the steps of one machine's wall clock in readings of it. The zero value is ready to use.
type WallReadings struct {
	Steps []WallStep

	last  Time
	ahead int64
	known bool
}

// Add adds the next reading of the machine, and reports whether its wall clock was stepped since the one before.
// Readings without the wall clock, and those that are not later than the last one, are ignored.
func (w *WallReadings) Add(m *Machine) (step WallStep, stepped bool) {
	if m.WallAheadNanos == nil || w.known && m.At <= w.last {
		return WallStep{}, false
	}
	by := *m.WallAheadNanos - w.ahead
	step = WallStep{From: w.last, To: m.At, ByNanos: by}
	if stepped = w.known && (by >= leastWallStep || by <= -leastWallStep); stepped {
		w.Steps = append(w.Steps, step)
	}
	w.last, w.ahead, w.known = m.At, *m.WallAheadNanos, true
	return step, stepped
}

// afterLast is for how long after its last reading a clock is taken to have run on.
const afterLast = Time(5_000_000_000)

// Shown returns when in the run a wall clock showed wall, the time of the run that it would be had the clock not been
// stepped since the given time. If the clock showed it twice, because it was set back, that is the later one; if never,
// because it was set forward, the begin of that step.
func (w *WallReadings) Shown(wall, since Time) Time {
	steps := slices.DeleteFunc(slices.Clone(w.Steps), func(s WallStep) bool { return s.To <= since })
	at, from, shown := wall, Time(math.MinInt64), false
	skipped, never := Time(0), false
	if len(steps) == 0 {
		return wall
	}
	for t, i := wall, 0; ; i++ { // t is when it was, if after i steps
		to := w.last + afterLast
		if i < len(steps) {
			to = steps[i].To
		}
		if t >= from && t <= to {
			at, shown = t, true
		}
		if i == len(steps) {
			break
		}
		if next := t - Time(steps[i].ByNanos); t > to && next < steps[i].From {
			skipped, never = steps[i].From, true
		}
		t, from = t-Time(steps[i].ByNanos), steps[i].From
	}
	if !shown && never {
		return skipped
	}
	return at
}
