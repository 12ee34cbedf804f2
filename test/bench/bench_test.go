package main

import (
	"math"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/op"
)

// TestRatio checks the figures of known ratios, and that four pairs have no interval.
func TestRatio(t *testing.T) {
	a := []float64{100, 110, 90, 105, 95, 102}
	b := make([]float64, len(a))
	for i := range a {
		b[i] = a[i] * []float64{0.97, 0.99, 0.98, 0.96, 1.00, 0.98}[i]
	}
	for _, tt := range []struct {
		least, most float64
		target      string
		met         verdict
	}{
		{0, 0, "", none},
		{0.95, 1.05, "interval within × 0.95 to × 1.05", yes},
		{0.99, 1.01, "interval within × 0.99 to × 1.01", no},
		{0.95, 0, "interval ≥ × 0.95", yes},
		{0.99, 0, "interval ≥ × 0.99", no},
		{0, 1.01, "interval ≤ × 1.01", yes},
		{0, 0.97, "interval ≤ × 0.97", no},
	} {
		var got table
		if err := got.ratio("what", a, b, tt.least, tt.most); err != nil {
			t.Fatal(err)
		}
		if f := got.figures[0]; f.value != "× 0.980 [0.970, 0.990]" || f.target != tt.target || f.met != tt.met || f.n != 6 {
			t.Errorf("%g to %g: %+v", tt.least, tt.most, f)
		}
	}
	if err := new(table).ratio("what", a[:4], b[:4], 0, 0); err == nil {
		t.Error("four pairs have no interval, but one was given")
	}
}

// TestMirroredBalancesDrift checks that each second block is the reverse of the block before.
func TestMirroredBalancesDrift(t *testing.T) {
	orders := mirrored(3, 8, 1)
	for i := 0; i < len(orders); i += 2 {
		back := slices.Clone(orders[i+1])
		slices.Reverse(back)
		if diff := cmp.Diff(orders[i], back); diff != "" {
			t.Errorf("block %d is not the mirror of the one before:\n%s", i+1, diff)
		}
	}
}

// TestSimulate checks the response times of a queue with a stall for different numbers of servers.
func TestSimulate(t *testing.T) {
	due := []op.Time{0, 10, 20, 30, 60}
	tests := []struct {
		name    string
		servers int
		want    []int64
	}{
		// The stall is [10, 50). An op takes 5.
		{"any number", math.MaxInt, []int64{5, 45, 35, 25, 5}},
		{"one", 1, []int64{5, 45, 40, 35, 10}},
		{"two", 2, []int64{5, 45, 35, 30, 5}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, simulate(due, tt.servers, 5, 10, 50)); diff != "" {
			t.Errorf("%s:\n%s", tt.name, diff)
		}
	}
}
