package summary

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// TestRatesWithoutLatencies: what a tool says of its rate is shown, though it
// prints no latencies.
func TestRatesWithoutLatencies(t *testing.T) {
	d := &dataset.Data{Scalars: []bundle.Scalar{
		{
			Labels: bundle.Labels{Instance: "dd-0", Action: "dd"},
			Scalar: metric.Scalar{Metric: "write.bandwidth", Unit: "B/s", Value: 1 << 20},
		},
		{
			Labels: bundle.Labels{Instance: "dd-1", Action: "dd"},
			Scalar: metric.Scalar{Metric: "write.bandwidth", Unit: "B/s", Value: 2 << 20},
		},
		{
			Labels: bundle.Labels{Instance: "dd-0", Action: "dd"},
			Scalar: metric.Scalar{Metric: "write.bytes", Unit: "B", Value: 5},
		},
	}}
	ms := metrics(d, func(string) bool { return true }, allPhases)
	if len(ms) != 1 || ms[0].Name != "write" || ms[0].BandwidthBytesSec == nil || *ms[0].BandwidthBytesSec != 3<<20 ||
		ms[0].PerSecond != nil {
		t.Fatalf("metrics %+v", ms)
	}
	w := Workload{Action: "dd", Metrics: ms, Instances: make([]Instance, 2)}
	if line := workloadLine(w, false); !strings.Contains(line, "write 3 MiB/s") || strings.Contains(line, "p99") {
		t.Errorf("headline %q", line)
	}
}
