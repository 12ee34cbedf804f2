package rank_test

import (
	"math"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/statstest"
)

func TestSignedRankGolden(t *testing.T) {
	type golden struct {
		Values []float64
		P      float64
	}
	for _, c := range statstest.Golden[golden](t, "signed_rank.json") {
		got, ok := rank.SignedRank(c.Values)
		if !ok || (got.Method == rank.Exact) != (len(c.Values) <= rank.ExactN) {
			t.Errorf("of %d: %+v, %t", len(c.Values), got, ok)
		}
		statstest.Near(t, "p", got.P, &c.P)
	}
}

func TestMannWhitneyGolden(t *testing.T) {
	type golden struct {
		A, B []float64
		U, P float64
	}
	for _, c := range statstest.Golden[golden](t, "mann_whitney.json") {
		got, ok := rank.MannWhitney(c.A, c.B)
		if !ok || (got.Method == rank.Exact) != (max(len(c.A), len(c.B)) <= rank.ExactN) {
			t.Errorf("of %d and %d: %+v, %t", len(c.A), len(c.B), got, ok)
		}
		statstest.Near(t, "U", got.Statistic, &c.U)
		statstest.Near(t, "p", got.P, &c.P)
		// The effect is U by another name.
		e, _ := rank.EffectOf(c.A, c.B)
		a12 := c.U / float64(len(c.A)*len(c.B))
		statstest.Near(t, "A12", e.A12, &a12)
	}
}

func TestSeveralGolden(t *testing.T) {
	type golden struct {
		Test         string
		Samples      [][]float64
		Statistic, P float64
		Exact        *float64
	}
	for _, c := range statstest.Golden[golden](t, "several.json") {
		test := rank.KruskalWallis
		if c.Test == "friedman" {
			test = rank.Friedman
		}
		got, ok := test(c.Samples)
		if !ok {
			t.Fatalf("%s of %v is not ok", c.Test, c.Samples)
		}
		statstest.Near(t, c.Test, got.Statistic, &c.Statistic)
		switch {
		case got.Method == rank.Approximate:
			statstest.Near(t, c.Test+"'s p", got.P, &c.P)
		case c.Exact != nil: // three standard errors of a permutation test
			if math.Abs(got.P-*c.Exact) > 3*math.Sqrt(*c.Exact*(1-*c.Exact)/1e4) {
				t.Errorf("%s: p is %v, exact %v", c.Test, got.P, *c.Exact)
			}
		}
	}
}

func TestRatiosGolden(t *testing.T) {
	type golden struct {
		Paired       bool
		A, B         []float64
		Level, Ratio float64
		Low, High    *float64
	}
	for _, c := range statstest.Golden[golden](t, "ratios.json") {
		of := rank.MedianRatio
		if c.Paired {
			of = rank.PairedRatio
		}
		r, ok := of(c.A, c.B, c.Level)
		if !ok {
			t.Fatalf("%v and %v have no ratio", c.A, c.B)
		}
		statstest.Near(t, "ratio", r.Value, &c.Ratio)
		statstest.Near(t, "low", r.Low, c.Low)
		statstest.Near(t, "high", r.High, c.High)
	}
}
