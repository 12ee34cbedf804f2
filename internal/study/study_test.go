package study

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

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

// lists makes factors of lists.
func lists(of map[string][]v1alpha1.Var) map[string]v1alpha1.Factor {
	factors := map[string]v1alpha1.Factor{}
	for key, values := range of {
		factors[key] = v1alpha1.Factor{Values: values}
	}
	return factors
}

// begin opens or creates a study, and releases its lock.
func begin(t *testing.T, path string, d *Design, first Occasion) *Dir {
	t.Helper()
	dir, err := Begin(path, d, first)
	if err != nil {
		t.Fatal(err)
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
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
	own, err := New(s, Options{Blocks: 3, Factors: lists(map[string][]v1alpha1.Var{"fio.bs": {"1m"},
		"fio.rw": {"read", "write"}})})
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
	twice := Options{Factors: lists(map[string][]v1alpha1.Var{"fio.bs": {"4k", "1m", "4k"}})}
	if _, err := New(s, twice); err == nil || !strings.Contains(err.Error(), "the value 4k twice") {
		t.Errorf("a value that is there twice: %v", err)
	}
}

func TestDirectory(t *testing.T) {
	d, err := New(loaded(t, file), Options{})
	if err != nil {
		t.Fatal(err)
	}
	d.Sources, d.Flags = []Source{SourceOf("here/x.yaml", []byte(file))}, []string{"--engine", "a"}
	path := filepath.Join(t.TempDir(), "s")
	began := Occasion{Begun: time.Date(2026, 11, 24, 10, 0, 0, 0, time.UTC), Zone: "Europe/Berlin"}
	for range 2 { // made, then taken up
		begin(t, path, d, began)
	}
	other, err := New(loaded(t, file), Options{Blocks: 9})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(path, other, began); err == nil || !strings.Contains(err.Error(), "another --out") {
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
		"(with other --set, responses or metrics)": func(d *Design) {
			d.Base = append(slices.Clone(d.Base), "spec.runtime=1s")
			d.Responses = append(slices.Clone(d.Responses), "rate(x)")
		},
		"another study, or another edition of this one (with other files)": func(d *Design) {
			d.Sources = append(d.Sources,
				SourceOf("y", nil))
		},
	} {
		other := *d
		other.Sources = slices.Clone(d.Sources)
		change(&other)
		if _, err := Begin(path, &other, began); err == nil || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "another --out") {
			t.Errorf("%v, want %q", err, want)
		}
	}
	opened, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	began.Number = 1
	want := *d
	want.Occasions = []Occasion{began}
	want.File = "" // for messages before the study begins
	if diff := cmp.Diff(&want, opened.Design); diff != "" {
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
	if _, err := Begin(full, d, began); err == nil {
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
		if got := s.value(expr.Query{Func: expr.Max}, "ns").String(); got != tt.want {
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
			d, err := New(loaded(t, file), Options{Factors: lists(tt.factors)})
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

// TestVariants: a variant leaves actions out and can be the compared factor; a scale changes those that it names.
func TestVariants(t *testing.T) {
	const text = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: x}
spec:
  comparedFactor: variant
  factors: {fio.bs: [4k, 8k]}
  variants:
    - {name: all}
    - {name: more, set: {fio.iodepth: 64}}
    - {name: alone, without: [snapshots, resizes]}
  scales: {small: {blocks: 1, variants: [{name: more, set: {fio.iodepth: 4}}]}}
  benchmark: {actions: []}
`
	full, err := New(loaded(t, text), Options{AA: &v1alpha1.StudyAAArm{
		Levels: map[string]v1alpha1.Var{"variant": "alone"}}})
	if err != nil {
		t.Fatal(err)
	}
	left := []string{"spec.actions.snapshots=null", "spec.actions.resizes=null"}
	for _, i := range []int{4, 5, 6, 7} { // the last two are the A/A arm
		c := full.Cells[i]
		if !slices.Equal(c.Set[:2], left) || !slices.Equal(c.Without, []string{"snapshots", "resizes"}) {
			t.Errorf("cell %+v", c)
		}
	}
	if full.Compared != "variant" || full.Blocks != 7 || full.Cells[2].Set[0] != "fio.iodepth=64" ||
		full.Cells[2].Without != nil {
		t.Errorf("%q is compared, %d blocks, cell %+v", full.Compared, full.Blocks, full.Cells[2])
	}
	small, err := New(loaded(t, text), Options{Scale: "small"})
	if err != nil || small.Cells[2].Set[0] != "fio.iodepth=4" || small.Blocks != 1 || len(small.Cells) != 6 ||
		!slices.Equal(small.Cells[4].Set[:2], left) {
		t.Errorf("%v: %+v", err, small)
	}
}

// TestLeastBlocks: the default number of blocks of a comparison follows from the number of levels, over all occasions.
func TestLeastBlocks(t *testing.T) {
	text := strings.Replace(file, "  repetitions: 2\n", "  comparedFactor: vars.storageClass\n", 1)
	classes := func(names ...v1alpha1.Var) Options {
		return Options{Factors: lists(map[string][]v1alpha1.Var{"vars.storageClass": names})}
	}
	two := classes("a", "b")
	two.Occasions = 4
	for _, tt := range []struct {
		o    Options
		want int
	}{
		{Options{}, 6}, {classes("a", "b"), 6}, {classes("a", "b", "c"), 7}, {classes("a", "b", "c", "d"), 8}, {two, 2},
		{Options{Blocks: 3}, 3}, {Options{Scale: "small"}, 1},
	} {
		d, err := New(loaded(t, text), tt.o)
		if err != nil || d.Blocks != tt.want || d.Compared != "storageClass" {
			t.Errorf("%+v: %d blocks, want %d; compared: %q; %v", tt.o, d.Blocks, tt.want, d.Compared, err)
		}
	}
	if _, err := New(loaded(t, strings.Replace(text, "vars.storageClass\n", "vars.other\n", 1)), Options{}); err == nil {
		t.Error("a factor that the study does not have was taken")
	}
}
