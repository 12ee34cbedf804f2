package summary

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/op"
)

func quantile(ns int64) Quantile { return Quantile{Ns: &ns} }

func TestActionLine(t *testing.T) {
	few := Quantile{NeedsN: 6}
	tests := []struct {
		name           string
		late, response Quantile
		want           string
	}{
		{"punctual", quantile(1e6), quantile(10e6), "a: 40 snapshot ops, p50 10 ms, none failed."},
		{"late", quantile(4e6), quantile(10e6), "a: 40 snapshot ops, p50 10 ms, of which p50 4 ms is the lateness of their start, none failed."},
		{"few", few, few, "a: 40 snapshot ops, none failed."},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			a := Action{Name: "a", Kind: op.Snapshot, N: 40, Lateness: Latency{P50: tt.late},
				Response: Latency{P50: tt.response, P90: Quantile{NeedsN: 29}, P99: Quantile{NeedsN: 299}}}
			if got := actionLine(&a); got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}
