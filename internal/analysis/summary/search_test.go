package summary_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

func summed(t *testing.T, b *bundle.Bundle) *summary.Summary {
	t.Helper()
	s, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFindMax: the result is there, and its steps are told of once.
func TestFindMax(t *testing.T) {
	s := summed(t, analysistest.Found(t))
	m := s.FindMax
	if m == nil || *m.PerSecond != 200 || *m.AbovePerSecond != 400 || len(m.Steps) != 2 {
		t.Fatalf("the search is %+v", m)
	}
	// The parts of an operation are none; what was never done is infinite.
	if l := m.Steps[1].Latency; l.N != 429 || l.Infinite != 30 || !l.P99.Infinite || *l.P50.Ns != 5e6 {
		t.Errorf("the latency of the second step is %+v", l)
	}
	want := "main: p99(read) < 20ms holds up to 200 operations a second (held in 1 of 1 window), not at 400 (failed in 1 of 1 window); " +
		"operations waited for a free worker; without that wait the condition would have held (worker-bound)."
	if got := s.Headline[0]; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, w := range s.Workloads {
		if w.Step != (w.Action == "main.find01.one" || w.Action == "main.find02.one") {
			t.Errorf("%s: a step is %t", w.Action, w.Step)
		}
	}
	if text := strings.Join(s.Headline, "\n"); strings.Contains(text, "main.find01") ||
		!strings.Contains(text, "main.find03.one, 1 instance") {
		t.Errorf("steps are headlines, or what is none is not:\n%s", text)
	}
}

// TestFindMaxLine: every verdict has its sentence.
func TestFindMaxLine(t *testing.T) {
	low, high := 1234.5, 99.5
	for _, tt := range []struct {
		m    summary.FindMax
		want string
	}{
		{summary.FindMax{Verdict: "never", AbovePerSecond: &high, Bound: "server-bound"},
			"s: c never holds: not even at 99.5 operations a second, the lowest rate of the search; the limit is the server's (server-bound)."},
		{summary.FindMax{Verdict: "always", PerSecond: &low, Steps: []summary.FindStep{{PerSecond: low, Held: true}}},
			"s: c holds at all rates of the search, up to 1234 operations a second (held in 1 of 1 window): no limit was found."},
		{summary.FindMax{Verdict: "undecided", Message: "few", PerSecond: &high},
			"s: c: the search of the highest rate has no result (undecided): few; it held at 99.5 operations a second."},
		{summary.FindMax{Verdict: "found"}, "s: c: the search of the highest rate has no result (found)."}, // damaged
	} {
		tt.m.Stage, tt.m.Condition = "s", "c"
		if got := tt.m.Line(); got != tt.want {
			t.Errorf("got  %s\nwant %s", got, tt.want)
		}
	}
}

func TestScaling(t *testing.T) {
	s := summed(t, analysistest.Scaled(t))
	if s.Scaling == nil || len(s.Scaling.Rows) != 3 {
		t.Fatalf("the scaling is %+v", s.Scaling)
	}
	first, last := s.Scaling.Rows[0], s.Scaling.Rows[2]
	if first.GainPerDoubling != nil || last.GainPerDoubling == nil || *last.GainPerDoubling != 0.03 ||
		last.MedianPerSecond != 205.5 || last.Failed != 3 || last.Latency.N != 400 {
		t.Errorf("rows %+v and %+v", first, last)
	}
	if line := s.Headline[0]; !strings.HasPrefix(line,
		"main: the knee is at 2 workers: from there on no step gains 10 %") ||
		!strings.HasSuffix(line, "1 of 6 steps were client-bound: limited by this client, not by the server.") {
		t.Errorf("it says %s", line)
	}
	for _, w := range s.Workloads {
		if w.Step != strings.HasPrefix(w.Action, "main.w") {
			t.Errorf("%s: a step is %t", w.Action, w.Step)
		}
	}
	text, err := json.Marshal(s)
	if err != nil || strings.Contains(string(text), `"response":{"n"`) {
		t.Errorf("the histogram's bins are in the summary, or %v", err)
	}
}

// TestDamagedFindings: a file of findings that cannot be is an error that names it.
func TestDamagedFindings(t *testing.T) {
	for name, text := range map[string]string{"find-max": `{"steps":7}`,
		"scale-workers": `{"knee":{"levels":[]},"rows":[]}`} {
		b := analysistest.Objects(t)
		dir := filepath.Join(b.Dir, "raw", "cnsbench", name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".json"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := summary.Make(b); err == nil || !strings.Contains(err.Error(), name+".json") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
