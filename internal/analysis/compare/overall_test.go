package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
)

// TestOverall: three levels that differ are found by either test, and of 100 studies without a difference few.
func TestOverall(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		test   string
		paired bool
		shift  float64
		least  int
		most   int
	}{{"Kruskal–Wallis", false, 0.1, 95, 100}, {"Friedman", true, 0.1, 95, 100}, {"Kruskal–Wallis", false, 0, 0, 11},
		{"Friedman", true, 0, 0, 11}} { // 12 of 100 at 5 %: a probability of 0.4 %
		found := 0
		for seed := range uint64(100) {
			random := rand.New(rand.NewPCG(seed, 3))
			b := observation.NewBuilder([]string{"provider"}, "", "block")
			for block := range 10 {
				of := random.NormFloat64()
				if !tt.paired {
					of = 0
				}
				for i, level := range []string{"a", "b", "c"} {
					b.Add(observation.Row{Levels: []string{level}, Block: fmt.Sprint(block), Metric: observation.Metric{Name: "m",
						Unit: "IOPS"}, Value: 100 * math.Exp(of+tt.shift*float64(i)+0.05*random.NormFloat64())})
				}
			}
			b.Add(observation.Row{Levels: []string{"a"}, Block: "alone", Value: 1e5,
				Metric: observation.Metric{Name: "m", Unit: "IOPS"}})
			r := run(t, b.Table(), compare.Options{Paired: tt.paired})
			if len(r.Overall) != 1 || r.Overall[0].Test != tt.test || r.Overall[0].P == nil {
				t.Fatalf("%+v, want one test, %s", r.Overall, tt.test)
			}
			if o := r.Overall[0]; tt.paired && (len(o.N) != 1 || o.N[0] != 10) || !tt.paired && fmt.Sprint(o.N) != "[11 10 10]" {
				t.Fatalf("n is %v: a block that has one level belongs to no row", o.N)
			}
			if *r.Overall[0].P < 0.05 {
				found++
			}
		}
		t.Logf("%s, shift %g: %d of 100 with p < 0.05", tt.test, tt.shift, found)
		if found < tt.least || found > tt.most {
			t.Errorf("%s, shift %g: %d of 100 with p < 0.05, want %d to %d", tt.test, tt.shift, found, tt.least, tt.most)
		}
	}
}

// TestOverallScopes: with several occasions there is a test of occasions and one of repetitions; with two levels none;
// a level that cannot be judged gives the reason.
func TestOverallScopes(t *testing.T) {
	t.Parallel()
	three := simulated{medians: map[string]float64{"a": 1, "b": 2, "c": 3}, order: []string{"a", "b", "c"}, occasions: 4,
		trial: 5, within: 0.01, unit: "IOPS", seed: 1}
	r := run(t, three.table(), compare.Options{})
	var got []string
	for _, o := range r.Overall {
		got = append(got, fmt.Sprintf("%s %s %v", o.UnitOfAnalysis, o.Scope, o.N))
	}
	want := "occasion in general [4 4 4]|repetition for these 4 occasions [20 20 20]"
	if s := strings.Join(got, "|"); s != want {
		t.Errorf("%s, want %s", s, want)
	}
	if r := run(t, three.table(), compare.Options{PerRepetition: true}); len(r.Overall) != 1 || r.Overall[0].N[0] != 20 {
		t.Errorf("%+v", r.Overall)
	}
	three.order = three.order[:2]
	if r := run(t, three.table(), compare.Options{}); len(r.Overall) != 0 {
		t.Errorf("of two levels: %+v", r.Overall)
	}
	b := observation.NewBuilder([]string{"provider"}, "", "")
	for _, level := range []string{"a", "b", "c"} {
		for i := range 5 {
			b.Add(observation.Row{Levels: []string{level}, Metric: observation.Metric{Name: "m"}, Value: float64(i)})
		}
	}
	if o := run(t, b.Table(), compare.Options{}).Overall[0]; o.P != nil || !strings.Contains(o.Sentence, "a value of 0") {
		t.Errorf("%+v", o)
	}
}
