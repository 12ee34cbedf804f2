package slo

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestCoarse: snapshots each 1.5 s touch every slice of 5 s, and not every one of
// 100 ms.
func TestCoarse(t *testing.T) {
	b, _ := analysistest.Demo(t)
	for _, tt := range []struct {
		name, expr string
		slice      op.Time
		want       string
	}{
		{"long", `p99(fio.write, during("snapshots")) < duration("1s")`, 5 * analysistest.Second,
			`takes 180 of 180 time slices (of 5 s), though its ops were in progress for `},
		{"long, a rate", `iops(fio.write, during("snapshots")) > 1.0`, 5 * analysistest.Second,
			`iops(fio.write, during("snapshots")) is close to the value of the whole run`},
		{"short", `p99(fio.write, during("snapshots")) < duration("1s")`, analysistest.Second / 10, ""},
		{"short, a rate", `iops(fio.write, during("snapshots")) > 1.0`, analysistest.Second / 10, ""},
		{"without a window", `p99(fio.write) < duration("1s")`, 5 * analysistest.Second, ""},
		{"outside", `p99(fio.write, outside("snapshots")) < duration("1s")`, 5 * analysistest.Second, ""},
		{"the canary, of each I/O", `p99(fio.canaryWrite, during("snapshots")) < duration("1s")`,
			5 * analysistest.Second, ""},
		{"no expression", `p99(`, 5 * analysistest.Second, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d, err := dataset.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			d.Spec.SLOs = append(d.Spec.SLOs[:0:0], d.Spec.SLOs[0])
			d.Spec.SLOs[0].Name, d.Spec.SLOs[0].Expr = "quiet", tt.expr
			for i := range d.Slices {
				h := &d.Slices[i]
				h.From -= (h.From - analysistest.Barrier) % tt.slice
				h.To = h.From + tt.slice
			}
			for i := range d.Series {
				d.Series[i].Step = int64(tt.slice)
			}
			j, err := NewJudge(d)
			if err != nil {
				t.Fatal(err)
			}
			flags := j.Coarse()
			switch {
			case tt.want == "" && len(flags) > 0:
				t.Errorf("it is flagged: %v", flags)
			case tt.want != "" && (len(flags) != 1 || !strings.Contains(flags[0].Evidence, tt.want)):
				t.Errorf("the flags are %v", flags)
			}
		})
	}
}

// TestCoarseWhole: ops that were always in progress leave nothing out.
func TestCoarseWhole(t *testing.T) {
	list := []dataset.Span{{From: 0, To: 50}, {From: 50, To: 100}}
	for _, tt := range []struct {
		ops  dataset.Union
		want bool
	}{
		{dataset.Union{{From: 0, To: 100}}, false},
		{dataset.Union{{From: 0, To: 95}}, false},
		{dataset.Union{{From: 40, To: 60}}, true},
		{dataset.Union{{From: 40, To: 49}}, false},
		{nil, false},
	} {
		if text, got := coarse(list, tt.ops); got != tt.want {
			t.Errorf("%v: %t (%s), want %t", tt.ops, got, text, tt.want)
		}
	}
}
