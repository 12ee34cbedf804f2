package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestValues: the metrics of a tool that are no latencies are in a table of their own, with the range of the instances
// where there are several.
func TestValues(t *testing.T) {
	rate := metric.Traits{Kind: metric.Rate, Better: metric.Higher}
	s := &summary.Summary{Workloads: []summary.Workload{
		{Action: "pg", Values: []dataset.Figure{{Metric: "tps", Unit: "1/s", Traits: rate, Value: 150, Instances: 2, Min: 50,
			Max: 100}}},
		{Action: "kv", Values: []dataset.Figure{{Metric: "heap", Unit: "B", Traits: metric.Traits{Kind: metric.Level},
			Value: 2048, Instances: 1}}, Instances: []summary.Instance{{Name: "kv-0", Detail: &summary.Detail{
			Volumes: []op.VolumeUse{{Volume: "kv-0-data", UsedBytes: 1, FreeBytes: 3}}}}}},
	}}
	var out strings.Builder
	if err := Write(&out, s, Options{}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"pg tps 150/s rate higher 2 50/s 100/s", "kv heap 2 KiB level – 1 – –",
		"kv: fullest volume: kv-0-data, 25 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
