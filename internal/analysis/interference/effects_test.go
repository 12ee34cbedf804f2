package interference

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestRatioNeedsSteps: from fewer steps of time than an interval needs there is
// no ratio either, however far apart the sides are.
func TestRatioNeedsSteps(t *testing.T) {
	const ms = op.Time(1e6)
	for _, tt := range []struct {
		name  string
		slow  int // I/Os in progress while the op was
		ratio bool
	}{{"as many as an interval needs", 10, true}, {"one less", 9, false}} {
		t.Run(tt.name, func(t *testing.T) {
			c := dataset.Canary{Instance: "w-0", Action: "w", Volume: "v"}
			for i := range 200 {
				at, took := op.Time(i)*10*ms, ms
				if i >= 100 && i < 100+tt.slow {
					took = 5 * ms
				}
				c.IOs = append(c.IOs, op.CanaryIO{Intended: at, Started: at, Ended: at + took, Write: true})
			}
			during := dataset.Window{Action: "snapshots", Target: "v", From: 1000 * ms,
				To: 1000*ms + op.Time(tt.slow)*10*ms - ms}
			d := &dataset.Data{Canaries: []dataset.Canary{c}}
			effects := Effects(d, busy(d, []dataset.Window{during}), 42)
			if len(effects) != 1 || effects[0].Own.N != int64(tt.slow) {
				t.Fatalf("effects %+v", effects)
			}
			r := effects[0].OwnRatio
			if (r != nil) != tt.ratio {
				t.Fatalf("ratio %+v, want one: %v", r, tt.ratio)
			}
			if r != nil && (r.Value < 4.9 || r.Value > 5.1 || r.Low > r.Value || r.High < r.Value) {
				t.Errorf("ratio %+v, want 5 within its interval", *r)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		ratio     Ratio
		low, high string
	}{
		{Ratio{Low: 1.17, High: 9}, "1.17", "9"},
		{Ratio{Low: 1.17, High: 64.8e6}, "1.17", "> 1000"},
		{Ratio{Low: 1e-6, High: 1000}, "< 0.001", "1000"},
	} {
		if low, high := tt.ratio.Bounds(); low != tt.low || high != tt.high {
			t.Errorf("%+v: %q and %q, want %q and %q", tt.ratio, low, high, tt.low, tt.high)
		}
	}
}
