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
	if len(r.Flags) != 2 || r.Flags[0].Severity != "invalid" || r.Flags[0].Trials != 2 ||
		r.Flags[1].Severity != "warning" {
		t.Errorf("%+v", r.Flags)
	}
	for _, want := range []string{
		"Invalid: failedOps of bad in 2 of 10 trials (latency); the first: create: of 10 ops 5 failed.",
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

// TestNoPairs: levels that were measured at different times have no pairs. By design they are compared without; where
// pairs are asked for, the reason says what to do.
func TestNoPairs(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"cluster"}, "occasion", "block")
	b.Numbered = true
	for block := range 8 {
		for i, level := range []string{"east", "west"} {
			b.Add(observation.Row{Levels: []string{level}, Occasion: level, Block: fmt.Sprint(block), Repetition: 1,
				Metric: observation.Metric{Name: "latency", Unit: "ms"}, Value: float64(100 + 100*i + block)})
		}
	}
	table := b.Table()
	r := run(t, table, compare.Options{Paired: true, ByDesign: true})
	if c := r.Comparisons[0]; c.Verdict != verdict.Worse || c.Paired || c.N != 8 || c.Scope != "for this occasion" {
		t.Errorf("%s", c.Sentence)
	}
	if len(r.Notes) != 1 ||
		!strings.Contains(r.Notes[0], "no two levels of cluster have values of the same occasion and block") ||
		!strings.Contains(r.Models[0].Text, "each level has one of its own, and a difference may be that of the occasion") {
		t.Errorf("%q %+v", r.Notes, r.Models)
	}
	if c := run(t, table, compare.Options{Paired: true}).Comparisons[0]; c.Verdict != verdict.None ||
		!strings.Contains(c.Reason, "--paired=false compares without pairs") {
		t.Errorf("%s", c.Sentence)
	}
}

// TestHistoryOfWorkloads: a change between different workloads has no verdict.
func TestHistoryOfWorkloads(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"run"}, "", "")
	for i := range 14 {
		b.Add(observation.Row{Levels: []string{fmt.Sprintf("run-%02d", i)}, Value: float64(100 + i%3 + i/7*50),
			Metric: observation.Metric{Name: "latency", Unit: "ms"}})
	}
	table := b.Table()
	for reason, want := range map[string]verdict.Word{"": verdict.Worse, "the workloads differ": verdict.None} {
		r, err := compare.Histories(table, compare.Options{Weak: map[string]string{"": reason}})
		if err != nil || len(r.History[0].Changes) != 1 {
			t.Fatal(r, err)
		}
		h := r.History[0]
		if h.Changes[0].Word != want || strings.Contains(h.Sentence, "The workloads differ.") != (reason != "") {
			t.Errorf("%q: %s, %s", reason, h.Changes[0].Word, h.Sentence)
		}
	}
}
