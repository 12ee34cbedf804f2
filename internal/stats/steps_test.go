package stats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// TestResampler: the quantile of a replicate is that of the values of its steps, sorted, however far it is from the
// quantile of all.
func TestResampler(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps int
		value func(random *rand.Rand, step int) int64
	}{
		{"independent", 300, func(random *rand.Rand, _ int) int64 { return random.Int64N(1000) }},
		{"a slow part", 300, func(random *rand.Rand, step int) int64 {
			if step > 270 {
				return 1e6 + random.Int64N(1e6)
			}
			return random.Int64N(1e6)
		}},
		{"all equal", 20, func(*rand.Rand, int) int64 { return 7 }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(5, 6))
			steps := make([]Counts, tt.steps)
			for i := range steps {
				for range random.IntN(40) { // some have none
					steps[i] = append(steps[i], Count{tt.value(random, i), 1 + random.Int64N(3)})
				}
			}
			for _, q := range []float64{0.01, 0.5, 0.9, 0.99} {
				r := newResampler(StepsOf(steps), q, 7)
				ours, theirs := rand.New(rand.NewPCG(8, 9)), rand.New(rand.NewPCG(8, 9))
				for i := range 200 {
					if got, want := r.draw(ours), drawn(theirs, steps, 7, q); got != want {
						t.Fatalf("q %v, replicate %d: %d, want %d", q, i, got, want)
					}
				}
			}
		})
	}
}

// drawn is the quantile of a replicate by sorting its values.
func drawn(random *rand.Rand, steps []Counts, length int, q float64) int64 {
	var all []int64
	for left := len(steps); left > 0; left -= length {
		from := random.IntN(len(steps) - length + 1)
		for _, c := range slices.Concat(steps[from : from+min(length, left)]...) {
			all = append(all, slices.Repeat([]int64{c.Value}, int(c.N))...)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[hist.Rank(q, int64(len(all)))-1]
}

// TestSteps: steps that are added from a table have the quantiles of their values, with others in the table.
func TestSteps(t *testing.T) {
	for _, tt := range []struct {
		threes int64
		want   string
	}{{2, "3 4 [3 3 5 9] [1 1 3]"}, {1, "3 3 [3 5 9 9] [1 1 3]"}} {
		r := Rank(Counts{{5, 1}, {3, tt.threes}, {9, 1}, {3, 1}})
		s := NewSteps(&r, 3)
		s.Begin()
		s.Add(&r, 1, 2)
		s.Begin()
		s.Begin()
		s.Add(&r, 2, 3)
		s.Add(&r, 0, 1)
		if got := fmt.Sprint(s.Len(), s.Total(), s.Quantiles(0, 0.5, 0.75, 1), s.ends); got != tt.want {
			t.Errorf("%d: %s", tt.threes, got)
		}
	}
	if got := (&Steps{}).Quantiles(0.5); got != nil {
		t.Errorf("of none: %v", got)
	}
}
