package oplog

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnsbench/cnsbench/internal/op"
)

const ms = op.Time(1e6)

// timed returns an op of an action that took a number of milliseconds from second id on.
func timed(id int64, action string, took op.Time, outcome op.Outcome, code string) op.Op {
	return op.Op{ID: id, Action: action, Intended: op.Time(id) * 1000 * ms, Started: op.Time(id) * 1000 * ms,
		Ended: op.Time(id)*1000*ms + took*ms, Outcome: outcome, Code: code}
}

func all(list []op.Op) iter.Seq2[op.Op, error] {
	return func(yield func(op.Op, error) bool) {
		for _, o := range list {
			if !yield(o, nil) {
				return
			}
		}
	}
}

// reasons are the selected ops with their reasons, in order.
func reasons(s Selection) (list []string) {
	for _, r := range s.Records {
		list = append(list, fmt.Sprint(r.ID, " ", r.Why))
	}
	return list
}

func TestSelect(t *testing.T) {
	uniform := func(n int, took op.Time) (list []op.Op) {
		for i := range n {
			list = append(list, timed(int64(i), "a", took, op.OK, ""))
		}
		return list
	}
	tests := []struct {
		name  string
		ops   []op.Op
		want  []string
		about About
	}{
		{"no op", nil, nil, About{}},
		{"all alike: the first three are as slow as any", uniform(30, 100),
			[]string{"0 slowest", "1 slowest", "2 slowest"}, About{}},
		{"slow ones, and no more than they", append(uniform(100, 100), timed(100, "a", 250, op.OK, ""),
			timed(101, "a", 900, op.OK, ""), timed(102, "a", 300, op.OK, ""), timed(103, "a", 201, op.OK, "")),
			[]string{"100 slow", "101 slow", "102 slow", "103 slow"}, About{Slow: 4, SlowKept: 4}},
		{"above p95, yet not twice the median", append(uniform(100, 100), timed(100, "a", 199, op.OK, "")),
			[]string{"0 slowest", "1 slowest", "100 slowest"}, About{}},
		{"twice the median, yet not above p95", append(uniform(10, 100), timed(10, "a", 300, op.OK, ""),
			timed(11, "a", 301, op.OK, ""), timed(12, "a", 302, op.OK, "")),
			[]string{"10 slowest", "11 slowest", "12 slowest"}, About{}},
		{"each action by its own figures", append(uniform(3, 10_000), timed(3, "b", 1, op.OK, "")),
			[]string{"0 slowest", "1 slowest", "2 slowest", "3 slowest"}, About{}},
		{"every way to fail", []op.Op{timed(1, "a", 5, op.Error, "X"), timed(2, "a", 5, op.Timeout, "Timeout"),
			timed(3, "a", 5, op.Censored, "RunEnded"),
			{ID: 4, Action: "a", Outcome: op.Dropped, Started: op.Never, Ended: op.Never}},
			[]string{"1 error", "2 timeout", "3 censored"}, About{Failed: 3, FailedKept: 3}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := Select(all(tt.ops))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, reasons(s)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(tt.about, s.About); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestSelectQuantiles checks the figures by which an op was judged, and its window.
func TestSelectQuantiles(t *testing.T) {
	var ops []op.Op
	for i := range 100 {
		ops = append(ops, timed(int64(i), "a", op.Time(i+1), op.OK, ""))
	}
	s, err := Select(all(ops))
	if err != nil {
		t.Fatal(err)
	}
	last := s.Records[len(s.Records)-1]
	want := Record{ID: 99, Why: Slowest, From: 98_000 * ms, To: 100_100 * ms, N: 100, MedianNs: int64(50 * ms),
		P95Ns: int64(95 * ms)}
	if diff := cmp.Diff(want, last, cmpopts.IgnoreUnexported(Record{})); diff != "" {
		t.Error(diff)
	}
}

// TestSelectBounds checks that rare failures and quiet actions are not lost among many others.
func TestSelectBounds(t *testing.T) {
	var ops []op.Op
	id := int64(0)
	add := func(n int, action string, took op.Time, outcome op.Outcome, code string) {
		for range n {
			ops = append(ops, timed(id, action, took, outcome, code))
			id++
		}
	}
	add(5000, "busy", 10, op.OK, "")
	add(200, "busy", 100, op.OK, "") // slow
	add(1000, "busy", 5, op.Error, "Common")
	for i := range 30 {
		add(2, "busy", 5, op.Error, fmt.Sprint("Code", i))
	}
	rare := id
	add(1, "quiet", 5, op.Error, "Rare")
	add(1, "quiet", 700, op.OK, "")
	s, err := Select(all(ops))
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Records) != MaxOps {
		t.Errorf("%d ops, want %d", len(s.Records), MaxOps)
	}
	want := About{Failed: 1061, FailedKept: maxFailed, Slow: 200, SlowKept: MaxOps - maxFailed - 1}
	if diff := cmp.Diff(want, s.About); diff != "" {
		t.Error(diff)
	}
	for _, id := range []int64{rare, rare + 1} {
		if !slices.ContainsFunc(s.Records, func(r Record) bool { return r.ID == id }) {
			t.Errorf("op %d of the quiet action is not selected", id)
		}
	}
}

func TestSelectError(t *testing.T) {
	damaged := errors.New("damaged")
	_, err := Select(func(yield func(op.Op, error) bool) { yield(op.Op{}, damaged) })
	if !errors.Is(err, damaged) {
		t.Errorf("got %v", err)
	}
}

func TestWindows(t *testing.T) {
	s := Selection{Records: []Record{{From: 0, To: 10}, {From: 2, To: 5}, {From: 10, To: 12}, {From: 13, To: 14}}}
	if diff := cmp.Diff([]Window{{0, 12}, {13, 14}}, s.Windows()); diff != "" {
		t.Error(diff)
	}
}
