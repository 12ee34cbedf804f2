package summary

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

func quantile(ns int64) Quantile { return Quantile{Ns: &ns} }

func TestActionLine(t *testing.T) {
	few := Quantile{NeedsN: 6}
	tests := []struct {
		name           string
		late, response Quantile
		want           string
	}{
		{"punctual", quantile(1e6), quantile(10e6), "a: 40 snapshot ops, p50 10 ms, none failed."},
		{"late", quantile(4e6), quantile(10e6),
			"a: 40 snapshot ops, p50 10 ms, of which p50 4 ms is the lateness of their start, none failed."},
		{"few", few, few, "a: 40 snapshot ops, none failed."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := Action{Name: "a", Kind: op.Snapshot, N: 40, Lateness: Latency{P50: tt.late},
				Response: Latency{P50: tt.response, P90: Quantile{NeedsN: 29}, P99: Quantile{NeedsN: 299}}}
			if got := actionLine(&a); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestHeadlineOfTheEnd(t *testing.T) {
	pass := slo.Verdict{Name: "quick", Verdict: expr.Verdict{Status: expr.Pass}}
	fail := slo.Verdict{Name: "quiet", Verdict: expr.Verdict{Status: expr.Fail}}
	tests := []struct {
		name string
		s    Summary
		want string
	}{
		{"one met", Summary{State: bundle.Complete, Complete: true, Verdicts: []slo.Verdict{pass}},
			"The objective was met."},
		{"two met", Summary{State: bundle.Complete, Complete: true, Verdicts: []slo.Verdict{pass, pass}},
			"All 2 objectives met."},
		{"one missed", Summary{State: bundle.Complete, Complete: true, Verdicts: []slo.Verdict{pass, fail}},
			"1 of 2 objectives met; not met: quiet (missed)."},
		{"killed", Summary{State: bundle.Running, Verdicts: []slo.Verdict{pass, pass}},
			"The bundle was never closed: the figures cover what was written. So far: 2 of 2 objectives met."},
		{"live", Summary{State: bundle.Running, Live: true, Verdicts: []slo.Verdict{pass, fail}},
			"The run is in progress: the figures cover what it has written so far. So far: 1 of 2 objectives met; not met: quiet (missed)."},
		{"interrupted", Summary{State: bundle.Interrupted, Complete: true, Reason: "interrupted by the user"},
			"The run is not complete: interrupted by the user."},
		{"failed", Summary{State: bundle.Failed, Complete: true, Reason: "set-up of w:\n  fio: bad\n\tno space left\n"},
			"The run is not complete (failed): set-up of w: fio: bad no space left."},
		{"failed silently", Summary{State: bundle.Failed, Complete: true}, "The run is not complete (failed)."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := strings.Join(headline(&tt.s), " "); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

func TestOneLine(t *testing.T) {
	got := OneLine("set-up of w: " + strings.Repeat("ü and\n", 100) + "error: no space left")
	if n := utf8.RuneCountInString(got); n > 205 || strings.ContainsAny(got, "\n\t") ||
		!strings.HasPrefix(got, "set-up of w: ü") || !strings.HasSuffix(got, "no space left") {
		t.Errorf("%d characters: %s", n, got)
	}
}

// TestMax: it is never below a quantile that is shown.
func TestMax(t *testing.T) {
	tests := []struct {
		name            string
		known, bounds   []int64
		never           int64
		wantMax, inWord string
	}{
		{"known", []int64{1e6, 2e6, 3e6}, nil, 0, "3 ms", "median 2 ms (1 ms … 3 ms)"},
		{"timed out", []int64{1e6, 2e6, 3e6, 4e6, 5e6, 6e6}, []int64{1e9, 1e9}, 0, "≥ 1 s",
			"median 4 ms (95 % interval 1 ms … ∞), 1 ms … ≥ 1 s"},
		{"few, one timed out", []int64{1e6}, []int64{1e9}, 0, "≥ 1 s", "median 1 ms (1 ms … ≥ 1 s)"},
		{"cut off early", []int64{1e6, 3e6}, []int64{2e6}, 0, "3 ms", "median 3 ms (1 ms … 3 ms)"},
		{"all timed out", nil, []int64{1e9, 1e9, 1e9, 1e9, 1e9, 1e9}, 0, "≥ 1 s",
			"p50 ≥ 1 s (95 % interval 1 s … ∞), max ≥ 1 s"},
		{"most never started", []int64{1e6, 2e6}, nil, 8, "∞", "median ∞ (95 % interval 2 ms … ∞), 1 ms … ∞"},
		{"nothing", nil, nil, 0, "–", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var s stats.Sample
			for _, v := range tt.known {
				s.Add(v)
			}
			for _, v := range tt.bounds {
				s.AddAtLeast(v)
			}
			s.AddInfinite(tt.never)
			l := latencyOf(&s)
			if got := l.Max(); got != tt.wantMax {
				t.Errorf("max is %s, want %s", got, tt.wantMax)
			}
			if got := spread(l); got != tt.inWord {
				t.Errorf("it says %q, want %q", got, tt.inWord)
			}
		})
	}
}
