package compare_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// blocks draws a study of two providers, with one trial of each in every block, a CV of 5 %, and a block effect of
// 20 %.
func blocks(n int, shift float64, seed uint64) *observation.Table {
	random := rand.New(rand.NewPCG(seed, 2))
	b := observation.NewBuilder([]string{"provider"}, "", "block")
	b.Numbered = true
	for block := range n {
		effect := 0.2 * random.NormFloat64()
		for i, level := range []string{"a", "b"} {
			x := 1000 * math.Exp(effect+0.05*random.NormFloat64())
			if i == 1 {
				x *= 1 + shift
			}
			b.Add(observation.Row{Levels: []string{level}, Block: fmt.Sprint(block), Repetition: 1, Value: x,
				Metric: observation.Metric{Name: "figure", Unit: "IOPS"}})
		}
	}
	return b.Table()
}

// count runs 200 studies of 10 blocks: those with p < 0.05, and those whose verdict is a difference.
func count(t *testing.T, shift float64) (p, words int) {
	t.Helper()
	for seed := range uint64(200) {
		c := run(t, blocks(10, shift, seed), compare.Options{Paired: true}).Comparisons[0]
		if *c.P < verdict.Alpha {
			p++
		}
		if c.Verdict == verdict.Better || c.Verdict == verdict.Worse || c.Verdict == verdict.Different {
			words++
		}
	}
	return p, words
}

// TestFalsePositives: of 200 studies without a difference about 10 have p < 0.05, and hardly one a verdict of a
// difference, which must be beyond the margin too.
func TestFalsePositives(t *testing.T) {
	t.Parallel()
	p, words := count(t, 0)
	if p > 18 || words > 4 {
		t.Errorf("%d with p < 0.05, %d with a verdict, of 200", p, words)
	}
	t.Logf("no difference: %d of 200 have p < 0.05, %d a verdict of a difference", p, words)
}

// TestPower: a shift of 10 % has p < 0.05 in 80 % of the studies or more. The verdict wants more: the whole interval
// beyond the margin of 5 %.
func TestPower(t *testing.T) {
	t.Parallel()
	p, words := count(t, 0.1)
	if p < 160 {
		t.Errorf("%d of 200 have p < 0.05", p)
	}
	t.Logf("10 %%: %d of 200 have p < 0.05, %d the verdict better at a margin of 5 %%", p, words)
}
