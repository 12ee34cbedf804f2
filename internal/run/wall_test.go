package run

import (
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestWallClocks checks times of tools on machines whose wall clocks are not the runner's.
func TestWallClocks(t *testing.T) {
	r := &runner{Config: Config{Clock: op.NewClock()}, instances: newInstances()}
	r.instances.hasStarted(op.InstanceStart{Instance: "w-0", Container: "far",
		Wall: &op.WallClock{AheadNanos: int64(time.Hour), ErrNanos: 2e6}})
	r.instances.hasStarted(op.InstanceStart{Instance: "w-1", Container: "here"})
	now := r.Clock.Start().UnixNano()
	if at := r.atWall("w-0", "far")(now + int64(time.Hour) + 7); at != 7 {
		t.Errorf("far: %v", at)
	}
	if at := r.atWall("w-1", "here")(now + 7); at != 7 {
		t.Errorf("here: %v", at)
	}
	if off := r.instances.wallError("w-0", 10e9); off != 2e6+10e6 { // two clocks, 500 ppm each
		t.Errorf("error %v", off)
	}
	if off := r.instances.wallError("w-1", 10e9); off != 0 {
		t.Errorf("error of the runner's clock: %v", off)
	}
}
