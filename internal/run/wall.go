package run

import (
	"math"
	"sync"

	"github.com/cnsbench/cnsbench/internal/op"
)

// wallClocks follows the wall clocks of the machines of a run. It is safe for concurrent use.
type wallClocks struct {
	mu sync.Mutex
	of map[string]*op.WallReadings // by machine; "": the runner's
}

func newWallClocks() *wallClocks { return &wallClocks{of: map[string]*op.WallReadings{}} }

// add adds a reading, and reports a step of the machine's wall clock.
func (w *wallClocks) add(m *op.Machine) (op.WallStep, bool) {
	key := m.ID
	if m.Instance == "" {
		key = ""
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.of[key] == nil {
		w.of[key] = &op.WallReadings{}
	}
	return w.of[key].Add(m)
}

// shown returns when a wall clock of a machine showed a time; see op.WallReadings.
func (w *wallClocks) shown(machine string, wall, since op.Time) op.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.of[machine]; r != nil {
		return r.Shown(wall, since)
	}
	return wall
}

// doubt returns how wrong a time of a machine's wall clock can be that was shown until an instant, because of steps: a
// clock that is set by less than the length of the run shows times twice, or skips times of the run.
func (w *wallClocks) doubt(machine string, until op.Time) (most op.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.of[machine]; r != nil {
		for _, s := range r.Steps {
			if by := op.Time(max(s.ByNanos, -s.ByNanos)); by <= until {
				most += by
			}
		}
	}
	return most
}

// always is before each instant of a run.
const always = op.Time(math.MinInt64 / 2)
