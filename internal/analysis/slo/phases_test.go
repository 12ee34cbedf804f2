package slo

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestPhases asks for single phases, and for all: rates over phases of different
// length are means over time.
func TestPhases(t *testing.T) {
	d := &dataset.Data{}
	if err := json.Unmarshal([]byte(`{"actions":[{"name":"fio","createObjSpec":{"phases":[{"startAfter":"1s"}]}}]}`),
		&d.Spec); err != nil {
		t.Fatal(err)
	}
	var starts []op.InstanceStart
	var ios []op.CanaryIO
	for k := range 2 {
		latency, begin, seconds := int64(1000*(k+1)), op.Time(k)*1e9, 1+2*k // 1 s at 100/s, 3 s at 300/s
		h := hist.New()
		if err := h.Record(latency); err != nil {
			t.Fatal(err)
		}
		d.Totals = append(d.Totals, bundle.HistogramSlice{
			Labels:    bundle.Labels{Instance: "fio-0", Action: "fio", Phase: k},
			Histogram: metric.Histogram{Metric: "write", Hist: h},
			Total:     true,
		})
		d.Scalars = append(d.Scalars, bundle.Scalar{
			Labels: bundle.Labels{Instance: "fio-0", Action: "fio", Phase: k},
			Scalar: metric.Scalar{Metric: "write.iops", Value: float64(100 + 200*k)},
		},
			bundle.Scalar{
				Labels: bundle.Labels{Instance: "fio-0", Action: "fio", Phase: k},
				Scalar: metric.Scalar{Metric: "write.bandwidth", Value: 1},
			})
		s := bundle.Series{
			Labels: bundle.Labels{Instance: "fio-0", Action: "fio", Phase: k},
			Series: metric.Series{Metric: "write.iops", Step: 1e9},
		}
		for i := range seconds {
			s.Points = append(s.Points, metric.Point{At: begin + op.Time(i)*1e9, Value: float64(100 + 200*k)})
		}
		d.Series = append(d.Series, s)
		starts = append(starts, op.InstanceStart{Instance: "fio-0", Intended: begin, At: begin + 1, Phase: k})
		ios = append(ios, op.CanaryIO{Intended: begin + 5, Started: begin + 5, Ended: begin + 5 + op.Time(latency),
			Write: true})
	}
	d.Instances = []bundle.Instance{{Name: "fio-0", Starts: starts}}
	d.Canaries = []dataset.Canary{{Instance: "fio-0", Action: "fio", Volume: "v", IOs: ios}}
	for query, want := range map[string]any{
		`max(fio.write)`:                 2000.0,
		`max(fio.write, phase(0))`:       1000.0,
		`min(fio.write, phase(1))`:       2000.0,
		`iops(fio.write, phase(0))`:      100.0,
		`iops(fio.write, phase(1))`:      300.0,
		`iops(fio.write)`:                250.0,
		`throughput(fio.write)`:          "ask for one, by phase(1)",
		`max(fio.canaryWrite, phase(0))`: 1000.0,
		`max(fio.canaryWrite, phase(1))`: 2000.0,
		`max(fio.write, phase(2))`:       "no data",
		`max(fio.canaryWrite, phase(2))`: "no data",
		`max(fio.ready, phase(0))`:       "has no phases: only a workload's I/O has",
	} {
		p, err := expr.Compile(query+" == "+query, expr.Env{})
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		q := p.Queries()[0]
		if q.String() != query {
			t.Errorf("%s is written %s", query, q)
		}
		s := &source{data: d, windows: map[string]dataset.Union{}, ops: map[string]*tally{}}
		v, err := s.Value(q)
		if number, ok := want.(float64); ok {
			if err != nil || math.Abs(v.Number-number) > number/500 {
				t.Errorf("%s = %v, %v; want %v", query, v.Number, err, number)
			}
		} else if err == nil || !strings.Contains(err.Error(), want.(string)) {
			t.Errorf("%s: %v, want %q", query, err, want)
		}
	}
}
