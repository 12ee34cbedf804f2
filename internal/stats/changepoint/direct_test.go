package changepoint

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// directBest is best by its definition: the sums of all pairs, for each split anew.
func directBest(x []float64, least int) (at int, q float64) {
	distances := func(a, b []float64) (sum float64) {
		for _, u := range a {
			for _, v := range b {
				sum += math.Abs(u - v)
			}
		}
		return sum
	}
	n := float64(len(x))
	mean := distances(x, x) / (n * n)
	if !(mean > 0) {
		return 0, 0
	}
	for i := least; i <= len(x)-least; i++ {
		l, r, a, b := x[:i], x[i:], float64(i), n-float64(i)
		e := 2*distances(l, r)/(a*b) - distances(l, l)/(a*a) - distances(r, r)/(b*b)
		if w := e * a * b / n / mean; w > q*(1+1e-12) {
			at, q = i, w
		}
	}
	return at, q
}

// directFind is the search of Find by its definition, with the same permutations: at its own level, and with every
// statistic by directBest.
func directFind(values []float64, o Options) []Change {
	s := &search{Options: o, values: scale(values), random: rand.New(rand.NewPCG(o.Seed, 0x6368616e6765))}
	best := func(parts [][]float64, from []int) (at int, q float64) {
		for i, x := range parts {
			if len(x) < 2*o.MinSegment {
				continue
			}
			if a, b := directBest(x, o.MinSegment); a > 0 && (at == 0 || b > q) {
				at, q = from[i]+a, b
			}
		}
		return at, q
	}
	bounds, least := []int{0, len(values)}, 0.0
	var changes []Change
	for {
		parts := make([][]float64, len(bounds)-1)
		for i := range parts {
			parts[i] = clip(s.values[bounds[i]:bounds[i+1]])
		}
		at, q := best(parts, bounds)
		if at == 0 {
			break
		}
		p, as := 0.0, 1
		for range o.Permutations {
			for _, x := range parts {
				s.random.Shuffle(len(x), func(i, j int) { x[i], x[j] = x[j], x[i] })
			}
			if _, other := best(parts, bounds); other >= q*(1-1e-9) {
				as++
			}
			if p = float64(as) / float64(o.Permutations+1); p > o.Alpha*(1-endShare) {
				break
			}
		}
		if p > o.Alpha*(1-endShare) {
			break
		}
		least = max(least, p/(1-endShare))
		changes = append(changes, Change{Index: at, P: least})
		bounds = append(bounds, at)
		slices.Sort(bounds)
	}
	if p, ok := s.end(bounds, o.Alpha*endShare); ok {
		changes = append(changes, Change{Index: len(values) - o.MinSegment, P: p / endShare})
	}
	slices.SortFunc(changes, func(a, b Change) int { return cmp.Compare(a.Index, b.Index) })
	return changes
}

// TestDirect: Find and a search at a lower level than that at which a series was divided find what the definition
// finds, in series of every kind: shifts, ties, outliers, values that are not positive.
func TestDirect(t *testing.T) {
	random := rand.New(rand.NewPCG(14, 14))
	found := 0
	for i := range 60 {
		n := 10 + random.IntN(40)
		x := history(random, n, map[int]float64{random.IntN(n): 6 * random.Float64(), random.IntN(n): -4 * random.Float64()})
		for j := range x {
			switch i % 4 {
			case 1:
				x[j] = math.Round(x[j]/50) * 50
			case 2:
				x[j] -= 1000 // not positive
			case 3:
				x[j] += 1e9 // little of it varies
			}
		}
		if i%5 == 0 {
			x[random.IntN(n)] *= 3
		}
		o := Options{Seed: uint64(i), Permutations: 199}.WithDefaults()
		for _, alpha := range []float64{0.03, 0.01} {
			own := o
			own.Alpha = alpha
			got, want := divide(x, o).changes(alpha), directFind(x, own)
			same := slices.EqualFunc(got, want, func(a, b Change) bool { return a.Index == b.Index && a.P == b.P })
			if !same {
				t.Errorf("series %d at %g: %+v, want %+v", i, alpha, got, want)
			}
			found += len(got)
		}
	}
	if found < 60 {
		t.Errorf("%d changes found in all: the test compares too few", found)
	}
}

// BenchmarkFindAll searches 200 metrics of 100 runs, each of which changes.
func BenchmarkFindAll(b *testing.B) {
	random := rand.New(rand.NewPCG(12, 12))
	series := make([][]float64, 200)
	for i := range series {
		series[i] = history(random, 100, map[int]float64{50: 3})
	}
	for b.Loop() {
		if _, err := FindAll(series, Options{Seed: 1}); err != nil {
			b.Fatal(err)
		}
	}
}
