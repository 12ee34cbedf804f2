package selector

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func rng(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// TestParse checks the notation of each kind.
func TestParse(t *testing.T) {
	tests := []struct {
		text string
		want Spec
	}{
		{"c(3)", Spec{Kind: Constant, Low: 3, High: 3}},
		{"7", Spec{Kind: Constant, Low: 7, High: 7}},
		{" u( 1 , 32 ) ", Spec{Kind: Uniform, Low: 1, High: 32}},
		{"r(1,50)", Spec{Kind: Range, Low: 1, High: 50}},
		{"2-9", Spec{Kind: Range, Low: 2, High: 9}},
		{"s(1,10000)", Spec{Kind: Sequential, Low: 1, High: 10000}},
		{"h(1|2|30,5|9|70)", Spec{Kind: Histogram, Low: 1, High: 9, Buckets: []Bucket{{1, 2, 30}, {5, 9, 70}}}},
		{"zipf(1,1000000000,0.99)", Spec{Kind: Zipf, Low: 1, High: 1e9, Exponent: 0.99}},
		{"hot(1,100,20%,80%)", Spec{Kind: Hotspot, Low: 1, High: 100, HotKeys: 0.2, HotDraws: 0.8}},
	}
	for _, tt := range tests {
		t.Run(tt.text, func(t *testing.T) {
			got, err := Parse(tt.text)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

// TestParseRefuses checks that invalid selectors are an error.
func TestParseRefuses(t *testing.T) {
	for _, text := range []string{
		"", "c", "c()", "c(0)", "c(-1)", "u(5,1)", "u(1)", "u(1,2,3)", "r(1,2", "x(1,2)", "r(0,5)", "h()", "h(1|2)",
		"h(3|2|1)", "h(1|2|0)",
		"zipf(1,9,0)", "zipf(1,9,x)", "zipf(1,9,NaN)", "hot(1,9,0%,80%)", "hot(1,9,20%,101%)",
		"u(1,99999999999999999999)", "c(5)KB", "9-2", "<1>",
	} {
		if s, err := Parse(text); err == nil {
			t.Errorf("%q was taken for %+v", text, s)
		} else if !strings.Contains(err.Error(), "selector") {
			t.Errorf("%q: %v does not say what it is about", text, err)
		}
	}
}

// TestParseSizes checks the range and the mean of sizes in each unit.
func TestParseSizes(t *testing.T) {
	tests := []struct {
		text      string
		low, high int64 // bytes
		mean      float64
	}{
		{"c(64)KB", 64000, 64000, 64000}, {"c(4)KiB", 4096, 4096, 4096}, {"u(1,3)MB", 1e6, 3e6, 2e6},
		{"c(1)GiB", 1 << 30, 1 << 30, 1 << 30},
		{"c(512)B", 512, 512, 512}, {"c(0)B", 0, 0, 0}, {"h(1|1|1,4|4|3)kb", 1000, 4000, 3250},
	}
	for _, tt := range tests {
		s, err := ParseSizes(tt.text)
		if err != nil {
			t.Error(err)
			continue
		}
		if got := s.Low * s.Unit; got != tt.low || s.Max() != tt.high || math.Abs(s.Mean()-tt.mean) > 1e-6 {
			t.Errorf("%s: %d to %d, mean %g; want %d to %d, mean %g", tt.text, got, s.Max(), s.Mean(), tt.low,
				tt.high, tt.mean)
		}
	}
	for _, text := range []string{"c(64)", "64", "1-3", "h(1|1|1)", "c(64)XB", "c(9007199254740992)GiB", "c(64", "KB"} {
		if _, err := ParseSizes(text); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
	const forms = "want a selector with a unit, such as c(4)KB, c(4)KiB or u(1,8)MB"
	for text, want := range map[string]string{"4KB": "want a selector with a unit: c(4)KB", "4X": forms, "32Ki": forms,
		"4-8KB": forms, "64": "missing unit"} {
		if _, err := ParseSizes(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestDivisionIsAPartition checks that the parts of a division are disjoint, in order and complete, and that
// their lengths differ by at most one.
func TestDivisionIsAPartition(t *testing.T) {
	r := rng(1)
	for range 2000 {
		n, w := r.Int64N(3000)+1, r.IntN(600)+1
		next, least, most := int64(0), n, int64(0)
		for i := range w {
			offset, length := Part{i, w}.Slice(n)
			if offset != next {
				t.Fatalf("part %d of %d of %d items begins at %d, want %d", i, w, n, offset, next)
			}
			next += length
			least, most = min(least, length), max(most, length)
		}
		if next != n || most-least > 1 {
			t.Fatalf("%d parts of %d items cover %d, of %d to %d each", w, n, next, least, most)
		}
	}
}

// TestDivisionIsCOSBenchs checks COSBench's formula with its own example: 10 items for 4 workers.
func TestDivisionIsCOSBenchs(t *testing.T) {
	var got [][2]int64
	for i := range 4 {
		o, l := Part{i, 4}.Slice(10)
		got = append(got, [2]int64{o, l})
	}
	if d := cmp.Diff([][2]int64{{0, 3}, {3, 3}, {6, 2}, {8, 2}}, got); d != "" {
		t.Error(d)
	}
}

// TestCoverage checks that every selector draws exactly its numbers and, when divided, each worker exactly
// those of its part.
func TestCoverage(t *testing.T) {
	for _, text := range []string{"c(5)", "u(3,40)", "r(3,40)", "s(3,40)", "h(3|5|1,9|9|2,30|40|1)", "zipf(3,40,0.5)",
		"zipf(3,40,1)", "hot(3,40,20%,50%)"} {
		for _, workers := range []int{1, 3, 38} {
			s, err := Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			for i := range workers {
				part, any := Part{i, workers}.Of(s)
				if !any {
					continue
				}
				if got, want := drawn(t, part), allowed(part); !slices.Equal(got, want) {
					t.Errorf("%s, worker %d of %d drew %v, want %v", text, i, workers, got, want)
				}
			}
		}
	}
}

func allowed(s Spec) (all []int64) {
	for v := s.Low; v <= s.High; v++ {
		in := s.Kind != Histogram
		for _, b := range s.Buckets {
			in = in || v >= b.Low && v <= b.High
		}
		if in {
			all = append(all, v)
		}
	}
	return all
}

func drawn(t *testing.T, s Spec) (all []int64) {
	t.Helper()
	p, err := s.Picker(new(Cursor), rng(7))
	if err != nil {
		t.Fatal(err)
	}
	seen := map[int64]bool{}
	for range 20000 {
		seen[p.Next()] = true
	}
	for v := range seen {
		all = append(all, v)
	}
	slices.Sort(all)
	return all
}

// TestOrder checks the order of range and sequential selectors, with own and shared cursors.
func TestOrder(t *testing.T) {
	take := func(p Picker, n int) (got []int64) {
		for range n {
			got = append(got, p.Next())
		}
		return got
	}
	r := Spec{Kind: Range, Low: 4, High: 6}
	own, _ := r.Picker(nil, nil)
	if d := cmp.Diff([]int64{4, 5, 6, 4, 5}, take(own, 5)); d != "" {
		t.Errorf("range: %s", d)
	}
	s := Spec{Kind: Sequential, Low: 1, High: 4}
	shared := new(Cursor)
	a, _ := s.Picker(shared, nil)
	b, _ := s.Picker(shared, nil)
	if d := cmp.Diff([]int64{1, 2, 3, 4, 1}, append(take(a, 2), take(b, 3)...)); d != "" {
		t.Errorf("two workers at one cursor: %s", d)
	}
	if _, err := s.Picker(nil, nil); err == nil {
		t.Error("a sequential selector without a cursor was taken")
	}
}

// TestFrequencies checks the frequencies of draws with Pearson's χ² test, at the 99.9 % quantile of χ² with k
// degrees of freedom by the approximation of Wilson and Hilferty.
func TestFrequencies(t *testing.T) {
	const draws = 200000
	zipf := func(n int, s float64) []float64 {
		p := make([]float64, n)
		for k := range p {
			p[k] = math.Pow(float64(k+1), -s)
		}
		return p
	}
	tests := []struct {
		name string
		draw func(*rand.Rand) int64 // from 0
		p    []float64
	}{
		{"zipf 0.99", func(r *rand.Rand) int64 { z := newRanks(50, 0.99); return z.draw(r) - 1 }, zipf(50, 0.99)},
		{"zipf 1", func(r *rand.Rand) int64 { z := newRanks(50, 1); return z.draw(r) - 1 }, zipf(50, 1)},
		{"zipf 0.3", func(r *rand.Rand) int64 { z := newRanks(9, 0.3); return z.draw(r) - 1 }, zipf(9, 0.3)},
		{"zipf 2.5", func(r *rand.Rand) int64 { z := newRanks(6, 2.5); return z.draw(r) - 1 }, zipf(6, 2.5)},
		{"zipf of one", func(r *rand.Rand) int64 { z := newRanks(1, 0.99); return z.draw(r) - 1 }, zipf(1, 0.99)},
		{"histogram", func(r *rand.Rand) int64 {
			return newHistogram(Spec{Buckets: []Bucket{{0, 1, 30}, {2, 2, 70}}}, r).Next()
		}, []float64{15, 15, 70}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, sum, counts := rng(3), 0.0, make([]float64, len(tt.p))
			for _, p := range tt.p {
				sum += p
			}
			for range draws {
				counts[tt.draw(r)]++
			}
			chi := 0.0
			for i, p := range tt.p {
				want := p / sum * draws
				chi += (counts[i] - want) * (counts[i] - want) / want
			}
			k := float64(len(tt.p) - 1)
			if limit := k * math.Pow(1-2/(9*k)+3.09*math.Sqrt(2/(9*k)), 3); k > 0 && chi > limit {
				t.Errorf("χ² = %.1f > %.1f", chi, limit)
			}
		})
	}
}

// TestHotspotShares checks the shares of the hot keys.
func TestHotspotShares(t *testing.T) {
	s, _ := Parse("hot(1,1000,20%,80%)")
	p, _ := s.Picker(nil, rng(5))
	h, counts := p.(*hotspot), map[int64]int{}
	for range 100000 {
		counts[p.Next()]++
	}
	hot := 0
	for i := range h.hot {
		hot += counts[1+h.scatter.At(i)]
	}
	if h.hot != 200 || hot < 79000 || hot > 81000 {
		t.Errorf("%d keys got %d of 100000 draws, want 200 with 80000", h.hot, hot)
	}
}

// TestScatterIsABijection checks that a Scatter is a bijection.
func TestScatterIsABijection(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 10, 97, 1000, 4096, 65537} {
		s, seen := NewScatter(n), make([]bool, n)
		for i := range n {
			if k := s.At(i); k < 0 || k >= n || seen[k] {
				t.Fatalf("n = %d: %d goes to %d, which is outside or taken", n, i, k)
			} else {
				seen[k] = true
			}
		}
	}
}

// TestBillionKeys checks that draws from a billion keys do not allocate memory per key.
func TestBillionKeys(t *testing.T) {
	for _, text := range []string{"u(1,1000000000)", "zipf(1,1000000000,0.99)", "hot(1,1000000000,1%,90%)",
		"r(1,1000000000)"} {
		s, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		r := rng(1)
		allocs := testing.AllocsPerRun(10, func() {
			p, err := s.Picker(nil, r)
			if err != nil {
				t.Fatal(err)
			}
			for range 1000 {
				if v := p.Next(); v < 1 || v > 1e9 {
					t.Fatalf("%s drew %d", text, v)
				}
			}
		})
		if allocs > 2 {
			t.Errorf("%s: %v allocations for 1000 draws", text, allocs)
		}
	}
}

// FuzzParse checks that an accepted selector draws numbers in its range.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"c(1)", "u(1,2)", "r(1,9)", "1-5", "h(1|2|3,4|5|6)KB", "zipf(1,9,1)",
		"hot(1,9,20%,80%)", "c(64)KiB"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := ParseSizes(text)
		if err != nil {
			return
		}
		p, err := s.Picker(new(Cursor), rng(1))
		if err != nil {
			t.Fatalf("%q was taken, but does not draw: %v", text, err)
		}
		for range 50 {
			if v := p.Next(); v < s.Low || v > s.High {
				t.Fatalf("%q drew %d outside %d to %d", text, v, s.Low, s.High)
			}
		}
	})
}

// TestStride checks that by strides each number belongs to one worker, which is the same for any range.
func TestStride(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, workers := range []int{1, 3, 64} {
		for _, s := range []Spec{{Kind: Uniform, Low: 1, High: 100}, {Kind: Range, Low: 31, High: 50},
			{Kind: Constant, Low: 7, High: 7},
			{Kind: Zipf, Low: 5, High: 90, Exponent: 1},
			{Kind: Hotspot, Low: 1, High: 200, HotKeys: 0.2, HotDraws: 0.8}} {
			seen := map[int64]bool{}
			for i := range workers {
				p, any, err := Part{Index: i, Count: workers}.Stride(s, rng)
				if err != nil {
					t.Fatal(err)
				}
				for range 20_000 {
					if !any {
						break
					}
					n := p.Next()
					if n < s.Low || n > s.High || n%int64(workers) != int64(i) {
						t.Fatalf("worker %d of %d draws %d of %d to %d", i, workers, n, s.Low, s.High)
					}
					seen[n] = true
				}
			}
			if int64(len(seen)) != s.Size() {
				t.Errorf("%d workers, kind %d: %d of %d numbers are drawn", workers, s.Kind, len(seen), s.Size())
			}
		}
	}
	for _, s := range []Spec{{Kind: Sequential, Low: 1, High: 9}, {Kind: Histogram, Low: 1, High: 9,
		Buckets: []Bucket{{1, 9, 1}}}, {Kind: Uniform, Low: 9, High: 1}} {
		if _, _, err := (Part{Index: 0, Count: 2}).Stride(s, rng); err == nil {
			t.Errorf("kind %d was divided", s.Kind)
		}
	}
}
