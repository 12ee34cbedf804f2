package compare_test

import (
	"math"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// means compares levels a, b, … of which only means are known.
func means(t *testing.T, list ...observation.Aggregate) *compare.Result {
	t.Helper()
	b := observation.NewBuilder([]string{"p"}, "", "")
	for i, a := range list {
		b.AddAggregate([]string{string(rune('a' + i))}, observation.Metric{Name: "rate", Unit: "IOPS"}, a)
	}
	r, err := compare.Run(b.Table(), compare.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestWelch: means with their sd and n have verdicts, p adjusted over the pairs, and say what they assume.
func TestWelch(t *testing.T) {
	t.Parallel()
	// The groups of Student's sleep data, whose difference has p = 0.07939 (R, t.test), raised by 10.
	r := means(t, observation.Aggregate{Mean: 10.75, SD: 1.7890096577591103, N: 10},
		observation.Aggregate{Mean: 12.33, SD: 2.0022487, N: 10}, observation.Aggregate{Mean: 40, SD: 2, N: 12})
	want := []struct {
		p, adjusted float64
		word        verdict.Word
	}{{0.07939, 0.07939, verdict.Inconclusive}, {0, 0, verdict.Better}, {0, 0, verdict.Better}}
	for i, w := range want {
		c := &r.Comparisons[i]
		if c.P == nil || math.Abs(*c.P-w.p) > 1e-5 || math.Abs(*c.PHolm-w.adjusted) > 1e-5 || c.Verdict != w.word {
			t.Fatalf("%+v, want p %v, %s", c, w.p, w.word)
		}
		if c.Family != 3 || c.Method != "Welch" || c.Welch == nil || c.Welch.Text != compare.WelchText || c.Magnitude != "" ||
			c.UnitOfAnalysis != "value" || c.Low == nil || !strings.Contains(c.Sentence, "(Welch, assumes normal values)") {
			t.Errorf("%+v", c)
		}
	}
	c := &r.Comparisons[0]
	if math.Abs(*c.Ratio-12.33/10.75) > 1e-12 || *c.Low > 1 || *c.High < *c.Ratio ||
		math.Abs(c.Welch.Low+0.2054832) > 1e-6 ||
		math.Abs(c.Welch.High-3.3654832) > 1e-6 || c.Needs == nil || c.Needs.N <= 10 {
		t.Errorf("%+v %+v %+v", c, c.Welch, c.Needs)
	}
	if r.Comparisons[1].NA != 10 || r.Comparisons[1].NB != 12 || r.Comparisons[1].N != 10 {
		t.Errorf("n: %+v", r.Comparisons[1])
	}
	if len(r.Models) != 1 || r.Models[0].Text != compare.WelchText {
		t.Errorf("models %+v", r.Models)
	}
}

// TestWelchMixed: trials are compared with a mean, its sd and n by their own, and the answer says so.
func TestWelchMixed(t *testing.T) {
	t.Parallel()
	group := []float64{10.7, 8.4, 9.8, 8.8, 9.9, 13.4, 13.7, 10.8, 10, 12} // the first of TestWelch
	other := observation.Aggregate{Mean: 12.33, SD: 2.0022487, N: 10}
	for _, tt := range []struct {
		name   string
		trials []float64
		mean   observation.Aggregate
		says   string // of an answer without a test
	}{
		{"known", group, other, ""},
		{"one trial", group[:1], other, "of one side only a mean is known, no single trials, and one mean is of fewer than two"},
		{"no sd", group, observation.Aggregate{Mean: 12.33, SD: math.NaN(), N: 10}, "needs the column of sd too"},
		{"no n", group, observation.Aggregate{Mean: 12.33, SD: 2}, "needs the column of n too"},
	} {
		b := observation.NewBuilder([]string{"p"}, "", "")
		m := observation.Metric{Name: "rate", Unit: "IOPS"}
		for i, v := range tt.trials {
			b.Add(observation.Row{Levels: []string{"a"}, Metric: m, Repetition: int32(i + 1), Value: v})
		}
		b.AddAggregate([]string{"b"}, m, tt.mean)
		r, err := compare.Run(b.Table(), compare.Options{})
		if err != nil {
			t.Fatal(err)
		}
		c := &r.Comparisons[0]
		if tt.says != "" {
			if c.Verdict != verdict.None || c.P != nil || !strings.Contains(c.Reason, tt.says) {
				t.Errorf("%s: %s, %q, want none with %q", tt.name, c.Verdict, c.Reason, tt.says)
			}
			continue
		}
		if c.Verdict == verdict.None || c.P == nil || math.Abs(*c.P-0.07939) > 5e-5 || c.NA != 10 || c.NB != 10 ||
			c.Welch.Text != compare.MixedText || len(r.Models) != 1 || r.Models[0].Text != compare.MixedText {
			t.Errorf("%s: %+v %+v %+v", tt.name, c, c.Welch, r.Models)
		}
	}
}

// TestWelchHolm: p is the smaller of two, times the number of pairs.
func TestWelchHolm(t *testing.T) {
	t.Parallel()
	r := means(t, observation.Aggregate{Mean: 100, SD: 10, N: 5}, observation.Aggregate{Mean: 100, SD: 10, N: 5},
		observation.Aggregate{Mean: 120, SD: 10, N: 5})
	a, b, c := &r.Comparisons[0], &r.Comparisons[1], &r.Comparisons[2]
	if *a.P != 1 || *a.PHolm != 1 || math.Abs(*b.PHolm-3**b.P) > 1e-12 || math.Abs(*c.PHolm-3**c.P) > 1e-12 {
		t.Errorf("p %v %v %v, adjusted %v %v %v", *a.P, *b.P, *c.P, *a.PHolm, *b.PHolm, *c.PHolm)
	}
}

// TestNoWelch: without sd or n there is no verdict, and the reason names the column.
func TestNoWelch(t *testing.T) {
	t.Parallel()
	good := observation.Aggregate{Mean: 10, SD: 1, N: 5}
	for _, tt := range []struct {
		name, says string
		a, b       observation.Aggregate
	}{
		{"no sd", "needs the column of sd too (cnsbench import csv --sd COLUMN)",
			observation.Aggregate{Mean: 10, SD: math.NaN(), N: 5}, observation.Aggregate{Mean: 10, SD: math.NaN(), N: 5}},
		{"no n", "needs the column of n too (cnsbench import csv --n COLUMN)", observation.Aggregate{Mean: 10, SD: 1}, good},
		{"neither", "needs the column of sd and of n too (cnsbench import csv --sd COLUMN --n COLUMN)",
			observation.Aggregate{Mean: 10, SD: math.NaN()}, observation.Aggregate{Mean: 10, SD: math.NaN()}},
		{"n of 1", "one mean is of fewer than two values", good, observation.Aggregate{Mean: 10, SD: 0, N: 1}},
		{"no variance", "the standard deviation of both is 0", observation.Aggregate{Mean: 10, N: 3},
			observation.Aggregate{Mean: 11, N: 3}},
		{"not above 0", "b has a mean of -1 IOPS: a ratio needs values above 0", good,
			observation.Aggregate{Mean: -1, SD: 1, N: 5}},
		{"unbounded", "its standard deviation is too great", good, observation.Aggregate{Mean: 1, SD: 10, N: 5}},
	} {
		c := &means(t, tt.a, tt.b).Comparisons[0]
		if c.Verdict != verdict.None || !strings.Contains(c.Reason, tt.says) {
			t.Errorf("%s: %s, %q, want none with %q", tt.name, c.Verdict, c.Reason, tt.says)
		}
	}
}
