package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"testing"
	"time"
)

// percent returns the growth that is in effect.
func percent() int {
	p := debug.SetGCPercent(usual)
	debug.SetGCPercent(p)
	return p
}

// TestSetGrowth checks that the growth of a part of a command ends with it, and that a large heap grows less.
func TestSetGrowth(t *testing.T) {
	if os.Getenv("GOGC") != "" {
		t.Skip("GOGC is set and overrides the growth")
	}
	end := SetGrowth(400)
	if got := percent(); got != 400 {
		t.Errorf("a small heap grows by %d %%, want 400", got)
	}
	large := make([]byte, 24<<20)
	for began := time.Now(); percent() == 400 && time.Since(began) < time.Minute; time.Sleep(time.Millisecond) {
		runtime.GC()
	}
	if got := percent(); got < 150 || got > 200 {
		t.Errorf("a heap of %d MiB grows by %d %%, want a little less than 200", len(large)>>20, got)
	}
	runtime.KeepAlive(large)
	end()
	if got := percent(); got != usual {
		t.Errorf("afterwards it grows by %d %%, want %d", got, usual)
	}
}

func TestBounded(t *testing.T) {
	for _, tt := range []struct {
		percent int
		live    uint64
		want    int
	}{{400, 0, 400}, {400, 12 << 20, 400}, {400, 24 << 20, 200}, {400, 1 << 30, 100}, {150, 24 << 20, 150}} {
		if got := bounded(tt.percent, tt.live); got != tt.want {
			t.Errorf("%d %% of %d MiB: %d, want %d", tt.percent, tt.live>>20, got, tt.want)
		}
	}
}
