package compare_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// flagged has ten trials of each of three levels: good, twice as slow; bad and doubtful, the first trials of which have
// flags.
func flagged(invalid, weak int) *observation.Table {
	b := observation.NewBuilder([]string{"provider"}, "", "")
	m := observation.Metric{Name: "latency", Unit: "ms"}
	for i := range 10 {
		b.Add(observation.Row{Levels: []string{"good"}, Metric: m, Value: float64(200 + i)})
		state := observation.Known
		if i < invalid {
			state = observation.Invalid
			b.Flag([]string{"bad"}, m, observation.Flag{Name: "failedOps", Severity: "invalid",
				Evidence: fmt.Sprintf("create: of 10 ops %d failed", 5+i)})
		}
		b.Add(observation.Row{Levels: []string{"bad"}, Metric: m, Value: float64(100 + i), State: state})
		if i < weak {
			b.Flag([]string{"doubtful"}, m, observation.Flag{Name: "hostBusy", Severity: "warning", Evidence: "busy"})
		}
		b.Add(observation.Row{Levels: []string{"doubtful"}, Metric: m, Value: float64(100 + i)})
	}
	return b.Table()
}

// TestTrialFlags: a level whose trials are invalid has no verdict and no rank, with the reason; a weak one keeps its
// verdict, with the flag beside it.
func TestTrialFlags(t *testing.T) {
	t.Parallel()
	r := run(t, flagged(2, 3), compare.Options{Against: "good"})
	bad, doubtful := r.Comparisons[0], r.Comparisons[1]
	if bad.Verdict != verdict.None || !strings.Contains(bad.Reason,
		"2 of 10 trials of bad are invalid (failedOps: create: of 10 ops 5 failed)") {
		t.Errorf("%s", bad.Sentence)
	}
	if doubtful.Verdict != verdict.Better || len(doubtful.Doubts) != 1 ||
		!strings.Contains(doubtful.Sentence, "Doubtful: hostBusy (3 of 10 trials of doubtful).") {
		t.Errorf("%s %q", doubtful.Sentence, doubtful.Doubts)
	}
	if c := r.Cells[1]; c.Level != "bad" || c.N != 8 || c.Invalid != 2 || c.Missing != 0 {
		t.Errorf("%+v", c)
	}
	if len(r.Flags) != 2 || r.Flags[0].Severity != "invalid" || r.Flags[0].Trials != 2 || r.Flags[1].Severity != "warning" {
		t.Errorf("%+v", r.Flags)
	}
	for _, want := range []string{"Invalid: failedOps of bad in 2 of 10 trials (latency); the first: create: of 10 ops 5 failed.",
		"Warning: hostBusy of doubtful in 3 of 10 trials (latency); the first: busy."} {
		if !slices.Contains(r.Sentences, want) {
			t.Errorf("no %q in %q", want, r.Sentences)
		}
	}
	all := run(t, flagged(10, 0), compare.Options{})
	if k := all.Rankings[0]; !slices.Equal(k.LeftOut, []string{"bad"}) {
		t.Errorf("ranking %+v", k)
	}
}

// TestFewInvalidTrials: up to a tenth of the trials can be invalid; their values are left out.
func TestFewInvalidTrials(t *testing.T) {
	t.Parallel()
	r := run(t, flagged(1, 0), compare.Options{Against: "good"})
	if c := r.Comparisons[0]; c.Verdict != verdict.Better || c.NB != 9 {
		t.Errorf("%s", c.Sentence)
	}
	if f := r.Flags[0]; f.Severity != "warning" || !strings.HasSuffix(f.Evidence, "their values are left out") {
		t.Errorf("%+v", f)
	}
}
