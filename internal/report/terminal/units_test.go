package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
)

// TestUnits: the figures of a history and of a reproduced run have their units.
func TestUnits(t *testing.T) {
	rate := 716.2
	p := &printer{width: 120}
	p.history([]compare.History{{Metric: "rate(volumes)", Unit: "1/s", Values: []*float64{&rate}}})
	p.responses([]reproduction.Response{{Metric: "iops(fio.read)", Unit: "1/s", Then: []*float64{&rate},
		Now: []*float64{&rate}}})
	if text := p.String(); strings.Count(text, "716/s") != 4 {
		t.Errorf("want 716/s four times:\n%s", text)
	}
}
