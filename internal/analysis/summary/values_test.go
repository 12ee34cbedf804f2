package summary

import (
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// TestValues: counts of an operation are in the table of its latencies, and rates of which more is better in the
// headline.
func TestValues(t *testing.T) {
	figures := []dataset.Figure{
		{Metric: "tps", Unit: "1/s", Traits: metric.Traits{Kind: metric.Rate, Better: metric.Higher}, Value: 12345},
		{Metric: "aborts", Unit: "1/s", Traits: metric.Traits{Kind: metric.Rate, Better: metric.Lower}, Value: 2},
		{Metric: "transaction.failed", Unit: "1", Traits: metric.Traits{Kind: metric.Quantity}, Value: 2},
		{Metric: "read.bytes", Unit: "B", Traits: metric.Traits{Kind: metric.Quantity}, Value: 2048},
	}
	var names []string
	for _, f := range Uncounted([]Metric{{Name: "transaction"}}, figures) {
		names = append(names, f.Metric+" "+Amount(f.Value, f.Unit))
	}
	if want := []string{"tps 12.3k/s", "aborts 2/s", "read.bytes 2 KiB"}; !slices.Equal(names, want) {
		t.Errorf("values %q, want %q", names, want)
	}
	w := Workload{Action: "pg", Values: figures, Instances: make([]Instance, 1)}
	if got, want := workloadLine(w, false), "pg, 1 instance: tps 12.3k/s."; got != want {
		t.Errorf("headline %q, want %q", got, want)
	}
}

// TestPrincipalValues: the headline has the principal figures of a tool in its order, whatever their kind.
func TestPrincipalValues(t *testing.T) {
	figures := []dataset.Figure{
		{Metric: "allOps", Unit: "1/s", Traits: metric.Traits{Kind: metric.Rate, Better: metric.Higher}, Value: 9},
		{Metric: "dataRate", Unit: "B/s", Traits: metric.Traits{Kind: metric.Rate, Better: metric.Higher, Rank: 2},
			Value: 1024},
		{Metric: "elapsed", Unit: "ns", Traits: metric.Traits{Kind: metric.Level, Better: metric.Lower, Rank: 1}, Value: 2e9},
	}
	w := Workload{Action: "db", Values: figures, Instances: make([]Instance, 1)}
	if got, want := workloadLine(w, false), "db, 1 instance: elapsed 2 s; dataRate 1 KiB/s."; got != want {
		t.Errorf("headline %q, want %q", got, want)
	}
}

// TestAmount: only bytes have binary prefixes.
func TestAmount(t *testing.T) {
	for _, tt := range []struct {
		v          float64
		unit, want string
	}{{1536, "B", "1.5 KiB"}, {2e6, "ns", "2 ms"}, {1500, "% of a CPU", "1500 % of a CPU"}, {0.25, "", "0.25"},
		{4096, "requests", "4096 requests"}} {
		if got := Amount(tt.v, tt.unit); got != tt.want {
			t.Errorf("%v %s: %q, want %q", tt.v, tt.unit, got, tt.want)
		}
	}
}
