package verdict_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/statstest"
	. "github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// estimate has the ends of both intervals.
func estimate(low, low90, high90, high float64) Estimate {
	value := math.Sqrt(low90 * high90)
	return Estimate{NA: 10, NB: 10, Ratio: stats.Ratio{Value: value, Low: low, High: high},
		Ratio90: stats.Ratio{Value: value, Low: low90, High: high90}}
}

func TestJudge(t *testing.T) {
	nan := math.NaN()
	above, below := estimate(1.06, 1.07, 1.18, 1.2), estimate(0.8, 0.81, 0.93, 0.95)
	within, wide := estimate(0.94, 0.96, 1.04, 1.06), estimate(0.9, 0.92, 1.15, 1.2)
	few, unbounded := above, estimate(nan, 1.06, 1.2, nan)
	few.NA, few.NB = 3, 3
	less := Rule{Margin: 0.05, Direction: LessIsBetter}
	more := Rule{Margin: 0.05, Direction: MoreIsBetter}
	tests := []struct {
		name string
		e    Estimate
		p    float64
		rule Rule
		want Word
		says string
	}{
		{"weak comes first", above, 0.001, Rule{Margin: 0.05, Weak: []string{"n = 2", "failed ops"}}, None,
			"weak data: n = 2; failed ops"},
		{"too few", few, 0.001, more, None, "too few values: 3 and 3, needs 4 on each side"},
		{"too few for a family", estimate(1.06, 1.07, 1.18, 1.2), 0.001,
			Rule{Margin: 0.05, Comparisons: 5000}, None, "too few values: 10 and 10, needs 11 on each side"},
		{"no interval", unbounded, 0.001, more, None, "too few"},
		{"more is better", above, 0.04, more, Better, "beyond the margin"},
		{"less is better", above, 0.04, less, Worse, "beyond the margin"},
		{"below, more is better", below, 0.04, more, Worse, ""},
		{"below, less is better", below, 0.04, less, Better, ""},
		{"direction unknown", below, 0.04, Rule{Margin: 0.05}, Different, ""},
		{"not significant", above, 0.06, more, Inconclusive, "p = 0.06"},
		{"exactly alpha", above, 0.05, more, Inconclusive, ""},
		{"within", within, 0.5, more, Equivalent, "within the margin"},
		{"within and significant", within, 0.01, more, Trivial, ""},
		{"the margin is symmetric on the log scale", estimate(0.95, 0.951, 1, 1.01), 0.5, more, Inconclusive, ""},
		{"wide", wide, 0.3, more, Inconclusive, "p = 0.3; needs about 20 on each side or more"},
		{"significant but not beyond", wide, 0.03, more, Inconclusive, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := Judge(&tt.e, tt.p, tt.rule)
			if got.Word != tt.want || !strings.Contains(got.Reason, tt.says) {
				t.Errorf("got %+v, want %s, in it %q", got, tt.want, tt.says)
			}
		})
	}
}

// To exchange a and b exchanges better and worse, and leaves the other verdicts.
func TestSymmetry(t *testing.T) {
	other := map[Word]Word{Better: Worse, Worse: Better}
	random := rand.New(rand.NewPCG(1, 2))
	seen := map[Word]int{}
	for range 300 {
		n := 3 + random.IntN(20)
		a := statstest.LogNormal(random, n, 100, 0.05)
		b := statstest.LogNormal(random, n, 100+20*random.NormFloat64()*float64(random.IntN(2)), 0.05)
		paired := random.IntN(2) == 0
		x, _ := New(a, b, paired)
		y, _ := New(b, a, paired)
		rules := []Rule{{Margin: 0.05, Direction: MoreIsBetter}}
		v, w := Judge(&x, x.Test.P, rules[0]), Judge(&y, y.Test.P, rules[0])
		want := v.Word
		if o, ok := other[v.Word]; ok {
			want = o
		}
		if w.Word != want || v.Needed != w.Needed {
			t.Errorf("b against a: %+v, a against b: %+v", v, w)
		}
		seen[v.Word]++
	}
	for _, w := range []Word{None, Better, Worse, Equivalent, Inconclusive} {
		if seen[w] == 0 {
			t.Errorf("no case of %s: %v", w, seen)
		}
	}
}

// A/A: two samples of one distribution. A wrong verdict is better, worse or different; p
// is counted apart.
func TestFalseVerdicts(t *testing.T) {
	for _, paired := range []bool{false, true} {
		random := rand.New(rand.NewPCG(3, 4))
		wrong, significant := 0, 0
		const trials = 1000
		for range trials {
			a, b := statstest.LogNormal(random, 10, 100, 0.1), statstest.LogNormal(random, 10, 100, 0.1)
			e, _ := New(a, b, paired)
			v := Judge(&e, e.Test.P, Rule{Margin: DefaultMargin})
			if v.Word == Different {
				wrong++
			}
			if v.P < Alpha {
				significant++
			}
		}
		t.Logf("paired %t: %d of %d different, %d with p < 0.05", paired, wrong, trials, significant)
		if wrong > trials/50 || significant > trials*7/100 {
			t.Errorf("paired %t: %d of %d different, %d with p < 0.05", paired, wrong, trials, significant)
		}
	}
}

// The power of p < 0.05 with ten blocks whose values vary by 5 % within a block and by
// much more between blocks, as a table for docs/design/statistics.md.
func TestPower(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for _, tt := range []struct{ shift, least float64 }{{0.03, 0}, {0.05, 0.3}, {0.10, 0.8}} {
		power := statstest.Share(600, func() bool {
			a, b := statstest.LogNormal(random, 10, 100, 0.05), statstest.LogNormal(random, 10, 100*(1+tt.shift), 0.05)
			for i := range a {
				block := math.Exp(0.5 * random.NormFloat64())
				a[i], b[i] = a[i]*block, b[i]*block
			}
			e, _ := New(a, b, true)
			return e.Test.P < Alpha
		})
		t.Logf("shift %.0f %%: power %.2f", 100*tt.shift, power)
		if power < tt.least {
			t.Errorf("shift %.0f %%: power %.2f, want %.2f", 100*tt.shift, power, tt.least)
		}
	}
}

// An estimate has the exact test of its values; samples without a ratio have none.
func TestNew(t *testing.T) {
	a := []float64{1, 2, 3, 4, 5, 6}
	b := []float64{11, 12, 13, 14, 15, 16}
	e, ok := New(a, b, false)
	if !ok || e.Test.Method != rank.Exact || math.Abs(e.Test.P-2/924.0) > 1e-12 {
		t.Fatalf("%+v", e)
	}
	if _, ok := New(a, b[:5], true); ok {
		t.Error("pairs of sides that differ in length")
	}
	if _, ok := New([]float64{0, 1}, []float64{1, 2}, false); ok {
		t.Error("0 has a ratio")
	}
}

func FuzzNew(f *testing.F) {
	f.Add([]byte("12345678abcdefgh12345678abcdefgh12345678"), true)
	f.Fuzz(func(t *testing.T, data []byte, paired bool) {
		values := statstest.Numbers(data, 40)
		half := len(values) / 2
		e, ok := New(values[:half], values[half:], paired)
		if !ok {
			return
		}
		if v := Judge(&e, e.Test.P, Rule{Margin: 0.05}); v.Word == "" || v.Reason == "" {
			t.Errorf("%v: %+v", values, v)
		}
	})
}
