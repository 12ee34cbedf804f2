package study

import (
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// TestDeclaredRates: a workload whose parser declares rates has them as responses, and the unit and direction of their
// values are those of the metric.
func TestDeclaredRates(t *testing.T) {
	responses := DefaultResponses([]Action{{Name: "pg", Rates: []string{"tps"}}, {Name: "fio", IO: []string{"read"}}})
	if want := []string{"p50(pg)", "value(pg.tps)", "p50(fio)", "iops(fio.read)"}; !slices.Equal(responses, want) {
		t.Errorf("responses %q, want %q", responses, want)
	}
	queries, err := Responses(responses)
	if err != nil {
		t.Fatal(err)
	}
	m := (&Design{}).metric(responses[1], queries[1])
	if m.Unit != "" || m.Direction != "" {
		t.Errorf("before a value is known: %+v", m)
	}
	var s sample
	s.add(Trial{}, expr.Value{Number: 812, Unit: "1/s", Better: metric.Higher})
	if s.unit != "1/s" || s.better != metric.Higher || s.value(s.unit).String() != "812/s" {
		t.Errorf("%+v: %s", s, s.value(s.unit))
	}
}
