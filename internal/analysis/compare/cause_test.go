package compare_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// whoseCase has trials of two levels in which the time of components is known, in seconds per op.
type whoseCase struct {
	name         string
	a, b         map[string]float64
	blocks       int
	paired       bool
	interference bool
	want         string // in the sentence; empty: none
	component    string // the largest, with its part
	part         float64
}

func (x *whoseCase) run(t *testing.T, seed uint64) *compare.Result {
	t.Helper()
	random := rand.New(rand.NewPCG(seed, 9))
	metric := observation.Metric{Name: "p50(create)", Unit: "ns"}
	explains := compare.Explained{Action: "create"}
	if x.interference {
		metric = observation.Metric{Name: `interference(fio.canaryWrite, during("create"))`}
		explains.Disturbed = "fio.canaryWrite"
	}
	values := observation.NewBuilder([]string{"class"}, "", "block")
	times := observation.NewBuilder([]string{"class"}, "", "block")
	values.Numbered, times.Numbered = true, true
	for block := range x.blocks {
		luck := 1 + 0.1*random.NormFloat64() // of a block
		for i, parts := range []map[string]float64{x.a, x.b} {
			level := []string{"a", "b"}[i]
			at := observation.Row{Levels: []string{level}, Block: fmt.Sprint(block), Repetition: 1}
			sum := 0.0
			for _, component := range slices.Sorted(maps.Keys(parts)) { // the same draws in each run of the test
				at.Metric = compare.TimeOf("create", component)
				at.Value = 1e9 * parts[component] * luck * (1 + 0.02*random.NormFloat64())
				sum += at.Value
				times.Add(at)
			}
			at.Metric, at.Value = metric, sum/1e9
			values.Add(at)
		}
	}
	r, err := compare.Run(values.Table(), compare.Options{Paired: x.paired, Times: &compare.Times{Table: times.Table(),
		Explains: map[string]compare.Explained{metric.Name: explains}}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestCauseNone: equal times are no difference.
func TestCauseNone(t *testing.T) {
	t.Parallel()
	times := observation.NewBuilder([]string{"class"}, "", "")
	values := observation.NewBuilder([]string{"class"}, "", "")
	for _, level := range []string{"a", "b"} {
		for range 6 {
			at := observation.Row{Levels: []string{level}, Metric: compare.TimeOf("create", "API"), Value: 5e6}
			times.Add(at)
			at.Metric = observation.Metric{Name: "p50(create)", Unit: "ns"}
			values.Add(at)
		}
	}
	r, err := compare.Run(values.Table(), compare.Options{Times: &compare.Times{Table: times.Table(),
		Explains: map[string]compare.Explained{"p50(create)": {Action: "create"}}}})
	if err != nil || len(r.Causes) != 1 || !strings.HasPrefix(r.Causes[0].Sentence,
		"An op of create takes as long in b as in a") {
		t.Errorf("%+v, %v", r.Causes, err)
	}
	if slices.Contains(r.Sentences, r.Causes[0].Sentence) {
		t.Error(r.Sentences)
	}
}

// TestCauseOccasions: trials of several occasions are not independent; the sentence says that it holds for these.
func TestCauseOccasions(t *testing.T) {
	t.Parallel()
	values := observation.NewBuilder([]string{"class"}, "occasion", "")
	times := observation.NewBuilder([]string{"class"}, "occasion", "")
	for occasion := range 6 {
		for i, level := range []string{"a", "b"} {
			for j := range 3 {
				at := observation.Row{Levels: []string{level}, Occasion: fmt.Sprint(occasion), Value: 1e9 * float64(10+10*i+j),
					Metric: compare.TimeOf("create", "API")}
				times.Add(at)
				at.Metric = observation.Metric{Name: "p50(create)", Unit: "ns"}
				values.Add(at)
			}
		}
	}
	r, err := compare.Run(values.Table(), compare.Options{Times: &compare.Times{Table: times.Table(),
		Explains: map[string]compare.Explained{"p50(create)": {Action: "create"}}}})
	if err != nil || len(r.Causes) != 1 {
		t.Fatal(r, err)
	}
	w := r.Causes[0]
	if w.Scope != "for these 6 occasions" || !strings.Contains(w.Sentence, "n = 18 trials, for these 6 occasions)") ||
		!slices.Contains(r.Sentences, w.Sentence) {
		t.Errorf("%q: %q", w.Scope, w.Sentence)
	}
}

// TestCause: the component whose time was changed is named, with an interval that has the change.
func TestCause(t *testing.T) {
	t.Parallel()
	slow := map[string]float64{"API": 0.1, "csi-attacher": 1.9, "driver": 0.2}
	fast := map[string]float64{"API": 0.1, "csi-attacher": 0.5, "driver": 0.2}
	frozen := map[string]float64{"API": 0.1, "csi-attacher": 0.5, "driver": 0.2, "frozen": 0.6}
	for _, tt := range []whoseCase{
		{name: "paired", a: fast, b: slow, blocks: 12, paired: true,
			want: "An op of create takes 1.", component: "csi-attacher", part: 1.4},
		{name: "not paired", a: slow, b: fast, blocks: 12,
			want: "less in b than in a", component: "csi-attacher", part: -1.4},
		{name: "a component that one level has", a: fast, b: frozen, blocks: 8,
			want: "that is the time of frozen: +", component: "frozen", part: 0.6},
		{name: "no difference", a: fast, b: fast, blocks: 8, paired: true, component: "csi-attacher", part: 0},
		{name: "too few trials", a: fast, b: slow, blocks: 3, paired: true, component: "csi-attacher", part: 1.4},
		{name: "interference of few trials", a: fast, b: slow, blocks: 3, paired: true, interference: true,
			component: "csi-attacher", part: 1.4},
		{name: "interference", a: fast, b: slow, blocks: 8, paired: true, interference: true,
			want:      "Create disturb fio.canaryWrite more in b than in a (interference(fio.canaryWrite, during(",
			component: "csi-attacher", part: 1.4},
	} {
		t.Run(tt.name, func(t *testing.T) {
			covered := 0
			for seed := range uint64(20) {
				r := tt.run(t, seed)
				if len(r.Causes) != 1 || len(r.Causes[0].Metrics) != 1 {
					t.Fatalf("%+v", r.Causes)
				}
				w := r.Causes[0]
				all := strings.Join(r.Sentences, "\n")
				if said := strings.Contains(all, w.Sentence); said != (tt.want != "") || !strings.Contains(w.Sentence, tt.want) {
					t.Fatalf("want %q in\n%s\nwhose: %s", tt.want, all, w.Sentence)
				}
				if undecided := "Whether create disturb fio.canaryWrite more"; tt.interference &&
					strings.HasPrefix(w.Sentence, undecided) != (tt.want == "") {
					t.Fatal(w.Sentence)
				}
				c := w.Components[0]
				if tt.part != 0 && (c.Component != tt.component || math.Abs(c.Ns/1e9-tt.part) > 0.3) {
					t.Fatalf("%+v, want %s with %g s", w.Components, tt.component, tt.part)
				}
				if tt.part == 0 { // the largest of several without a difference is not one that was chosen before
					c = w.Components[slices.IndexFunc(w.Components,
						func(c compare.TimeDifference) bool { return c.Component == tt.component })]
				}
				if few := tt.blocks < 6; few != (c.Low == nil) {
					t.Fatalf("%d blocks: %+v", tt.blocks, c)
				} else if few || *c.Low <= 1e9*tt.part && 1e9*tt.part <= *c.High {
					covered++
				}
			}
			if covered < 16 {
				t.Errorf("the interval has the part in %d of 20", covered)
			}
		})
	}
}
