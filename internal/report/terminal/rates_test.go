package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestThroughputAndSilence: of a workload the metric with most operations is shown, of all instances and of each, and
// the longest times without operations with the op that they began in.
func TestThroughputAndSilence(t *testing.T) {
	effect := func(metric, instance string, mean float64) interference.RateEffect {
		return interference.RateEffect{Control: "snapshots", Action: "db", Metric: metric, Unit: "1/s", Instance: instance,
			Own: interference.RateSide{N: 20, Mean: mean / 2}, Outside: interference.RateSide{N: 50, Mean: mean},
			OwnRatio: &interference.Ratio{Value: 0.5, Low: 0.4, High: 0.62}}
	}
	s := &summary.Summary{RateEffects: []interference.RateEffect{effect("reads", "", 50), effect("reads", "db-0", 50),
		effect("tps", "", 100), effect("tps", "db-0", 120), effect("tps", "db-1", 80)}}
	for i := range 7 {
		s.ZeroPeriods = append(s.ZeroPeriods, interference.Stall{Instance: "db-1", From: op.Time(i) * 1e9, To: op.Never,
			LengthNs: int64(i+1) * 1e9, OwnOps: 1, Ops: []interference.ConcurrentOp{{Action: "snapshots", Instance: i}}})
	}
	var b strings.Builder
	if err := Write(&b, s, Options{}); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	for _, want := range []string{
		"snapshots ▸ db tps  100/s       50/s  0.5 [0.4, 0.62]",
		"db-0              120/s       60/s", "db-1               80/s       40/s",
		"db-1           6.00 s    7 s  snapshots/6", "the longest of 7",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("want %q in\n%s", want, text)
		}
	}
	for _, wrong := range []string{"reads", "0.00 s"} {
		if strings.Contains(text, wrong) {
			t.Errorf("%q in\n%s", wrong, text)
		}
	}
}
