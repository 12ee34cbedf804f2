package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// simulated describes values that are drawn: the median of each level, and the standard deviations of logarithms within
// and between occasions.
type simulated struct {
	medians          map[string]float64
	order            []string
	occasions, trial int
	within, between  float64
	unit             string
	seed             uint64
}

func (s simulated) table() *observation.Table {
	random := rand.New(rand.NewPCG(s.seed, 1))
	occasion := "occasion"
	if s.occasions == 0 {
		occasion = ""
	}
	b := observation.NewBuilder([]string{"provider"}, occasion, "")
	b.Numbered = true
	for o := range max(1, s.occasions) {
		for _, level := range s.order {
			shift := s.between * random.NormFloat64()
			for i := range s.trial {
				b.Add(observation.Row{Levels: []string{level}, Occasion: fmt.Sprint(o + 1), Repetition: int32(i + 1),
					Metric: observation.Metric{Name: "figure", Unit: s.unit},
					Value:  s.medians[level] * math.Exp(shift+s.within*random.NormFloat64())})
			}
		}
	}
	return b.Table()
}

func run(t *testing.T, table *observation.Table, o compare.Options) *compare.Result {
	t.Helper()
	r, err := compare.Run(table, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestKnownRatio recovers an injected ratio of 1.3: the interval has it, and the verdict is of b against a.
func TestKnownRatio(t *testing.T) {
	t.Parallel()
	covered := 0
	for seed := range uint64(100) {
		s := simulated{medians: map[string]float64{"a": 100, "b": 130}, order: []string{"a", "b"}, trial: 12, within: 0.05,
			unit: "IOPS", seed: seed}
		c := run(t, s.table(), compare.Options{}).Comparisons[0]
		if *c.Low <= 1.3 && 1.3 <= *c.High {
			covered++
		}
		if c.A != "a" || c.B != "b" || c.Verdict != verdict.Better || c.Scope != "for this occasion" || c.N != 12 {
			t.Errorf("seed %d: %s", seed, c.Sentence)
		}
	}
	t.Logf("%d of 100 intervals have the ratio", covered)
	if covered < 90 { // 95 are expected; 89 or fewer have a probability of 0.01
		t.Errorf("%d of 100 intervals have the ratio", covered)
	}
}

// TestVerdictWords has a case for each verdict.
func TestVerdictWords(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		want      verdict.Word
		unit      string
		b, within float64
		trials    int
		options   compare.Options
	}{
		{want: verdict.Better, unit: "IOPS", b: 150, within: 0.02, trials: 10},
		{want: verdict.Worse, unit: "ms", b: 150, within: 0.02, trials: 10},
		{want: verdict.Better, unit: "ms", b: 70, within: 0.02, trials: 10},
		{want: verdict.Different, unit: "apples", b: 150, within: 0.02, trials: 10},
		{want: verdict.Worse, unit: "apples", b: 150, within: 0.02, trials: 10,
			options: compare.Options{Directions: map[string]verdict.Direction{"figure": verdict.LessIsBetter}}},
		{want: verdict.Equivalent, unit: "IOPS", b: 100, within: 0.02, trials: 20},
		{want: verdict.Trivial, unit: "IOPS", b: 103, within: 0.005, trials: 20},
		{want: verdict.Better, unit: "IOPS", b: 103, within: 0.005, trials: 20, options: compare.Options{Margin: 0.01}},
		{want: verdict.Inconclusive, unit: "IOPS", b: 105, within: 0.3, trials: 8},
		{want: verdict.None, unit: "IOPS", b: 200, within: 0.01, trials: 3},
		{want: verdict.None, unit: "IOPS", b: 200, within: 0.01, trials: 1},
	} {
		s := simulated{medians: map[string]float64{"a": 100, "b": tt.b}, order: []string{"a", "b"}, trial: tt.trials,
			within: tt.within, unit: tt.unit, seed: 7}
		c := run(t, s.table(), tt.options).Comparisons[0]
		if c.Verdict != tt.want {
			t.Errorf("want %s: %s", tt.want, c.Sentence)
		}
		if undecided := c.Verdict == verdict.None || c.Verdict == verdict.Inconclusive; undecided != (c.Needs != nil) {
			t.Errorf("%s: needs %+v", c.Sentence, c.Needs)
		}
	}
}

// TestPseudoReplication: providers that do not differ, on occasions that do. Counting repetitions as independent finds
// differences that are the occasions'; the occasion as the unit does not.
func TestPseudoReplication(t *testing.T) {
	t.Parallel()
	wrong, within := 0, 0
	const studies = 100
	for seed := range uint64(studies) {
		s := simulated{medians: map[string]float64{"a": 100, "b": 100}, order: []string{"a", "b"}, occasions: 6, trial: 10,
			within: 0.02, between: 0.2, unit: "IOPS", seed: seed}
		c := run(t, s.table(), compare.Options{}).Comparisons[0]
		if c.UnitOfAnalysis != "occasion" || c.N != 6 || c.Within == nil {
			t.Fatal(c.Sentence)
		}
		if *c.P < verdict.Alpha {
			wrong++
		}
		if *c.Within.P < verdict.Alpha {
			within++
		}
	}
	if wrong > 12 { // 5 are expected; more than 12 have a probability of 0.001
		t.Errorf("%d of %d studies without a difference have p < 0.05", wrong, studies)
	}
	t.Logf("p < 0.05 by occasion in %d, by repetition in %d of %d", wrong, within, studies)
	if within < 40 {
		t.Errorf("only %d pooled: the occasions do not differ, and the test shows nothing", within)
	}
}

// TestOccasionsOfOneValue have no second level.
func TestOccasionsOfOneValue(t *testing.T) {
	t.Parallel()
	s := simulated{medians: map[string]float64{"a": 100, "b": 200}, order: []string{"a", "b"}, occasions: 8, trial: 1,
		within: 0.02, unit: "IOPS"}
	c := run(t, s.table(), compare.Options{}).Comparisons[0]
	if c.Within != nil || c.Verdict != verdict.Better || c.Scope != "in general" {
		t.Errorf("%s", c.Sentence)
	}
}

// TestPaired: a block effect that is far larger than the difference disappears in the pairs.
func TestPaired(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"provider"}, "", "block")
	b.Numbered = true
	random := rand.New(rand.NewPCG(3, 3))
	for block := range 10 {
		shift := math.Exp(random.NormFloat64())
		for _, level := range []string{"a", "b"} {
			x := 100 * shift * math.Exp(0.01*random.NormFloat64())
			if level == "b" {
				x *= 1.2
			}
			b.Add(observation.Row{Levels: []string{level}, Block: fmt.Sprint(block), Repetition: 1, Value: x,
				Metric: observation.Metric{Name: "figure", Unit: "IOPS"}})
		}
	}
	table := b.Table()
	if c := run(t, table, compare.Options{}).Comparisons[0]; c.Verdict != verdict.Inconclusive {
		t.Errorf("unpaired: %s", c.Sentence)
	}
	c := run(t, table, compare.Options{Paired: true}).Comparisons[0]
	if c.Verdict != verdict.Better || !c.Paired || c.N != 10 || *c.Low > 1.2 || *c.High < 1.2 {
		t.Errorf("paired: %s", c.Sentence)
	}
}

// TestNoiseFloor: the margin is what two labels of one provider differ by, and their comparison is in no family.
func TestNoiseFloor(t *testing.T) {
	t.Parallel()
	s := simulated{medians: map[string]float64{"a": 100, "a again": 100, "b": 110}, order: []string{"a", "a again", "b"},
		trial: 20, within: 0.1, unit: "IOPS", seed: 5}
	r := run(t, s.table(), compare.Options{AA: [][2]string{{"a", "a again"}}})
	if len(r.Comparisons) != 1 || r.Comparisons[0].Family != 1 {
		t.Fatalf("%+v", r.Comparisons)
	}
	c := r.Comparisons[0]
	// The difference of two values of σ = 0.1 has σ = 0.141: the 95th percentile is about 0.28.
	if c.Margin < 0.15 || c.Margin > 0.5 || !strings.Contains(c.MarginFrom, "noise floor") {
		t.Errorf("margin %v (%s)", c.Margin, c.MarginFrom)
	}
}

// TestNoiseFloorBesideMargin: a given margin does not hide the noise floor, and one below it gets a note.
func TestNoiseFloorBesideMargin(t *testing.T) {
	t.Parallel()
	s := simulated{medians: map[string]float64{"a": 100, "a again": 100, "b": 110}, order: []string{"a", "a again", "b"},
		trial: 20, within: 0.1, unit: "IOPS", seed: 5}
	for _, o := range []compare.Options{{Margin: 0.02}, {Margin: 0.9}, {Margins: map[string]float64{"figure": 0.02}}} {
		o.AA = [][2]string{{"a", "a again"}}
		r := run(t, s.table(), o)
		if !strings.Contains(r.Comparisons[0].MarginFrom, "; the noise floor of 20 differences is ") {
			t.Errorf("margin from %q", r.Comparisons[0].MarginFrom)
		}
		below := len(r.Notes) == 1 && strings.Contains(r.Notes[0], "figure: the margin of 2 % is below the noise floor of ")
		if want := o.Margin != 0.9; below != want {
			t.Errorf("margin %v: notes %q", o.Margin, r.Notes)
		}
	}
}

// TestFailures: a provider that always fails has no figure and no verdict, and the reason says so.
func TestFailures(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"provider"}, "", "")
	m := observation.Metric{Name: "figure", Unit: "IOPS"}
	for i := range 10 {
		b.Add(observation.Row{Levels: []string{"a"}, Metric: m, Value: float64(100 + i)})
		b.Add(observation.Row{Levels: []string{"fails"}, Metric: m, Value: math.NaN(), State: observation.Missing})
		state := observation.Known
		if i < 2 {
			state = observation.Missing
		}
		b.Add(observation.Row{Levels: []string{"some"}, Metric: m, Value: float64(100 + i), State: state})
		b.Add(observation.Row{Levels: []string{"zero"}, Metric: m})
	}
	r := run(t, b.Table(), compare.Options{Against: "a"})
	if len(r.Comparisons) != 3 {
		t.Fatalf("%d comparisons", len(r.Comparisons))
	}
	for i, want := range []string{"no trial of fails has a value: all 10 failed, or measured nothing of it",
		"2 of 10 trials of some have no value",
		"zero has a value of 0 IOPS: a ratio needs values above 0"} {
		c := r.Comparisons[i]
		if c.Verdict != verdict.None || !strings.Contains(c.Reason, want) {
			t.Errorf("%s; want %q", c.Sentence, want)
		}
	}
	if c := cellOf(t, r, "figure", "fails"); c.N != 0 || c.Missing != 10 || c.Mean != nil {
		t.Errorf("%+v", c)
	}
}

// TestFewOperations: a quantile of too few operations is not compared, and the reason says how many it needs.
func TestFewOperations(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"provider"}, "", "")
	m := observation.Metric{Name: "p99(create)", Unit: "ns"}
	for i := range 6 {
		b.Add(observation.Row{Levels: []string{"a"}, Metric: m, Value: float64(100 + i)})
		b.Add(observation.Row{Levels: []string{"b"}, Metric: m, Value: float64(900 + i), State: observation.Few})
	}
	r := run(t, b.Table(), compare.Options{Least: map[string]int64{m.Name: 299}})
	if c := r.Comparisons[0]; c.Verdict != verdict.None || c.Ratio != nil || !strings.Contains(c.Reason,
		"6 of 6 trials of b have fewer operations than the 299 that the quantile needs") {
		t.Errorf("%+v", c)
	}
}

// TestNothingToCompare: one level, or no metric in common.
func TestNothingToCompare(t *testing.T) {
	t.Parallel()
	s := simulated{medians: map[string]float64{"a": 1}, order: []string{"a"}, trial: 5}
	r := run(t, s.table(), compare.Options{})
	if len(r.Comparisons) != 0 || r.Sentences[0] != "Nothing to compare: provider has one level, a." {
		t.Error(r.Sentences)
	}
	b := observation.NewBuilder([]string{"provider"}, "", "")
	b.Add(observation.Row{Levels: []string{"a"}, Metric: observation.Metric{Name: "x"}, Value: 1})
	b.Add(observation.Row{Levels: []string{"b"}, Metric: observation.Metric{Name: "y"}, Value: 1})
	if r := run(t, b.Table(), compare.Options{}); !strings.Contains(r.Sentences[0], "no two levels of provider") {
		t.Error(r.Sentences)
	}
}

// TestEmptyTable: runs without any figure.
func TestEmptyTable(t *testing.T) {
	t.Parallel()
	r := run(t, observation.NewBuilder([]string{"run"}, "", "").Table(), compare.Options{})
	if len(r.Comparisons) != 0 || !strings.Contains(r.Sentences[0], "Nothing to compare") {
		t.Error(r.Sentences)
	}
}

// TestBlocksOfOneOccasion: blocks of several repetitions are the unit of analysis, also where one occasion is declared.
func TestBlocksOfOneOccasion(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"provider"}, "day", "block")
	for i := range 24 {
		for j, level := range []string{"a", "b"} {
			b.Add(observation.Row{Levels: []string{level}, Occasion: "monday", Block: fmt.Sprint(i / 3),
				Metric: observation.Metric{Name: "figure", Unit: "IOPS"}, Value: float64(100*(j+1) + i)})
		}
	}
	c := run(t, b.Table(), compare.Options{}).Comparisons[0]
	if c.UnitOfAnalysis != "block" || c.N != 8 || c.Within == nil || c.Within.N != 24 {
		t.Errorf("%s", c.Sentence)
	}
}

// TestDirections: a rate is better if it is higher, unless it is one of failures.
func TestDirections(t *testing.T) {
	t.Parallel()
	for m, want := range map[observation.Metric]string{
		{Name: "writes", Unit: "1/s"}: "higher", {Name: "read", Unit: "MiB/s"}: "higher",
		{Name: "error rate", Unit: "1/s"}: "lower", {Name: "x", Unit: "stalls/s"}: "lower",
		{Name: "write without errors", Unit: "MB/s"}: "higher", {Name: "write IOPS, no errors", Unit: "IOPS"}: "higher",
		{Name: "recovery", Unit: "s"}: "lower", {Name: "latency", Unit: ""}: "lower", {Name: "apples", Unit: "kg"}: "unknown",
		{Name: "value(kv.misses)", Unit: "1/s", Better: "lower"}: "lower", {Name: "x", Better: "higher"}: "higher",
	} {
		if got := compare.DirectionOf(m, nil); got != want {
			t.Errorf("%+v: %s, want %s", m, got, want)
		}
	}
}

// TestRanking: the median of a is greater, but b is better in 37 of 40 pairs. The ranking by medians must not
// claim that a was shown to be better.
func TestRanking(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"provider"}, "", "block")
	for i := range 40 {
		x := 100.0
		if i >= 20 {
			x = 200
		}
		y := 1.2 * x
		if i >= 20 && i < 23 {
			y = 1
		}
		for j, value := range []float64{x, y, x / 1000} {
			b.Add(observation.Row{Levels: []string{string(rune('a' + j))}, Block: fmt.Sprint(i), Value: value,
				Metric: observation.Metric{Name: "figure", Unit: "IOPS"}})
		}
	}
	r := run(t, b.Table(), compare.Options{Paired: true})
	if got := r.Rankings[0].String(); got != "a ? b > c" || r.Comparisons[0].Verdict != verdict.Better {
		t.Errorf("%s; %s", got, r.Comparisons[0].Sentence)
	}
}

// TestContexts: levels are compared at each level of the other factors, each a family of its own.
func TestContexts(t *testing.T) {
	t.Parallel()
	b := observation.NewBuilder([]string{"size", "provider"}, "", "")
	for i := range 12 {
		for _, size := range []string{"4k", "64k"} {
			for j, p := range []string{"a", "b", "c"} {
				b.Add(observation.Row{Levels: []string{size, p}, Metric: observation.Metric{Name: "figure", Unit: "IOPS"},
					Value: float64(100*(j+1) + i)})
			}
		}
	}
	r := run(t, b.Table(), compare.Options{Factor: "provider"})
	if len(r.Comparisons) != 6 || r.Comparisons[0].Context[0] != (compare.Level{Factor: "size", Level: "4k"}) ||
		r.Comparisons[3].Family != 3 {
		t.Errorf("%+v", r.Comparisons)
	}
	if _, err := compare.Run(b.Table(), compare.Options{}); err == nil ||
		!strings.Contains(err.Error(), "want --factor with one of size, provider") {
		t.Error(err)
	}
}

// TestManyLevels: the pairs of many levels are too many, a comparison with one of them is not, nor is a history.
func TestManyLevels(t *testing.T) {
	t.Parallel()
	s := simulated{medians: map[string]float64{}, trial: 1, unit: "IOPS", within: 0.01}
	for i := range 500 {
		name := fmt.Sprint("run-", i)
		s.medians[name], s.order = 100, append(s.order, name)
	}
	if _, err := compare.Run(s.table(), compare.Options{}); err == nil || !strings.Contains(err.Error(), "--against") {
		t.Error(err)
	}
	if r := run(t, s.table(), compare.Options{Against: "run-0"}); len(r.Comparisons) != 499 {
		t.Errorf("%d comparisons", len(r.Comparisons))
	}
	r, err := compare.Histories(s.table(), compare.Options{})
	if err != nil || len(r.History) != 1 || len(r.History[0].Changes) > 0 {
		t.Errorf("%+v, %v", r, err)
	}
}

func TestInvalidOptions(t *testing.T) {
	t.Parallel()
	s := simulated{medians: map[string]float64{"a": 1, "b": 1}, order: []string{"a", "b"}, trial: 5, unit: "IOPS"}
	for _, tt := range []struct {
		o    compare.Options
		says string
	}{
		{compare.Options{Factor: "x"}, `no factor "x"`},
		{compare.Options{Against: "c"}, `--against: provider has no level "c": want one of a, b`},
		{compare.Options{AA: [][2]string{{"a", "a"}}}, "named twice"},
		{compare.Options{AA: [][2]string{{"a", "b"}}, Against: "b"}, `--against: "b" is the second label of "a" (--aa)`},
		{compare.Options{Margin: -1}, "invalid --margin"},
		{compare.Options{Directions: map[string]verdict.Direction{"x": verdict.MoreIsBetter}}, `there is no metric "x"`},
		{compare.Options{Limits: []compare.Limit{{Metric: "figure", Max: 1, Unit: "ms"}}},
			"is in IOPS, which has no relation"},
		{compare.Options{Limits: []compare.Limit{{Levels: map[string]string{"provider": "z"}, Metric: "figure", Max: 1}}},
			"no cell has this metric and these levels"},
	} {
		if _, err := compare.Run(s.table(), tt.o); err == nil || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("error %v, want %q", err, tt.says)
		}
	}
}

func TestParse(t *testing.T) {
	t.Parallel()
	l, err := compare.ParseLimit("provider=a, b,metric=write IOPS, fsync=1,max=5e3 IOPS", []string{"provider"})
	if err != nil || l.Levels["provider"] != "a, b" || l.Metric != "write IOPS, fsync=1" || l.Max != 5000 ||
		l.Unit != "IOPS" {
		t.Errorf("%+v, %v", l, err)
	}
	for _, bad := range []string{"", "max", "provider=a", "max=0", "max=-1", "max=x", "colour=red,max=1"} {
		if _, err := compare.ParseLimit(bad, []string{"provider"}); err == nil {
			t.Errorf("%q has no error", bad)
		}
	}
	if _, err := compare.ParseDirections([]string{"up"}); err == nil {
		t.Error("no error")
	}
}

// BenchmarkHundredThousand compares 100 000 trials.
func BenchmarkHundredThousand(b *testing.B) {
	s := simulated{medians: map[string]float64{"a": 100, "b": 101, "c": 102, "d": 103},
		order: []string{"a", "b", "c", "d"}, occasions: 5, trial: 5000, within: 0.1, between: 0.05, unit: "IOPS"}
	table := s.table()
	for b.Loop() {
		if _, err := compare.Run(table, compare.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
