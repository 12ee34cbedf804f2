package terminal

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// TestReplayed: replayed files are named in full, without control characters.
func TestReplayed(t *testing.T) {
	s := &summary.Summary{Traces: []bundle.Trace{{Rate: "churn", File: "a\x1b.csv",
		SHA256: strings.Repeat("0123abcd", 8), Records: 4711}}}
	var out strings.Builder
	if err := Write(&out, s, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"rate churn replays a?.csv: 4711 records, SHA-256", strings.Repeat("0123abcd", 8)} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
}

// TestSpansOfOneEnd: spans of one name with different begins have different labels.
func TestSpansOfOneEnd(t *testing.T) {
	s := &summary.Summary{Actions: []summary.Action{{Name: "pods", Spans: []summary.Span{
		{Name: "acked", From: "started", To: "acked"}, {Name: "scheduled", From: "acked",
			To: "scheduled"}, {Name: "scheduled", From: "started", To: "scheduled"}}}}}
	var out strings.Builder
	if err := Write(&out, s, Options{}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"acked ", "scheduled after acked", "scheduled after started"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in\n%s", want, &out)
		}
	}
	if strings.Contains(out.String(), "acked after started") {
		t.Errorf("an unambiguous span has a begin in\n%s", &out)
	}
}

// TestDistributions: those with the most time come first, with the number of all.
func TestDistributions(t *testing.T) {
	var s summary.Summary
	for i := range int64(maxDistributions + 3) {
		s.Distributions = append(s.Distributions, summary.Distribution{Source: "kubelet node1",
			Name: fmt.Sprintf("call %d", i), N: 2,
			MeanNs: new(i * 1e6), P50: summary.Within{UpToNs: new(int64(100e6))}, P99: summary.Within{AboveNs: 100e6}})
	}
	var out strings.Builder
	if err := Write(&out, &s, Options{}); err != nil {
		t.Fatal(err)
	}
	text := out.String()
	for _, want := range []string{"Counted by other components", "call 14", "kubelet node1", "14 ms", "≤ 100 ms",
		"> 100 ms", "of 15; the report has all", "not included in the figures of any op"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	if strings.Contains(text, "call 2 ") {
		t.Errorf("the least of them is shown in\n%s", text)
	}
}
