package summary_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// TestStopped: of a fio that was stopped for some seconds the time without I/O is found, whether it had I/O pending or
// caught up after it, and no objective passes that the stop missed.
func TestStopped(t *testing.T) {
	for _, tt := range []struct {
		name   string
		stalls int
	}{{"stopped", 0}, {"stopped-busy", 1}} {
		t.Run(tt.name, func(t *testing.T) {
			var slos string
			for i, expr := range []string{"outage(fio.read, after(\\\"hang\\\")) < duration(\\\"1s\\\")",
				"recovery(fio.write, after(\\\"hang\\\")) < duration(\\\"1s\\\")"} {
				slos += fmt.Sprintf(",{\"name\":\"o%d\",\"expr\":\"%s\"}", i, expr)
			}
			b, stopped, resumed := analysistest.Stopped(t, tt.name, slos[1:])
			d, err := dataset.Read(b)
			if err != nil {
				t.Fatal(err)
			}
			s, err := summary.Of(d)
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range s.Verdicts {
				if v.Status != expr.Fail {
					t.Errorf("%s is %s: %+v", v.Expr, v.Status, v.Observed)
				}
			}
			truth := int64(resumed - stopped)
			if len(s.Recoveries) != 2 {
				t.Fatalf("%+v", s.Recoveries)
			}
			for _, r := range s.Recoveries {
				x := r.Each[0].Serving
				if x == nil || x.Ns-x.ErrorNs > truth || x.Ns+x.ErrorNs < truth {
					t.Errorf("%s served after %+v, want %v", r.Metric, x, time.Duration(truth))
				}
			}
			var found int
			for _, x := range s.Stalls {
				if x.LengthNs < int64(time.Second) {
					continue
				}
				if d := x.From - stopped; d > op.Time(x.ErrorNs) || -d > op.Time(x.ErrorNs) || x.Named() != "hang/0" {
					t.Errorf("stall at %v ± %v during %s, want %v during hang/0", x.From, time.Duration(x.ErrorNs), x.Named(),
						stopped)
				}
				found++
			}
			if found != tt.stalls {
				t.Errorf("%d stalls, want %d: %+v", found, tt.stalls, s.Stalls)
			}
			for _, z := range s.ZeroPeriods {
				if z.From < stopped || z.Until() > resumed+op.Time(z.ErrorNs) || z.Named() != "hang/0" || tt.stalls > 0 {
					t.Errorf("no operations from %v to %v, during %s", z.From, z.To, z.Named())
				}
			}
			if len(s.ZeroPeriods) == 0 && tt.stalls == 0 {
				t.Error("the time without operations is not listed")
			}
		})
	}
}
