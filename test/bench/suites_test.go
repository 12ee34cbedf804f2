package main

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
)

// TestRatioOf: the ratio is that of the level to the other, in whichever order they were compared.
func TestRatioOf(t *testing.T) {
	ratio, low, high := 1.25, 1.0, 2.0
	c := compare.Comparison{Metric: "value(ycsb.tps)", A: "snapshots", B: "none",
		Context: []compare.Level{{Factor: "storageClass", Level: "btrfs"}},
		Answer:  compare.Answer{Ratio: &ratio, Low: &low, High: &high, N: 8, Verdict: "worse"}}
	for _, tt := range []struct{ level, against, want string }{
		{"snapshots", "none", "-20.00 % [-50.00 %, +0.00 %] against none"},
		{"none", "snapshots", "+25.00 % [+0.00 %, +100.00 %] against snapshots"},
	} {
		var made table
		made.ratioOf(&compare.Result{Comparisons: []compare.Comparison{c}}, c.Metric, "btrfs", tt.level, tt.against, "x")
		if len(made.figures) != 1 || !strings.HasPrefix(made.figures[0].value, tt.want) || made.figures[0].n != 8 {
			t.Errorf("%+v, want %q", made, tt.want)
		}
	}
	var made table
	made.ratioOf(&compare.Result{Comparisons: []compare.Comparison{c}}, c.Metric, "hostdir", "snapshots", "none", "x")
	if len(made.figures) != 0 || len(made.notes) != 1 {
		t.Errorf("of another driver: %+v", made)
	}
}

// TestSnapshotRuns: half the throughput in a quarter of the time is an eighth less.
func TestSnapshotRuns(t *testing.T) {
	mean, freeze := 30e6, 20e6
	s := &summary.Summary{
		RateEffects: []interference.RateEffect{{Metric: "tps", Own: interference.RateSide{N: 10, Mean: 50},
			Outside: interference.RateSide{N: 30, Mean: 100}}},
		ZeroPeriods: []interference.Stall{{LengthNs: 2e9, OwnOps: 1}, {LengthNs: 1e9}},
		Actions: []summary.Action{{Name: "snapshots", Response: summary.Latency{MeanNs: &mean},
			Spans: []summary.Span{{Name: "freeze", Latency: summary.Latency{MeanNs: &freeze}}}}},
	}
	var r snapshotRuns
	r.add("snapshots", s)
	r.add("none", &summary.Summary{ZeroPeriods: s.ZeroPeriods[:1]})
	var made table
	r.addTo(&made, "btrfs")
	var text strings.Builder
	for _, f := range made.figures {
		text.WriteString(f.what + ": " + f.value + "\n")
	}
	for _, want := range []string{"-50.00 % against the rest of the run, in 25 % of the slices: by that alone -12.50 %",
		"30ms; most of it", "frozen for 20ms",
		"2, of which 1 begin during a snapshot of the volume, the longest ≥ 2s; 1 without"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("want %q in\n%s", want, text.String())
		}
	}
}
