package run

import (
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestWallClocks checks times of tools on machines whose wall clocks are not the runner's.
func TestWallClocks(t *testing.T) {
	r := &runner{Config: Config{Clock: op.NewClock()}, instances: newInstances(), wallClocks: newWallClocks()}
	r.instances.hasStarted(op.InstanceStart{Instance: "w-0", Container: "far",
		Machine: "b", Wall: &op.WallClock{AheadNanos: int64(time.Hour), ErrNanos: 2e6}})
	r.instances.hasStarted(op.InstanceStart{Instance: "w-1", Container: "here"})
	now := r.Clock.Start().UnixNano()
	if at := r.atWall("w-0", "far")(now + int64(time.Hour) + 7); at != 7 {
		t.Errorf("far: %v", at)
	}
	if at := r.atWall("w-1", "here")(now + 7); at != 7 {
		t.Errorf("here: %v", at)
	}
	if off := r.instances.wallError("w-0", 10e9, r.wallClocks); off != 2e6+10e6 { // two clocks, 500 ppm each
		t.Errorf("error %v", off)
	}
	if off := r.instances.wallError("w-1", 10e9, r.wallClocks); off != 0 {
		t.Errorf("error of the runner's clock: %v", off)
	}
}

// TestWallSteps checks times of tools, and how far they can be trusted, when wall clocks are set during a run.
func TestWallSteps(t *testing.T) {
	const second, hour = op.Time(1e9), op.Time(3600e9)
	r := &runner{Config: Config{Clock: op.NewClock()}, instances: newInstances(), wallClocks: newWallClocks()}
	read := func(id, instance string, at, ahead op.Time) bool {
		n := int64(ahead)
		_, stepped := r.wallClocks.add(&op.Machine{ID: id, Instance: instance, At: at, WallAheadNanos: &n})
		return stepped
	}
	for at := range op.Time(20) {
		// The runner's clock is set back an hour at 5.5 s, the other one forward two seconds at 8.5 s.
		var own, far op.Time
		if at > 5 {
			own = -hour
		}
		if at > 8 {
			far = 2 * second
		}
		if got, want := read("a", "", at*second, own), at == 6; got != want {
			t.Errorf("runner's clock at %d s: step %v", at, got)
		}
		if got, want := read("b", "w-0", at*second+7e6, 60*second+far+at*1e6), at == 9; got != want {
			t.Errorf("other clock at %d s: step %v", at, got)
		}
	}
	// The containers early and late began before and after the step: what the agent of the latter said of its clock
	// has it.
	for name, at := range map[string]op.Time{"early": 1 * second, "late": 12 * second} {
		ahead := int64(60 * second)
		if name == "late" {
			ahead += int64(2 * second)
		}
		r.instances.hasStarted(op.InstanceStart{Instance: "w-0", Container: name, At: at, Machine: "b",
			Wall: &op.WallClock{AheadNanos: ahead, ErrNanos: 1e6}})
	}
	r.instances.hasStarted(op.InstanceStart{Instance: "w-1", Container: "here", At: 1 * second, Machine: "a"})
	start := r.Clock.Start().UnixNano()
	for _, c := range []struct {
		instance, container string
		wall, want          op.Time
	}{
		{"w-1", "here", 3 * second, 3 * second},
		{"w-1", "here", 7*second - hour, 7 * second},
		{"w-1", "here", 19*second - hour, 19 * second},
		{"w-0", "early", 63 * second, 3 * second},
		{"w-0", "early", 75 * second, 13 * second},
		{"w-0", "late", 75 * second, 13 * second},
	} {
		at := r.atWall(c.instance, c.container)(start + int64(c.wall))
		if off := at - c.want; off < -10e6 || off > 10e6 {
			t.Errorf("%s/%s: %v of the wall clock is %v, want %v", c.instance, c.container, c.wall, at, c.want)
		}
	}
	if off := r.instances.wallError("w-1", 20*second, r.wallClocks); off != 0 {
		t.Errorf("error %v after a step that cannot be mistaken", off)
	}
	if off := r.instances.wallError("w-0", 20*second, r.wallClocks); off < 2*second {
		t.Errorf("error %v after a step of 2 s", off)
	}
}
