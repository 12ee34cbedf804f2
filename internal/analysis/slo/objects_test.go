package slo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Failed operations have no latency: an objective on one states their number.
func TestFailedOperationsOfObjects(t *testing.T) {
	h := hist.New()
	if err := h.RecordN(1e6, 400); err != nil {
		t.Fatal(err)
	}
	labels := bundle.Labels{Instance: "o-0", Action: "o"}
	read := bundle.HistogramSlice{Labels: labels, Histogram: metric.Histogram{Metric: "read", Hist: h}, Total: true}
	failed := bundle.Scalar{Labels: labels, Scalar: metric.Scalar{Metric: "read.failed", Value: 341}}
	q := expr.Query{Func: expr.Quantile, Q: 0.99, Metric: expr.Metric{Action: "o", Name: "read"}}
	src := &source{data: &dataset.Data{Totals: []bundle.HistogramSlice{read}, Scalars: []bundle.Scalar{failed}}}
	if v, err := src.io(q); err != nil || v.Warning != "failed: 341 of 741" {
		t.Errorf("warning %q, error %v, want that 341 of 741 failed", v.Warning, err)
	}
	src = &source{data: &dataset.Data{Scalars: []bundle.Scalar{failed}}}
	if _, err := src.io(q); err == nil || !strings.Contains(err.Error(), "all 341 operations of o.read failed") {
		t.Errorf("error %v, want that all failed", err)
	}
}

// Two parts of one work of objects, of which one is over after 1 s of 4: what they
// did a second is of the time of both, also where only the series tells it.
func TestThroughputOfObjects(t *testing.T) {
	d := &dataset.Data{}
	if err := json.Unmarshal([]byte(`{"actions":[{"name":"o","createObjSpec":{"objectSpec":{}}}]}`),
		&d.Spec); err != nil {
		t.Fatal(err)
	}
	for i, seconds := range []int{1, 4} {
		name := []string{"o-0", "o-1"}[i]
		h := hist.New()
		if err := h.RecordN(1e6, int64(100*seconds)); err != nil {
			t.Fatal(err)
		}
		s := bundle.Series{
			Labels: bundle.Labels{Instance: name, Action: "o"},
			Series: metric.Series{Metric: "read.iops", Step: 1e9},
		}
		for at := range seconds {
			s.Points = append(s.Points, metric.Point{At: op.Time(at) * 1e9, Value: 100})
		}
		d.Series = append(d.Series, s)
		d.Totals = append(d.Totals, bundle.HistogramSlice{
			Labels:    bundle.Labels{Instance: name, Action: "o"},
			Histogram: metric.Histogram{Metric: "read", To: op.Time(seconds) * 1e9, Hist: h},
			Total:     true,
		})
		d.Scalars = append(d.Scalars, bundle.Scalar{
			Labels: bundle.Labels{Instance: name, Action: "o"},
			Scalar: metric.Scalar{Metric: "read.iops", Value: 100},
		}, bundle.Scalar{
			Labels: bundle.Labels{Instance: name, Action: "o"},
			Scalar: metric.Scalar{Metric: "read.bandwidth", Value: 1000},
		})
	}
	src := &source{data: d}
	for view, want := range map[expr.Func]float64{expr.IOPS: 125, expr.Throughput: 1250} {
		v, err := src.perSecond(expr.Query{Func: view, Metric: expr.Metric{Action: "o", Name: "read"}})
		if err != nil || v.Number != want || v.N != 2 {
			t.Errorf("%s: %+v, %v; want %g", view, v, err, want)
		}
	}
	d.Scalars = nil // as a window has none
	if v, err := src.perSecond(expr.Query{Func: expr.IOPS,
		Metric: expr.Metric{Action: "o", Name: "read"}}); err != nil || v.Number != 125 {
		t.Errorf("of the series: %+v, %v", v, err)
	}
}
