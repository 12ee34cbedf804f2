package main

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestPairedRatio checks the estimate and the interval of known ratios, and that four pairs have no
// interval.
func TestPairedRatio(t *testing.T) {
	a := []float64{100, 110, 90, 105, 95, 102}
	b := make([]float64, len(a))
	for i := range a {
		b[i] = a[i] * []float64{0.97, 0.99, 0.98, 0.96, 1.00, 0.98}[i]
	}
	got, err := pairedRatio(a, b)
	if err != nil {
		t.Fatal(err)
	}
	if math.Abs(got.estimate-0.98) > 0.002 || got.low < 0.96 || got.high > 1 || got.low >= got.high {
		t.Errorf("got %+v, want about 0.98 inside [0.96, 1]", got)
	}
	if !got.within(0.05) || got.within(0.01) {
		t.Errorf("%v must be within 5 %% and not within 1 %%", got)
	}
	if _, err := pairedRatio(a[:4], b[:4]); err == nil {
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

// TestListedIn checks which stalls match a freeze, and how far their lengths are outside its
// bounds.
func TestListedIn(t *testing.T) {
	f := freeze{from: 1000, to: 1100, ns: 100, held: 97, claim: "fio-1-data", op: "snapshots-3"}
	mine := []interference.ConcurrentOp{{Action: "snapshots", Instance: 3}}
	stall := interference.Stall{Instance: "fio-1", Volume: "fio-1-data", From: 1005, To: 1100, LengthNs: 95, Ops: mine}
	change := func(f func(*interference.Stall)) interference.Stall { s := stall; f(&s); return s }
	tests := []struct {
		name  string
		stall interference.Stall
		off   int64
		ok    bool
	}{
		{"too short", stall, 2, true},
		{"within the bounds", change(func(s *interference.Stall) { s.LengthNs = 98 }), 0, true},
		{"too long", change(func(s *interference.Stall) { s.LengthNs = 104 }), 4, true},
		{"by the workload", change(func(s *interference.Stall) {
			s.Volume, s.Source, s.From, s.To = "", "workload",
				1150, 2000
		}), 2, true},
		{"other volume", change(func(s *interference.Stall) { s.Volume = "fio-2-data" }), 0, false},
		{"other op", change(func(s *interference.Stall) {
			s.Ops = []interference.ConcurrentOp{{Action: "snapshots",
				Instance: 4}}
		}), 0, false},
		{"other time", change(func(s *interference.Stall) { s.From, s.To = 1200, 1300 }), 0, false},
	}
	for _, tt := range tests {
		length, ok := f.listedIn([]interference.Stall{tt.stall})
		off := f.off(length)
		if !ok {
			off = 0
		}
		if off != tt.off || ok != tt.ok {
			t.Errorf("%s: %d %v, want %d %v", tt.name, off, ok, tt.off, tt.ok)
		}
	}
}

// TestStillWithin checks that overlapping spans of two CPUs count once, and only within the given
// span.
func TestStillWithin(t *testing.T) {
	begin := time.Now()
	part := func(from, to int) span {
		return span{begin.Add(time.Duration(from) * time.Millisecond), begin.Add(time.Duration(to) * time.Millisecond)}
	}
	s := stillness{spans: []span{part(0, 2), part(1, 4), part(2, 3), part(6, 9)}}
	for _, tt := range []struct {
		of   span
		want int
	}{{part(0, 10), 7}, {part(1, 3), 2}, {part(4, 6), 0}, {part(3, 7), 2}, {part(9, 12), 0}} {
		if got := s.within(tt.of); got != time.Duration(tt.want)*time.Millisecond {
			t.Errorf("%v, want %d ms", got, tt.want)
		}
	}
}
