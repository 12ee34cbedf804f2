package run

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// TestClosedLoopKeepsExactlyN checks that a closed loop has exactly N ops in flight from its start until the
// run stops, or with until: ended, N workloads that have not ended.
func TestClosedLoopKeepsExactlyN(t *testing.T) {
	const n, life = 7, 3 * time.Second
	varied := func(r engine.Request) (time.Duration, error) {
		return time.Duration(100+37*(r.Instance%13)) * time.Millisecond, nil
	}
	tests := []struct {
		name  string
		ended bool
		lasts func(o *op.Op) op.Time // end of the time that is counted
	}{
		{"until running", false, func(o *op.Op) op.Time { return o.Ended }},
		{"until ended", true, func(o *op.Op) op.Time { return o.Ended + op.Time(life) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pods := runs("w", 1)
				pods.Rate = "r"
				p := plan.Plan{Runtime: 60 * time.Second, Actions: []plan.Action{pods},
					Rates: []plan.Rate{{Name: "r", Parallelism: n, UntilEnded: tt.ended}}}
				m, res := carry(t.Context(), t.Context(), p, &script{took: varied, life: life})
				edges := map[op.Time]int{}
				for _, o := range m.of("w") {
					edges[o.Started]++
					edges[tt.lasts(&o)]--
				}
				if len(edges) < 20 || edges[res.BarrierAt] != n {
					t.Fatalf("%d instants, %d ops at the first", len(edges), edges[res.BarrierAt])
				}
				for at, change := range edges {
					if at > res.BarrierAt && at < res.StopAt && change != 0 {
						t.Errorf("at %v after the barrier there were %+d", time.Duration(at-res.BarrierAt), change)
					}
				}
			})
		})
	}
}
