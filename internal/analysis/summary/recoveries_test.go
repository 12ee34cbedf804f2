package summary

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/recovery"
)

func TestRecoveriesLine(t *testing.T) {
	at := func(ns int64, atLeast bool) recovery.Time { return recovery.Time{Ns: ns, AtLeast: atLeast} }
	for _, tt := range []struct {
		name string
		of   recovery.Spread
		want string
	}{
		{"all", recovery.Spread{N: 2, Median: at(3e9, false), Max: at(4e9, false)},
			"was back at 90 % of its level after 3 s (median; at most 4 s)."},
		{"one", recovery.Spread{N: 2, NotYet: 1, Median: at(3e9, true), Max: at(4e9, true)},
			"was back at 90 % of its level after ≥ 3 s (median; at most ≥ 4 s); " +
				"1 of 2 were not when the next operation or the end came."},
		{"none", recovery.Spread{N: 2, NotYet: 2, Median: at(3e9, true), Max: at(4e9, true)},
			"was not seen back at 90 % of its level before the next operation or the end, at most 4 s after."},
		{"none, at once", recovery.Spread{N: 2, NotYet: 2, Median: at(0, true), Max: at(0, true)},
			"was not seen back at 90 % of its level: the next operation or the end came before."},
	} {
		r := Recoveries{Group: recovery.Group{Control: "grow", Action: "io", Metric: "read.iops", Share: 0.9, N: 2,
			Recovered: tt.of}}
		if got, want := r.Line(), "After 2 ops of grow, the read.iops of io "+tt.want; got != want {
			t.Errorf("%s: %q, want %q", tt.name, got, want)
		}
	}
}
