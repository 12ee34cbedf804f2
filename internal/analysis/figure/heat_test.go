package figure

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestLimit: a heat map of many latencies has fewer bins of time, with all ops; one of few keeps its bins.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		name      string
		latencies int
		bins      int
	}{{"few latencies", 2, 100}, {"many", 24, 25}} {
		var h Heat
		for i := range 100 * 24 {
			at := op.Time(i/24) * 1e9
			took := op.Time(1e6)
			for range i % 24 % tt.latencies {
				took = took * 13 / 10 // another row
			}
			h.add(&op.Op{Intended: at, Started: at, Ended: at + took, Outcome: op.OK}, 200e9)
		}
		h.limit()
		n := 0
		for _, b := range h.Bins {
			for _, k := range b.Rows {
				n += k
			}
		}
		if len(h.Bins) != tt.bins || n != 2400 || h.cells() > maxCells {
			t.Errorf("%s: %d bins of %d ns, %d cells, %d ops", tt.name, len(h.Bins), h.Step, h.cells(), n)
		}
	}
}
