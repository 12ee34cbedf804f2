package stats_test

import (
	"math"
	"testing"

	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/statstest"
)

func TestDescribeGolden(t *testing.T) {
	type golden struct {
		Values                          []float64
		Mean, Median, Min, Max          float64
		SD, CVMean, CVMedian, Low, High *float64
	}
	for _, c := range statstest.Golden[golden](t, "describe.json") {
		d, ok := stats.Describe(c.Values)
		if !ok || d.N != len(c.Values) {
			t.Fatalf("of %v: %+v, %t", c.Values, d, ok)
		}
		for _, v := range []struct {
			what string
			got  float64
			want *float64
		}{{"mean", d.Mean, &c.Mean}, {"sd", d.SD, c.SD}, {"median", d.Median, &c.Median}, {"min", d.Min, &c.Min},
			{"max", d.Max, &c.Max}, {"CV by mean", d.CVMean, c.CVMean}, {"CV by median", d.CVMedian, c.CVMedian},
			{"low", d.Low, c.Low}, {"high", d.High, c.High}} {
			statstest.Near(t, v.what, v.got, v.want)
		}
		if c.Low != nil && d.Coverage < stats.Confidence {
			t.Errorf("coverage %v", d.Coverage)
		}
	}
}

func TestDescribeRefuses(t *testing.T) {
	for _, bad := range [][]float64{nil, {1, math.NaN()}, {math.Inf(1)}, {math.Inf(-1), 2}} {
		if d, ok := stats.Describe(bad); ok {
			t.Errorf("%v is described: %+v", bad, d)
		}
	}
	if d, ok := stats.Describe([]float64{-1, 0, 1}); !ok || !math.IsNaN(d.CVMean) || !math.IsNaN(d.CVMedian) {
		t.Errorf("of a mean of 0: %+v, %t", d, ok)
	}
}

func FuzzDescribe(f *testing.F) {
	f.Add([]byte("12345678abcdefgh"))
	f.Fuzz(func(t *testing.T, data []byte) {
		values := statstest.Numbers(data, 100)
		d, ok := stats.Describe(values)
		if ok != (len(values) > 0 && stats.Finite(values)) {
			t.Fatalf("%v: %t", values, ok)
		}
		if ok && !(d.Min <= d.Median && d.Median <= d.Max || math.IsInf(d.Median, 0)) {
			t.Errorf("%v: %+v", values, d)
		}
	})
}
