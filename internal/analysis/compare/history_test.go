package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// TestHistories: a shift of one of eight metrics is found with a p-value for the family, and --limit flags the runs
// above it, as in a comparison.
func TestHistories(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 9))
	b := observation.NewBuilder([]string{"run"}, "", "")
	for i := range 40 {
		for m := range 8 {
			x := 100 * math.Exp(0.02*random.NormFloat64())
			if m == 2 && i >= 25 {
				x *= 1.2
			}
			if m == 5 && i == 12 {
				x *= 2
			}
			b.Add(observation.Row{Levels: []string{fmt.Sprintf("%02d", i)}, Value: x,
				Metric: observation.Metric{Name: fmt.Sprint("m", m), Unit: "IOPS"}})
		}
	}
	limit := compare.Limit{Metric: "m2", Max: 108}
	r, err := compare.Histories(b.Table(), compare.Options{Limits: []compare.Limit{limit}})
	if err != nil {
		t.Fatal(err)
	}
	for i, h := range r.History {
		if want := i == 2; (len(h.Changes) == 1) != want || h.Parameters.Family != 8 {
			t.Errorf("%s: %+v", h.Metric, h)
		}
	}
	for i, h := range r.History {
		if want := i == 5; slices.Contains(h.Outliers, "12") != want || len(h.Outliers) > 1 {
			t.Errorf("%s: outliers %v, want 12 of m5, which is no change", h.Metric, h.Outliers)
		}
	}
	if c := r.History[2].Changes[0]; c.Run != "25" || *c.P < 8*1.5/2000 || *c.P > 0.03 {
		t.Errorf("%+v: p is that of the family, with at least 3·8/(0.03·⅔) permutations", c)
	}
	flagged := 0
	for _, f := range r.Flags {
		if f.Name == "aboveLimit" && f.Metric == "m2" && f.Level >= "25" {
			flagged++
		}
	}
	if flagged < 10 || flagged != len(r.Flags) || len(r.Cells) != 0 ||
		!strings.Contains(strings.Join(r.Sentences, "\n"), "times the limit of 108") {
		t.Errorf("%d of %d flags are of runs above the limit: %q", flagged, len(r.Flags), r.Sentences)
	}
	limit.Metric = "other"
	if _, err := compare.Histories(b.Table(), compare.Options{Limits: []compare.Limit{limit}}); err == nil {
		t.Error("a limit of an unknown metric is ignored")
	}
}

// TestHistoryWithoutValues: runs without a value are not among those that have no change.
func TestHistoryWithoutValues(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"run"}, "", "")
	for i := range 14 {
		row := observation.Row{Levels: []string{fmt.Sprintf("%02d", i)}, Value: 100 + float64(i%3),
			Metric: observation.Metric{Name: "m", Unit: "IOPS"}}
		if i%7 == 0 {
			row.State = observation.Missing
		}
		b.Add(row)
	}
	r, err := compare.Histories(b.Table(), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := r.History[0].Sentence, "m: no change over 12 runs (2 more have no value)."; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestBlockScopes: where blocks hold several repetitions, answers are for this occasion and for these blocks.
func TestBlockScopes(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"provider"}, "", "block")
	for block := range 6 {
		for i, level := range []string{"a", "b"} {
			for j := range 3 {
				b.Add(observation.Row{Levels: []string{level}, Block: fmt.Sprint(block), Value: float64(100 + 50*i + j + block),
					Metric: observation.Metric{Name: "m", Unit: "IOPS"}})
			}
		}
	}
	r := run(t, b.Table(), compare.Options{})
	c := r.Comparisons[0]
	if c.Scope != "for this occasion" || c.UnitOfAnalysis != "block" || c.Within.Scope != "for these 6 blocks" ||
		strings.Contains(c.Sentence, "occasions") || !strings.Contains(r.Models[0].Text, "other blocks of this occasion") {
		t.Errorf("%q, %+v", c.Sentence, r.Models)
	}
	for scopes, want := range map[string]string{"for these 6 blocks|for these 5 blocks": "for these blocks",
		"for these 6 occasions|for this occasion": "for these occasions", "in general|in general": "in general",
		"for this block|for these 2 blocks": "for these blocks"} {
		if got := compare.CommonScope(strings.Split(scopes, "|")); got != want {
			t.Errorf("%s: %q, want %q", scopes, got, want)
		}
	}
}
