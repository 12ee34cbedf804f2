package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/tenant"
)

// TestTenants: each step of each tenant has a row with what was missed and the ratios with their intervals, and what a
// violation rests on is below the table. A name of a damaged bundle cannot control the terminal.
func TestTenants(t *testing.T) {
	missed, rate, measured := int64(5e9), 101.3, 1543.0
	s := &summary.Summary{Tenants: []tenant.Tenant{
		{Name: "gold", Targets: []tenant.Target{{Metric: "write", P99Ns: 20e6, MeasuredNs: 12e9, ViolationsNs: 5e9, FewNs: 2e9}},
			Steps: []tenant.Step{
				{Name: "load 1", MeasuredNs: 12e9, ViolationsNs: &missed, Metrics: []tenant.Metric{
					{Metric: "canaryWrite", N: 600},
					{Metric: "write", N: 1200, PerSecond: &rate,
						Latency: &interference.Ratio{Quantile: 0.99, Value: 3, Low: 2, High: 4.5}},
				}},
				{Name: "after"},
			}},
		{Name: "noisy\x1b[2J", Limits: []tenant.Limit{{Metric: "write.iops", Unit: "1/s", EnforcedBy: "driver", Limit: 200,
			Measured: &measured, Instance: "batch-0", Step: "load 1", Seconds: 9}}},
	}}
	text := write(t, s, Options{Width: 120})
	for _, want := range []string{
		"gold     load 1  5 s of 12 s  write   1200    101  p99 ×3 [2, 4.5]            –\n",
		"         after             –  no I/O",
		"gold: write p99 at most 20 ms: missed for 5 s of 12 s (2 s of it in intervals with fewer than 100 I/Os,",
		"limit of 200 write IOPS by driver had no effect: 1543 write IOPS measured (batch-0, load 1, mean of 9 s)",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b[2J") || strings.Contains(text, "canaryWrite") {
		t.Errorf("it has a control sequence, or a kind of I/O without a target:\n%q", text)
	}
}
