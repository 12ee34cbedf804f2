package summary

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

func TestDistributions(t *testing.T) {
	buckets := []op.Bucket{{UpToNs: 1e6, N: 5}, {UpToNs: 1e7, N: 0}, {UpToNs: 1e8, N: 4}}
	tests := []struct {
		name     string
		d        op.Distribution
		p50, p99 string
		mean     int64
	}{
		{"first bucket and beyond the last", op.Distribution{N: 10, SumNs: 50e6, Buckets: buckets}, "≤ 1 ms",
			"> 100 ms", 5e6},
		{"an empty bucket between", op.Distribution{N: 9, Buckets: buckets}, "≤ 1 ms", "10 ms – 100 ms", 0},
		{"one", op.Distribution{N: 1, Buckets: []op.Bucket{{UpToNs: 1e6}, {UpToNs: 2e6, N: 1}}}, "1 ms – 2 ms",
			"1 ms – 2 ms", 0},
		{"nothing", op.Distribution{Buckets: buckets[1:2]}, "–", "–", 0},
		{"counted only", op.Distribution{N: 3}, "–", "–", 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := distributions([]op.Distribution{tt.d})
			if diff := cmp.Diff([]string{tt.p50, tt.p99},
				[]string{got[0].P50.String(), got[0].P99.String()}); diff != "" {
				t.Error(diff)
			}
			if m := got[0].MeanNs; (m == nil) != (tt.mean == 0) || m != nil && *m != tt.mean {
				t.Errorf("mean %v, want %d", m, tt.mean)
			}
		})
	}
}
