package summary

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestPhases: figures are separated by the phase in which they were measured;
// a rate over phases of different rates there is not, but what failed adds up.
func TestPhases(t *testing.T) {
	d := &dataset.Data{}
	if err := json.Unmarshal([]byte(`{"actions":[{"name":"fio","createObjSpec":{"workload":"fio","phases":[{"startAfter":"10s","vars":{"rateIops":"300","bs":"64k"}}]}}]}`), &d.Spec); err != nil {
		t.Fatal(err)
	}
	for k, latency := range []int64{1000, 2000} {
		h := hist.New()
		if err := h.RecordN(latency, 10); err != nil {
			t.Fatal(err)
		}
		d.Totals = append(d.Totals, bundle.HistogramSlice{
			Labels:    bundle.Labels{Instance: "fio-0", Action: "fio", Phase: k},
			Histogram: metric.Histogram{Metric: "write", Hist: h},
			Total:     true,
		})
		d.Scalars = append(d.Scalars, bundle.Scalar{
			Labels: bundle.Labels{Instance: "fio-0", Action: "fio", Phase: k},
			Scalar: metric.Scalar{Metric: "write.iops", Value: float64(100 * (1 + 2*k))},
		},
			bundle.Scalar{
				Labels: bundle.Labels{Instance: "fio-0", Action: "fio", Phase: k},
				Scalar: metric.Scalar{Metric: "write.failed", Value: 3},
			})
	}
	d.Instances = []bundle.Instance{{Name: "fio-0", Starts: []op.InstanceStart{
		{Instance: "fio-0", Container: "fio", Intended: 100, At: 101}, {Instance: "fio-0", Container: "fio-phase-1",
			Intended: 200, At: 202, Phase: 1}}}}
	d.Canaries = []dataset.Canary{{Instance: "fio-0", Action: "fio", Volume: "v", IOs: []op.CanaryIO{
		{Intended: 90, Ended: 95, Write: true}, {Intended: 110, Ended: 120, Write: true}, {Intended: 199, Ended: 300,
			Write: true}, {Intended: 200, Ended: 201, Write: true}}}}
	w := workloads(d)[0]
	if len(w.Metrics) != 2 || w.Metrics[0].PerSecond != nil || w.Metrics[0].Latency.N != 20 ||
		w.Metrics[0].Errors != 6 {
		t.Errorf("over all phases: %+v", w.Metrics)
	}
	for name, phases := range map[string][]Phase{"action": w.Phases, "instance": w.Instances[0].Phases} {
		if len(phases) != 2 {
			t.Fatalf("%s: phases %+v", name, phases)
		}
		for k, p := range phases {
			io, canary := p.Metrics[0], p.Metrics[1]
			if io.Name != "write" || *io.PerSecond != []float64{100, 300}[k] || io.Latency.N != 10 ||
				*io.Latency.MaxNs != []int64{1000, 2000}[k] ||
				canary.Name != "canaryWrite" || canary.Latency.N != []int64{2, 1}[k] {
				t.Errorf("%s, phase %d: %+v", name, k, p.Metrics)
			}
		}
	}
	if got := w.Phases[1].Title(); got != "phase 1 (bs=64k rateIops=300)" || w.Phases[0].Title() != "phase 0" {
		t.Errorf("titles %q, %q", w.Phases[0].Title(), got)
	}
	if line := workloadLine(w, false); !strings.Contains(line, "write 100 → 300 IOPS over its phases") {
		t.Errorf("headline %q", line)
	}
}
