package loadgen

import (
	"encoding/json"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/hist"
)

// drawn is a cell with so many responses.
func drawn(t testing.TB, n int) *Cell {
	t.Helper()
	rng := rand.New(rand.NewPCG(1, 2))
	c := newCell()
	for range n {
		v := int64(rng.ExpFloat64() * 1e6)
		c.N++
		if err := first(c.Response.Record(v), first(c.Service.Record(v/2), c.First.Record(v/3))); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func TestEncodingIsExact(t *testing.T) {
	saturated, extremes := newCell(), newCell()
	for _, v := range []int64{5, hist.Highest - 1, hist.Highest, hist.Highest + 1, 3 * hist.Highest} {
		if err := saturated.Response.Record(v); err != nil {
			t.Fatal(err)
		}
	}
	for _, v := range []int64{0, 0, 1, 2047, 2048, 2049, hist.Highest} {
		if err := extremes.Late.RecordN(v, 3); err != nil {
			t.Fatal(err)
		}
	}
	want := Cells{{Label: "200", OK: true}: drawn(t, 10000), {Label: "cut", Op: 1, Ramp: true}: saturated,
		{Label: "x", Op: 2}: extremes, {Label: Dropped, Lost: true}: newCell()}
	want[Key{Label: "x", Op: 2}].Detail, want[Key{Label: "x", Op: 2}].Keys = "why", 7
	text, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	var got Cells
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(want) {
		t.Fatalf("%d cells, want %d", len(got), len(want))
	}
	for k := range want {
		// Histograms in their own encoding: counts, sum, extremes, saturated.
		if diff := cmp.Diff(plain(t, want[k]), plain(t, got[k])); diff != "" {
			t.Errorf("%v (-want +got):\n%s", k, diff)
		}
	}
}

func plain(t *testing.T, c *Cell) string {
	t.Helper()
	text, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// BenchmarkEncode is a second of one outcome: three histograms of 10 000 values.
func BenchmarkEncode(b *testing.B) {
	cells := Cells{{Label: "200", OK: true}: drawn(b, 10000)}
	text, err := json.Marshal(cells)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("out", func(b *testing.B) {
		b.ReportMetric(float64(len(text)), "bytes")
		for b.Loop() {
			if _, err := json.Marshal(cells); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("in", func(b *testing.B) {
		for b.Loop() {
			var back Cells
			if err := json.Unmarshal(text, &back); err != nil {
				b.Fatal(err)
			}
		}
	})
}
