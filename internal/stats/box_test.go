package stats

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestBox: quartiles are those of numpy.percentile (method linear), whiskers and outliers those of
// matplotlib.cbook.boxplot_stats.
func TestBox(t *testing.T) {
	for _, tt := range []struct {
		values []float64
		want   Box
	}{
		{[]float64{7}, Box{N: 1, Low: 7, High: 7, Q1: 7, Median: 7, Q3: 7}},
		{[]float64{4, 1, 3, 2}, Box{N: 4, Low: 1, High: 4, Q1: 1.75, Median: 2.5, Q3: 3.25}},
		{[]float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 30, -20},
			Box{N: 11, Low: 1, High: 9, Q1: 2.5, Median: 5, Q3: 7.5, Outliers: []float64{-20, 30}}},
		{[]float64{5, 5, 5, 5, 6}, Box{N: 5, Low: 5, High: 5, Q1: 5, Median: 5, Q3: 5, Outliers: []float64{6}}},
	} {
		got, ok := BoxOf(tt.values)
		if diff := cmp.Diff(tt.want, got); !ok || diff != "" {
			t.Errorf("%v: %v, %s", tt.values, ok, diff)
		}
	}
	for _, bad := range [][]float64{nil, {1, math.Inf(1)}, {math.NaN()}} {
		if _, ok := BoxOf(bad); ok {
			t.Errorf("%v has a box", bad)
		}
	}
}
