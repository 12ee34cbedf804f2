package terminal

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestTriggers checks that the summary says when and why a rate triggered, and that one never did.
func TestTriggers(t *testing.T) {
	const sec = op.Time(1e9)
	s := &summary.Summary{Rates: []bundle.RateStats{
		{Name: "each5s", Triggers: 7},
		{Name: "growth", Triggers: 12, Condition: &bundle.Condition{When: "iops(w.write) > 5", Evaluations: 90, Unknown: 4,
			Firings: []bundle.Firing{{Since: 3 * sec, At: 3*sec + sec/10, Observed: "iops(w.write) = 7/s (n=1)"}}}},
		{Name: "spike", Condition: &bundle.Condition{When: `max(w.canaryWrite) > duration("1s")`, Evaluations: 80}},
	}}
	var out strings.Builder
	if err := Write(&out, s, Options{}); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"growth at 3.10 s, true since 3.00 s: iops(w.write) = 7/s (n=1)",
		"growth 12 times by iops(w.write) > 5, evaluated 90 times, of which 4 were undecided",
		`spike never by max(w.canaryWrite) > duration("1s"), evaluated 80 times, of which 0 were undecided`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	if strings.Contains(text, "each5s") {
		t.Errorf("a rate with a schedule is a trigger:\n%s", out.String())
	}
}
