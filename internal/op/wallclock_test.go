package op

import "testing"

// TestWallShown checks when a wall clock showed a time, for clocks that were set.
func TestWallShown(t *testing.T) {
	const s = Time(1e9)
	back := []WallStep{{From: 10 * s, To: 11 * s, ByNanos: int64(-5 * s)}}
	forward := []WallStep{{From: 10 * s, To: 11 * s, ByNanos: int64(5 * s)}}
	both := []WallStep{{From: 10 * s, To: 11 * s, ByNanos: int64(3600 * s)},
		{From: 20 * s, To: 21 * s, ByNanos: int64(-3600 * s)}}
	for _, c := range []struct {
		name        string
		steps       []WallStep
		wall, since Time
		want        Time
	}{
		{"not set", nil, 12 * s, -1 << 60, 12 * s},
		{"before the run", forward, -2 * s, -1 << 60, -2 * s},
		{"before it was set back", back, 4 * s, -1 << 60, 4 * s},
		{"shown twice", back, 7 * s, -1 << 60, 12 * s},
		{"after it was set back", back, 30 * s, -1 << 60, 35 * s},
		{"before it was set forward", forward, 9 * s, -1 << 60, 9 * s},
		{"after it was set forward", forward, 20 * s, -1 << 60, 15 * s},
		{"never shown", forward, 13 * s, -1 << 60, 10 * s},
		{"between two steps", both, 3615 * s, -1 << 60, 15 * s},
		{"after two steps", both, 25 * s, -1 << 60, 25 * s},
		{"a step before the clock was read", forward, 20 * s, 12 * s, 20 * s},
	} {
		w := WallReadings{Steps: c.steps, last: 60 * s}
		if got := w.Shown(c.wall, c.since); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestWallReadings checks which changes are steps.
func TestWallReadings(t *testing.T) {
	var w WallReadings
	for i, c := range []struct {
		at    Time
		ahead int64
		want  bool
	}{
		{1e9, 0, false}, {2e9, 90e6, false}, {3e9, 0, false}, {4e9, 3600e9, true}, {5e9, 3600e9, false},
		{5e9, 0, false}, {6e9, 0, true},
	} {
		if _, got := w.Add(&Machine{At: c.at, WallAheadNanos: &c.ahead}); got != c.want {
			t.Errorf("reading %d: step %v", i, got)
		}
	}
	if w.Add(&Machine{At: 7e9}); len(w.Steps) != 2 || w.Steps[0] != (WallStep{3e9, 4e9, 3600e9}) {
		t.Errorf("steps %+v", w.Steps)
	}
}
