package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// TestValues: the metrics of a tool that are no latencies are in a table of their own, with the range of the instances
// where there are several.
func TestValues(t *testing.T) {
	rate := metric.Traits{Kind: metric.Rate, Better: metric.Higher}
	s := &summary.Summary{Workloads: []summary.Workload{
		{Action: "pg", Values: []dataset.Figure{{Metric: "tps", Unit: "1/s", Traits: rate, Value: 150, Instances: 2, Min: 50,
			Max: 100}}},
		{Action: "kv", Values: []dataset.Figure{{Metric: "heap", Unit: "B", Traits: metric.Traits{Kind: metric.Level},
			Value: 2048, Instances: 1}}},
	}}
	var out strings.Builder
	if err := Write(&out, s, Options{}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"pg tps 150/s rate higher 2 50/s 100/s", "kv heap 2 KiB level – 1 – –"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
