package study

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/plan"
)

const file = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: x}
spec:
  repetitions: 2
  seed: 7
  variants:
    - {name: plain}
    - {name: deep, set: {fio.iodepth: 32}}
  factors:
    vars.storageClass: [slow]
    fio.bs: [4k, 64k]
  scales:
    small: {repetitions: 1, set: {fio.runtime: 1}, factors: {fio.bs: [4k]}}
  benchmark:
    actions:
      - {name: fio, createObjSpec: {workload: fio, vars: {storageClass: slow}}}
`

func loaded(t *testing.T, text string) *plan.Study {
	t.Helper()
	s, problems := plan.LoadStudy([]plan.File{{Name: "x.yaml", Data: []byte(text)}})
	if s == nil || len(problems) > 0 {
		t.Fatal(problems)
	}
	return s
}

func TestDesign(t *testing.T) {
	d, err := New(loaded(t, file), Options{Set: []string{"vars.image=x"}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, trial := range d.Trials {
		got = append(got, trial.Name+": "+strings.Join(trial.Set[:len(trial.Set)-1], " "))
	}
	want := []string{ // the order is that of seed 7: it must not change with the program
		"1_variant=plain_storageClass=slow_bs=4k_r1: vars.storageClass=slow fio.bs=4k",
		"2_variant=deep_storageClass=slow_bs=64k_r1: fio.iodepth=32 vars.storageClass=slow fio.bs=64k",
		"3_variant=deep_storageClass=slow_bs=4k_r1: fio.iodepth=32 vars.storageClass=slow fio.bs=4k",
		"4_variant=plain_storageClass=slow_bs=64k_r1: vars.storageClass=slow fio.bs=64k",
		"5_variant=deep_storageClass=slow_bs=64k_r2: fio.iodepth=32 vars.storageClass=slow fio.bs=64k",
		"6_variant=plain_storageClass=slow_bs=64k_r2: vars.storageClass=slow fio.bs=64k",
		"7_variant=deep_storageClass=slow_bs=4k_r2: fio.iodepth=32 vars.storageClass=slow fio.bs=4k",
		"8_variant=plain_storageClass=slow_bs=4k_r2: vars.storageClass=slow fio.bs=4k",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(&Order{Kind: "random", Seed: 7}, d.Order); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"variant", "storageClass", "bs"}, d.Factors); diff != "" {
		t.Error(diff)
	}
	seed := func(i int) string { return d.Trials[i].Set[len(d.Trials[i].Set)-1] }
	if seed(0) != seed(3) || seed(0) == seed(4) || !strings.HasPrefix(seed(0), "spec.seed=") {
		t.Errorf("seeds %s, %s, %s: the cells of a repetition share one", seed(0), seed(3), seed(4))
	}
}

func TestEditions(t *testing.T) {
	s := loaded(t, file)
	small, err := New(s, Options{Scale: "small"})
	if err != nil {
		t.Fatal(err)
	}
	if len(small.Trials) != 2 || strings.Join(small.Base, " ") != "fio.runtime=1" {
		t.Errorf("%d trials, base %v", len(small.Trials), small.Base)
	}
	own, err := New(s, Options{Repetitions: 3, Factors: map[string][]v1alpha1.Var{"fio.bs": {"1m"},
		"fio.rw": {"read", "write"}}})
	if err != nil {
		t.Fatal(err)
	}
	if len(own.Cells) != 4 || len(own.Trials) != 12 ||
		own.Cells[0].Name() != "variant=plain storageClass=slow bs=1m rw=read" {
		t.Errorf("%d cells, %d trials, the first %s", len(own.Cells), len(own.Trials), own.Cells[0].Name())
	}
	if _, err := New(s, Options{Scale: "tiny"}); err == nil || !strings.Contains(err.Error(), "small, full") {
		t.Errorf("an unknown scale: %v", err)
	}
}

func TestDirectory(t *testing.T) {
	d, err := New(loaded(t, file), Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Sources, d.Flags = []Source{SourceOf("here/x.yaml", []byte(file))}, []string{"--engine", "a"}
	path := filepath.Join(t.TempDir(), "s")
	for range 2 { // made, then taken up
		if _, err := Begin(path, d); err != nil {
			t.Fatal(err)
		}
	}
	other, err := New(loaded(t, file), Options{Repetitions: 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(path, other); err == nil || !strings.Contains(err.Error(), "another --out") {
		t.Errorf("another edition in the same directory: %v", err)
	}
	for want, change := range map[string]func(*Design){
		"x.yaml has changed": func(d *Design) {
			d.Sources[0] = SourceOf("there/x.yaml",
				[]byte(file+"#"))
		},
		"started with --engine a, not --engine b --keep": func(d *Design) {
			d.Flags = []string{"--engine", "b",
				"--keep"}
		},
		"another study": func(d *Design) {
			d.Sources = append(d.Sources,
				SourceOf("y", nil))
		},
	} {
		other := *d
		other.Sources = slices.Clone(d.Sources)
		change(&other)
		if _, err := Begin(path, &other); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "another --out") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	opened, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(d, opened.Design); diff != "" {
		t.Error(diff)
	}
	// What is no complete bundle is not done, and goes out of the way.
	first := d.Trials[0]
	if err := os.MkdirAll(opened.Of(first), 0o755); err != nil {
		t.Fatal(err)
	}
	if opened.Bundle(first) != nil {
		t.Error("an empty directory counts as done")
	}
	to, err := opened.SetAside(first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(to); err != nil || to == "" {
		t.Errorf("set aside to %q: %v", to, err)
	}
	if to, err := opened.SetAside(first); to != "" || err != nil {
		t.Errorf("nothing set aside to %q: %v", to, err)
	}
	full := t.TempDir()
	if err := os.WriteFile(filepath.Join(full, "x"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(full, d); err == nil {
		t.Error("a directory of something else was taken")
	}
}

func TestValue(t *testing.T) {
	tests := []struct {
		values []float64
		want   string
	}{
		{nil, "–"},
		{[]float64{2e6}, "2 ms"},
		{[]float64{3e6, 1e6, 2e6}, "2 ms (1 ms … 3 ms)"},
		{[]float64{4e6, 1e6, 2e6, 3e6}, "2.5 ms (1 ms … 4 ms)"},
		{[]float64{1e6, math.Inf(1), 2e6}, "2 ms (1 ms … ∞)"},
		{[]float64{1e6, math.Inf(1)}, "∞ (1 ms … ∞)"},
	}
	for _, tt := range tests {
		var s sample
		for i, v := range tt.values {
			s.add(Trial{Repetition: i + 1}, expr.Value{Number: v})
		}
		if got := s.value("ns").String(); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.values, got, tt.want)
		}
	}
}

func TestResponses(t *testing.T) {
	qs, err := Responses([]string{"p50(pods)", "rate(pods)", "iops(fio.read)", "errors(pods)"})
	if err != nil || len(qs) != 4 || qs[2].Metric.Name != "read" {
		t.Errorf("%v: %v", qs, err)
	}
	for _, bad := range []string{"pods", "p50(pods) + p99(pods)", "p50(pods)/p50(pods)", "nonsense(", "1.0"} {
		if _, err := Responses([]string{bad}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}

// Throughput is compared along what asks an action for more, and along nothing
// else: fio's depth, or the length of a trace, says nothing of how snapshots scale.
func TestRising(t *testing.T) {
	const loop, poisson = "spec.rates.loop.concurrencySpec.parallelism", "spec.rates[1].poissonRateSpec.perSecond"
	tests := []struct {
		name    string
		factors map[string][]v1alpha1.Var
		want    [2]string // factors of the two rates
	}{
		{"parallelism", map[string][]v1alpha1.Var{loop: {"1", "10"}, "fio.bs": {"1", "2"}},
			[2]string{"parallelism", ""}},
		{"per second, of the rate in the second place", map[string][]v1alpha1.Var{poisson: {"1", "2.5"}},
			[2]string{"", "perSecond"}},
		{"each its own", map[string][]v1alpha1.Var{loop: {"1", "10"}, poisson: {"1", "2"}},
			[2]string{"parallelism", "perSecond"}},
		{"something else", map[string][]v1alpha1.Var{"fio.iodepth": {"1", "32"},
			"spec.rates.other.traceRateSpec.timeScale": {"1", "2"}}, [2]string{}},
		{"no numbers", map[string][]v1alpha1.Var{loop: {"few", "many"}}, [2]string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d, err := New(loaded(t, file), Options{Factors: tt.factors})
			if err != nil {
				t.Fatal(err)
			}
			dir := &Dir{Design: d}
			for i, rate := range [][]string{{"spec.rates.loop.", "spec.rates[0]."},
				{"spec.rates.other.", "spec.rates[1]."}} {
				got := ""
				if at := dir.rising(rate); at >= 0 {
					got = d.Factors[at]
				}
				if got != tt.want[i] {
					t.Errorf("rate %d goes up by %q, want %q", i, got, tt.want[i])
				}
			}
		})
	}
}

// The built-in suites are, in full, the papers' experiments: five repetitions, and
// a smaller edition for those who want to see them run.
func TestSuitesInFull(t *testing.T) {
	const parallelism = "spec.rates.parallel.concurrencySpec.parallelism"
	tests := map[string]struct {
		storage string
		cells   int
		factor  map[string]string
		says    []string
	}{
		"section-5.2": {"vars.storageClass", 8, map[string]string{parallelism: "1 10 20 30 40 50 60 70"},
			[]string{`"runtime":"5m"`, `"workload":"exit"`}},
		"attach-new": {"vars.storageClass", 2, nil,
			[]string{`"volumeSize":"1Gi"`, `"limit":50`, `"parallelism":1`, `"size":50`}},
		"attach-existing": {"spec.actions.volumes.createObjSpec.volume.storageClass", 2, nil,
			[]string{`"size":"1Gi"`, `"count":50`, `"limit":50`, `"parallelism":1`, `"size":50`}},
	}
	files, err := filepath.Glob("../../library/suites/*.yaml")
	if err != nil || len(files) != len(tests) {
		t.Fatalf("%d suites, %d are known here: %v", len(files), len(tests), err)
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile("../../library/suites/" + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			suite := loaded(t, string(text))
			full, err := New(suite, Options{})
			if err != nil {
				t.Fatal(err)
			}
			small, err := New(suite, Options{Scale: "small"})
			if err != nil {
				t.Fatal(err)
			}
			if len(full.Cells) != tt.cells || len(full.Trials) != 5*tt.cells || len(small.Trials) != len(small.Cells) {
				t.Errorf("%d cells and %d trials, %d in small; want %d cells five times", len(full.Cells),
					len(full.Trials), len(small.Trials), tt.cells)
			}
			if len(suite.Spec.Factors[tt.storage]) == 0 {
				t.Errorf("the storage is no factor: %v", suite.Order)
			}
			for key, want := range tt.factor {
				var got []string
				for _, v := range suite.Spec.Factors[key] {
					got = append(got, string(v))
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s: %v", key, got)
				}
			}
			for _, want := range tt.says {
				if !strings.Contains(string(suite.Spec.Benchmark.Raw), want) {
					t.Errorf("not %s: %s", want, suite.Spec.Benchmark.Raw)
				}
			}
		})
	}
}
