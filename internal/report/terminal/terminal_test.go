package terminal

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/slo"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestWrite(t *testing.T) {
	demo, _ := analysistest.Demo(t)
	for name, b := range map[string]*bundle.Bundle{
		"demo": demo, "empty": analysistest.Empty(t), "killed": analysistest.Killed(t), "hostile": analysistest.Hostile(t),
	} {
		t.Run(name, func(t *testing.T) {
			s, err := summary.Make(b)
			if err != nil {
				t.Fatal(err)
			}
			s.Name += "\x1b]0;evil\a"
			plain := write(t, s, Options{Width: 80})
			if strings.ContainsAny(plain, "\x1b\a") {
				t.Error("escape sequences in plain text")
			}
			fits(t, plain, 80)
			fits(t, write(t, s, Options{}), 96)
			painted := write(t, s, Options{Width: 80, Color: true})
			if got := regexp.MustCompile("\x1b\\[[0-9]*m").ReplaceAllString(painted, ""); got != plain {
				t.Errorf("colours change the text:\n%s", cmp.Diff(plain, got))
			}
			golden(t, filepath.Join("testdata", name+".txt"), plain)
		})
	}
}

func write(t *testing.T, s *summary.Summary, o Options) string {
	t.Helper()
	var b strings.Builder
	if err := Write(&b, s, o); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func fits(t *testing.T, text string, width int) {
	t.Helper()
	for i, l := range strings.Split(text, "\n") {
		if n := utf8.RuneCountInString(l); n > width && i > 0 { // the first names the run in full
			t.Errorf("%d columns: %s", n, l)
		}
	}
}

func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s; rewrite it with -update if that is meant:\n%s", path, diff)
	}
}

// TestLabels: a figure that is not of its row's quantile says so, and a verdict
// says what weakens it, once.
func TestLabels(t *testing.T) {
	v := func(ns int64) *int64 { return &ns }
	s := &summary.Summary{
		Verdicts: []slo.Verdict{
			{Name: "a", Verdict: expr.Verdict{Status: expr.Pass, Observed: []expr.Observation{
				{Expr: "p99(x)", Value: "5 ms", N: 296, Warning: "an interval of p99 needs n ≥ 299"}}}},
			{Name: "b", Verdict: expr.Verdict{Status: expr.NoData,
				Message:  "p99(f.read): no data: f reported no read latency",
				Observed: []expr.Observation{{Expr: "p99(f.read)", Value: "no data"}}}},
		},
		Interference: []interference.Effect{{
			Control: "s", Action: "f", Metric: "write",
			Outside:   interference.Side{P90Ns: v(1e6), P99Ns: v(2e6)},
			Own:       interference.Side{P90Ns: v(3e6), P99Ns: v(8e6)},
			Bystander: interference.Side{P90Ns: v(5e6)},
			OwnRatio:  &interference.Ratio{Quantile: 0.99, Value: 4}, BystanderRatio: &interference.Ratio{Quantile: 0.9,
				Value: 5},
		}},
	}
	text := write(t, s, Options{})
	for _, want := range []string{
		"p99(x) = 5 ms (n=296; an interval of p99 needs n ≥ 299)\n",
		"b  p99(f.read): no data: f reported no read latency\n",
		"p99   2 ms       8 ms  4  p90 5 ms  p90 5\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

// TestStallsNote: it names a place where all stalls are: the report lists 40.
func TestStallsNote(t *testing.T) {
	for n, want := range map[int]string{
		40: "the longest of 40; the report has all\n",
		41: "the longest of 41; the report has 40, --output json all\n",
	} {
		text := write(t, &summary.Summary{Stalls: make([]interference.Stall, n)}, Options{})
		if !strings.Contains(text, want) {
			t.Errorf("it does not say %q:\n%s", want, text)
		}
	}
}

func TestClean(t *testing.T) {
	if got := clean("a\nb\tc\x1b[1m é"); got != "a b c?[1m é" {
		t.Errorf("got %q", got)
	}
}

// TestFor: a file that is no terminal gets no colour.
func TestFor(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if o := OptionsFor(f); o.Color {
		t.Error("colour into a file")
	}
}

// TestSyncs: the calls for durability stand beside the tool's count, or the reason why there are none.
func TestSyncs(t *testing.T) {
	tool := int64(1840)
	for want, s := range map[string]*dataset.Syncs{
		"fio: calls at the process (n=2): fsync 1841, fdatasync 3, sync_file_range 0, msync 2; the tool counted 1840 syncs": {
			Syncs: op.Syncs{Fsync: 1841, Fdatasync: 3, Msync: 2}, Containers: 2, Tool: &tool},
		"fio: calls of fsync not observed at the process: operation not permitted; the tool counted 1840 syncs": {
			Syncs: op.Syncs{NotObserved: "operation not permitted"}, Containers: 1, Tool: &tool},
	} {
		text := write(t, &summary.Summary{Workloads: []summary.Workload{{Action: "fio", Syncs: s}}}, Options{})
		if words := strings.Join(strings.Fields(text), " "); !strings.Contains(words, want) {
			t.Errorf("want %q:\n%s", want, text)
		}
	}
	text := write(t, &summary.Summary{Workloads: []summary.Workload{{Action: "fio"}}}, Options{})
	if strings.Contains(text, "fsync") {
		t.Errorf("calls that were not counted:\n%s", text)
	}
}
