package hist

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func of(t *testing.T, values ...int64) *Histogram {
	t.Helper()
	h := New()
	for _, v := range values {
		must(t, h.Record(v))
	}
	return h
}

// draw gives n values of several shapes, small and large.
func draw(shape string, n int) []int64 {
	r := rand.New(rand.NewPCG(7, 11))
	v := make([]int64, n)
	for i := range v {
		switch shape {
		case "uniform":
			v[i] = r.Int64N(1e10)
		case "exponential":
			v[i] = int64(r.ExpFloat64() * 1e6)
		case "lognormal":
			v[i] = int64(math.Exp(12 + 3*r.NormFloat64()))
		case "bimodal":
			v[i] = 50_000 + r.Int64N(1000)
			if r.IntN(100) == 0 {
				v[i] = 2e9
			}
		case "tiny":
			v[i] = r.Int64N(3000)
		}
	}
	return v
}

// TestQuantile compares with the sorted sample: never below the sample
// quantile by its definition, above by at most RelativeError.
func TestQuantile(t *testing.T) {
	for _, shape := range []string{"uniform", "exponential", "lognormal", "bimodal", "tiny"} {
		for _, n := range []int{1, 2, 3, 10, 100, 999, 100_000} {
			v := draw(shape, n)
			h := of(t, v...)
			slices.Sort(v)
			for _, q := range []float64{-1, 0, 1e-9, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 0.9999, 1, 2} {
				want := v[Rank(q, int64(n))-1]
				got, ok := h.Quantile(q)
				if !ok || got < want || float64(got-want) > RelativeError*float64(want) {
					t.Errorf("%s n=%d q=%v: got %d, want %d", shape, n, q, got, want)
				}
			}
			var sum int64
			for _, x := range v {
				sum += x
			}
			if h.N() != int64(n) || h.Sum() != sum || h.Min() != v[0] || h.Max() != v[n-1] {
				t.Errorf("%s n=%d: n %d sum %d min %d max %d", shape, n, h.N(), h.Sum(), h.Min(), h.Max())
			}
		}
	}
}

func TestRank(t *testing.T) {
	for _, c := range []struct {
		q    float64
		n    int64
		want int64
	}{
		{0.5, 10, 5}, {0.5, 11, 6}, {0.99, 100, 99}, {0.999, 1000, 999}, {0.07, 100, 7},
		{0.29, 100, 29}, {0.991, 100, 100}, {0, 5, 1}, {1, 5, 5}, {7, 5, 5}, {-3, 5, 1}, {math.NaN(), 5, 1},
	} {
		if got := Rank(c.q, c.n); got != c.want {
			t.Errorf("Rank(%v, %d) = %d, want %d", c.q, c.n, got, c.want)
		}
	}
}

func TestEmpty(t *testing.T) {
	h := New()
	if _, ok := h.Quantile(0.5); ok {
		t.Error("an empty histogram has a median")
	}
	if _, ok := of(t, 1).Quantile(math.NaN()); ok {
		t.Error("there is a NaN quantile")
	}
	if !math.IsNaN(h.Mean()) {
		t.Errorf("mean %v", h.Mean())
	}
	if err := h.SetExact(0, 0, 0); err == nil {
		t.Error("an empty histogram took extremes")
	}
}

func TestRefused(t *testing.T) {
	h := New()
	for name, err := range map[string]error{
		"negative value": h.Record(-1),
		"negative count": h.RecordN(1, -1),
		"sum overflows":  h.RecordN(Highest, math.MaxInt64),
	} {
		if err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if h.N() != 0 || h.Sum() != 0 {
		t.Errorf("refused values were counted: n %d sum %d", h.N(), h.Sum())
	}
}

// TestSaturation: what is beyond the range is kept exactly in n, sum and max,
// and quantiles among it are the maximum, not the end of the range.
func TestSaturation(t *testing.T) {
	h := of(t, 10, 20, Highest, Highest+1, 5*Highest)
	if h.Saturated() != 2 || h.Max() != 5*Highest || h.N() != 5 {
		t.Errorf("saturated %d, max %d, n %d", h.Saturated(), h.Max(), h.N())
	}
	for q, want := range map[float64]int64{0.4: 20, 0.8: 5 * Highest, 1: 5 * Highest} {
		if got, _ := h.Quantile(q); got != want {
			t.Errorf("q %v = %d, want %d", q, got, want)
		}
	}
	got, _ := h.Quantile(0.6)
	if got < Highest || float64(got-Highest) > RelativeError*float64(Highest) {
		t.Errorf("median %d, want about %d", got, Highest)
	}
}

// TestMerge: merging slices is the same as recording all at once.
func TestMerge(t *testing.T) {
	v := append(draw("lognormal", 5000), 3*Highest)
	whole, merged := of(t, v...), New()
	must(t, merged.Merge(nil))
	must(t, merged.Merge(New()))
	for part := range slices.Chunk(v, 37) {
		must(t, merged.Merge(of(t, part...)))
	}
	a, err := json.Marshal(whole)
	must(t, err)
	b, err := json.Marshal(merged)
	must(t, err)
	if string(a) != string(b) {
		t.Errorf("merged differs:\n%s\n%s", a, b)
	}
	c := whole.Clone()
	must(t, c.Record(1))
	if whole.N() != int64(len(v)) || c.N() != whole.N()+1 {
		t.Error("a clone shares its counts")
	}
}

func TestEncoding(t *testing.T) {
	for _, v := range [][]int64{nil, {0}, {1, 1, 1}, draw("lognormal", 3000), {7 * Highest}} {
		h := of(t, v...)
		b, err := json.Marshal(h)
		must(t, err)
		var d Histogram
		must(t, json.Unmarshal(b, &d))
		again, err := json.Marshal(&d)
		must(t, err)
		if string(b) != string(again) {
			t.Errorf("%d values:\n%s\n%s", len(v), b, again)
		}
		must(t, d.Record(5)) // still usable
	}
}

// TestForeignReader: the HDR text is what other HdrHistogram readers take.
func TestForeignReader(t *testing.T) {
	v := draw("exponential", 1000)
	h := of(t, v...)
	b, err := json.Marshal(h)
	must(t, err)
	var e encoded
	must(t, json.Unmarshal(b, &e))
	dense, err := hdrhistogram.Decode([]byte(e.HDR))
	must(t, err)
	slices.Sort(v)
	got, want := dense.ValueAtPercentile(50), v[499]
	if dense.TotalCount() != 1000 || math.Abs(float64(got-want)) > RelativeError*float64(want) {
		t.Errorf("n %d, median %d, want %d", dense.TotalCount(), got, want)
	}
}

func TestDecodeRefuses(t *testing.T) {
	other := hdrhistogram.NewPacked(1, 1000, 2)
	must(t, other.RecordValue(5))
	foreign, err := other.EncodeV2()
	must(t, err)
	good, err := json.Marshal(of(t, 5))
	must(t, err)
	var e encoded
	must(t, json.Unmarshal(good, &e))
	for name, text := range map[string]string{
		"no json":            `{`,
		"no buckets":         `{"n":1,"sum":5,"min":5,"max":5}`,
		"not base64":         `{"n":1,"sum":5,"min":5,"max":5,"hdr":"!!"}`,
		"other precision":    `{"n":1,"sum":5,"min":5,"max":5,"hdr":"` + string(foreign) + `"}`,
		"wrong count":        `{"n":2,"sum":5,"min":5,"max":5,"hdr":"` + e.HDR + `"}`,
		"min above max":      `{"n":1,"sum":5,"min":6,"max":5,"hdr":"` + e.HDR + `"}`,
		"negative count":     `{"n":-1}`,
		"saturated too many": `{"n":1,"sum":5,"min":5,"max":5,"saturated":2,"hdr":"` + e.HDR + `"}`,
	} {
		var h Histogram
		if err := json.Unmarshal([]byte(text), &h); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func TestSetExact(t *testing.T) {
	h := of(t, 100, 200)
	for _, c := range []struct {
		sum, lo, hi int64
		ok          bool
	}{{310, 99, 210, true}, {310, 211, 210, false}, {10, 99, 210, false}, {1000, 99, 210, false}, {310, -1, 210,
		false}} {
		if err := h.SetExact(c.sum, c.lo, c.hi); (err == nil) != c.ok {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if h.Sum() != 310 || h.Min() != 99 || h.Max() != 210 {
		t.Errorf("sum %d min %d max %d", h.Sum(), h.Min(), h.Max())
	}
}

// TestBuckets: the edges tile the line and agree with the library's.
func TestBuckets(t *testing.T) {
	h := of(t, 0, 1, 2047, 2048, 2049, 4095, 4096, 1e6, 1e9, Highest)
	library := hdrhistogram.New(1, Highest, Digits)
	last, n := int64(-1), int64(0)
	h.Buckets(func(b Bucket) bool {
		if b.Low <= last || b.High < b.Low || b.Count < 1 {
			t.Errorf("bucket %+v after %d", b, last)
		}
		if !library.ValuesAreEquivalent(b.Low, b.High) || library.ValuesAreEquivalent(b.High, b.High+1) ||
			library.ValuesAreEquivalent(b.Low, b.Low-1) && b.Low > 0 {
			t.Errorf("bucket %+v: its edge is not the library's", b)
		}
		last, n = b.High, n+b.Count
		return true
	})
	if n != h.N() {
		t.Errorf("buckets hold %d of %d", n, h.N())
	}
}

// TestSize: a time slice of a busy second stays small.
func TestSize(t *testing.T) {
	h := of(t, draw("exponential", 100_000)...)
	if n := h.buckets.GetMemorySize(); n > 64<<10 {
		t.Errorf("100 000 values take %d bytes", n)
	}
	if n := of(t, draw("bimodal", 1000)...).buckets.GetMemorySize(); n > 4<<10 {
		t.Errorf("1000 values take %d bytes", n)
	}
}

func FuzzDecode(f *testing.F) {
	b, err := json.Marshal(&Histogram{buckets: newBuckets()})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(`{"n":1,"sum":5,"min":5,"max":5,"hdr":"HISTFAAAAB542pNpmSzMwMDAxAABzFCaEUzOmNZg/wEiwAgAUKsDAg=="}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var h Histogram
		if json.Unmarshal(b, &h) != nil {
			return
		}
		if v, ok := h.Quantile(0.5); ok && (v < h.Min() || v > h.Max()) {
			t.Errorf("median %d outside [%d, %d]", v, h.Min(), h.Max())
		}
	})
}

func BenchmarkRecord(b *testing.B) {
	v := draw("exponential", 1<<16)
	h := New()
	i := 0
	for b.Loop() {
		if err := h.Record(v[i&(1<<16-1)]); err != nil {
			b.Fatal(err)
		}
		i++
	}
}
