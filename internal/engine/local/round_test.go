package local_test

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestDriverRoundsUp checks a driver that rounds sizes up: the operation succeeds, the size of the volume is the one
// the driver returns, and a resize within the same step completes without growth.
func TestDriverRoundsUp(t *testing.T) {
	const step = int64(100) << 20
	d := startDriver(t, "null", "--round-to", "100Mi")
	r := openForeign(t, d.socket)
	_, v, err := r.do(volumeRequest("v-0", nil)) // 64Mi requested
	if err != nil || v.Bytes != step {
		t.Fatalf("made %d bytes, %v; want %d", v.Bytes, err, step)
	}
	for _, tt := range []struct{ ask, want int64 }{{step + 1, 2 * step}, {2*step - 1, 2 * step}, {3 * step, 3 * step}} {
		o, grown, err := r.do(engine.Request{Name: "grow", Kind: op.Resize, Target: v,
			Resize: &engine.Resize{Bytes: tt.ask}})
		if err != nil || grown.Bytes != tt.want {
			t.Errorf("asked for %d, got %d, %v; want %d", tt.ask, grown.Bytes, err, tt.want)
		}
		if !o.Milestone(op.Ready).Known() {
			t.Errorf("asked for %d: not ready, %v", tt.ask, o.Milestones)
		}
	}
	if _, _, err := r.do(engine.Request{Kind: op.Delete, Target: v}); err != nil {
		t.Error(err)
	}
}
