package dataset

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestProgress: spans added one by one are joined as Join joins them, in order of their ends and in any order.
func TestProgress(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 500 {
		spans := make([]Span, random.IntN(40))
		for i := range spans {
			from := op.Time(random.IntN(200))
			spans[i] = Span{from, from + op.Time(random.IntN(10))}
			if random.IntN(30) == 0 {
				spans[i].To = math.MaxInt64
			}
		}
		if round%2 == 0 {
			slices.SortFunc(spans, func(a, b Span) int { return cmp.Compare(a.To, b.To) })
		}
		var p Progress
		for _, s := range spans {
			p.Add(s)
		}
		if got, want := p.Union(), Join(slices.Clone(spans)); !slices.Equal(got, want) {
			t.Fatalf("of %v: %v, want %v", spans, got, want)
		}
	}
}
