package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
)

// TestUnits: the figures of a history have their units.
func TestUnits(t *testing.T) {
	rate := 716.2
	p := &printer{width: 120}
	p.history([]compare.History{{Metric: "rate(volumes)", Unit: "1/s", Values: []*float64{&rate}}})
	if text := p.String(); strings.Count(text, "716/s") != 2 {
		t.Errorf("want 716/s twice:\n%s", text)
	}
}
