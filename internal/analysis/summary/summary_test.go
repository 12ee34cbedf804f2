package summary_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

var cache struct {
	*summary.Summary
	truth analysistest.Truth
}

// demo is the synthetic run, summarised once; tests only read it.
func demo(t *testing.T) (*summary.Summary, analysistest.Truth) {
	t.Helper()
	if cache.Summary == nil {
		b, truth := analysistest.Demo(t)
		s, err := summary.Make(b)
		if err != nil {
			t.Fatal(err)
		}
		cache.Summary, cache.truth = s, truth
	}
	return cache.Summary, cache.truth
}

var update = flag.Bool("update", false, "rewrite the golden files")

func TestGolden(t *testing.T) {
	full, _ := analysistest.Demo(t)
	for name, b := range map[string]*bundle.Bundle{"demo": full, "empty": analysistest.Empty(t),
		"killed": analysistest.Killed(t)} {
		t.Run(name, func(t *testing.T) {
			s, err := summary.Make(b)
			if err != nil {
				t.Fatal(err)
			}
			got, err := json.MarshalIndent(s, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join("testdata", name+".json")
			if *update {
				if err := os.WriteFile(path, append(got, '\n'), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)+"\n"); diff != "" {
				t.Errorf("differs from %s; rewrite it with -update if that is meant:\n%s", path, diff)
			}
			for _, list := range []string{"headline", "verdicts", "actions", "workloads", "interference", "stalls",
				"rates", "traces", "validity", "warnings"} {
				if strings.Contains(string(got), `"`+list+`": null`) {
					t.Errorf("the list %s is null", list)
				}
			}
		})
	}
}

// TestTruth: what was put in comes out.
func TestTruth(t *testing.T) {
	s, truth := demo(t)
	snapshots := find(t, s, "snapshots")
	want := map[op.Outcome]int64{op.OK: 37, op.Error: 1, op.Dropped: 1, op.Censored: 1}
	if diff := cmp.Diff(want, snapshots.Outcomes); diff != "" {
		t.Errorf("outcomes: %s", diff)
	}
	// Of 39 values that have a latency the one censored early (at 100 ms) and
	// the dropped one weigh on the quantiles; the median is among the known.
	slices.Sort(truth.Responses)
	median := truth.Responses[hist.Rank(0.5, 37)-1]
	if got := *snapshots.Response.P50.Ns; got < median || got > truth.Responses[20] {
		t.Errorf("median %d, without the dropped op it is %d", got, median)
	}
	if got := snapshots.Response; *got.MaxNs != truth.Responses[36] || got.Censored != 1 || got.Infinite != 1 ||
		got.P99.NeedsN != 299 {
		t.Errorf("response: %+v", got)
	}
	if o := *snapshots.OfferedPerSecond; o < 0.66 || o > 0.67 {
		t.Errorf("offered %g/s, it was due each 1.5 s", o)
	}
	spans := map[string]int64{}
	for _, sp := range find(t, s, "fio").Spans {
		spans[sp.Name] = *sp.Latency.MinNs / 1e6
	}
	wantSpans := map[string]int64{"CreateVolume": 210, "ControllerPublishVolume": 8, "NodeStageVolume": 55,
		"NodePublishVolume": 4,
		"firstWrite":        3, "initialized": 900, "running": 12, "ready": 1}
	if diff := cmp.Diff(wantSpans, spans); diff != "" {
		t.Errorf("spans in ms: %s", diff)
	}
}

// TestStalls: every freeze is found within 20 ms of its length, with its op
// first, and nothing else is.
func TestStalls(t *testing.T) {
	s, truth := demo(t)
	for _, f := range truth.Freezes {
		i := slices.IndexFunc(s.Stalls, func(st interference.Stall) bool {
			return st.Volume == f.Volume && st.From < f.To && st.To > f.From
		})
		if i < 0 {
			t.Errorf("freeze of snapshots/%d on %s, %d ms, was not found", f.Instance, f.Volume, (f.To-f.From)/1e6)
			continue
		}
		st := s.Stalls[i]
		if d := st.LengthNs - int64(f.To-f.From); d > 20e6 || d < -20e6 || d > 1e6 || d < -st.ErrorNs-1e6 {
			t.Errorf("snapshots/%d: stall of %d ns for a freeze of %d", f.Instance, st.LengthNs, f.To-f.From)
		}
		if len(st.Ops) == 0 || st.Ops[0].Instance != f.Instance || !st.Ops[0].Own {
			t.Errorf("snapshots/%d is not the first op of its stall: %+v", f.Instance, st.Ops)
		}
	}
	if len(s.Stalls) != len(truth.Freezes) {
		t.Errorf("%d stalls, %d freezes", len(s.Stalls), len(truth.Freezes))
	}
}

func TestInterference(t *testing.T) {
	s, _ := demo(t)
	for _, e := range s.Interference {
		if e.Control != "snapshots" || e.OwnRatio == nil {
			continue
		}
		own, other := e.OwnRatio.Value, 1.0
		if e.BystanderRatio != nil {
			other = e.BystanderRatio.Value
		}
		switch e.Metric {
		case "canaryWrite": // frozen on its own volume, untouched elsewhere
			if own < 20 || other < 0.5 || other > 2 {
				t.Errorf("%s: own ×%.2f, bystander ×%.2f", e.Metric, own, other)
			}
		case "canaryRead":
			if own > 2 || other > 2 {
				t.Errorf("%s: own ×%.2f, bystander ×%.2f", e.Metric, own, other)
			}
		}
	}
}

func TestVerdicts(t *testing.T) {
	s, _ := demo(t)
	for i, want := range analysistest.SLOs {
		if got := s.Verdicts[i]; string(got.Status) != want.Want || len(got.Observed) == 0 {
			t.Errorf("%s: %s (%s), want %s; observed %v", want.Name, got.Status, got.Message, want.Want, got.Observed)
		}
	}
}

// TestSummaryReadsBack: the JSON is complete.
func TestSummaryReadsBack(t *testing.T) {
	s, _ := demo(t)
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var back summary.Summary
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(s, &back); diff != "" {
		t.Error(diff)
	}
}

func find(t *testing.T, s *summary.Summary, name string) summary.Action {
	t.Helper()
	for _, a := range s.Actions {
		if a.Name == name {
			return a
		}
	}
	t.Fatalf("no action %s", name)
	return summary.Action{}
}
