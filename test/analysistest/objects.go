package analysistest

import (
	"fmt"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// stage records one work of a stage as a run of object storage does: n operations
// of a metric that took 5 ms each, over a second from at.
func stage(w *bundle.Writer, name, operation string, at op.Time, n, lost int) {
	h := hist.New()
	_ = h.RecordN(int64(5*Millisecond), int64(n)) // cannot fail: the value is positive
	instance := name + "-0"
	w.Started(op.InstanceStart{Instance: instance, Container: "workers", Intended: at, At: at})
	for _, m := range []string{operation, operation + metric.Service} {
		w.Histogram(bundle.HistogramSlice{
			Labels: labels(instance, name),
			Histogram: metric.Histogram{Metric: m, Unit: metric.Nanoseconds, Basis: "response", From: at,
				To:   at + Second,
				Hist: h},
			Total: true,
		})
	}
	for m, v := range map[string]float64{"iops": float64(n), "bandwidth": 4096 * float64(n), "ok": float64(n),
		"bytes": 4096 * float64(n), "lost": float64(lost)} {
		w.Scalar(bundle.Scalar{Labels: labels(instance, name),
			Scalar: metric.Scalar{Metric: operation + "." + m, Value: v}})
	}
	w.Ended(op.InstanceEnd{Instance: instance, At: at + Second, OK: true,
		Containers: []op.ContainerEnd{{Name: "workers"}}})
}

// driver records the process itself, which has no containers and never ends.
func driver(w *bundle.Writer) {
	for i := range int64(4) {
		w.Sample(op.Sample{Instance: "driver-0", At: op.Time(i) * Second, CPUNanos: i * 5e8, RSSBytes: 32 << 20})
	}
	w.Scalar(bundle.Scalar{Labels: labels("driver-0", "main"),
		Scalar: metric.Scalar{Metric: "main.cpuPerOp", Unit: metric.Nanoseconds, Value: 30000}})
}

// Found writes the bundle of a search of the highest rate: at 200 a second it held,
// at 400 it did not.
func Found(t testing.TB) *bundle.Bundle {
	t.Helper()
	w := create(t, "")
	stage(w, "prepare", "write", Second, 50, 0)
	stage(w, "main.find01.one", "read", 2*Second, 200, 0)
	stage(w, "main.find02.one", "read", 3*Second, 399, 30)
	stage(w, "main.find03.one", "read", 4*Second, 7, 0) // which the search did not judge
	driver(w)
	raw(t, w, "find-max", `{"stage":"main","condition":"p99(read) < 20ms","verdict":"found","perSecond":200,
		"above":400,"resolution":1,
		"bound":"worker-bound","evidence":"operations waited","steps":[
		{"stage":"main.find01","perSecond":200,"offeredPerSecond":200,"achievedPerSecond":200,
		"windowNs":1000000000,"held":true,
		"observed":[{"expr":"p99(read)","value":"5 ms","number":5e6,"unit":"ns","n":200}],
		"bound":"unclear","evidence":"it used 2 %"},
		{"stage":"main.find02","perSecond":400,"offeredPerSecond":429,"achievedPerSecond":399,
		"windowNs":1000000000,"held":false,
		"observed":[{"expr":"p99(read)","value":"25 ms","number":2.5e7,"unit":"ns","n":429}],
		"bound":"worker-bound","evidence":"operations waited"}]}`)
	return finish(t, w, objectRun)
}

// Scaled writes the bundle of a stage that was carried out with 1, 2 and 4 workers,
// twice each: throughput doubles once, then no more.
func Scaled(t testing.TB) *bundle.Bundle {
	t.Helper()
	w := create(t, "")
	stage(w, "prepare", "write", Second, 50, 0)
	for i, workers := range []int{1, 2, 4} {
		for r := range 2 {
			stage(w, fmt.Sprintf("main.w%d.r%d", workers, r+1), "read", op.Time(2+2*i+r)*Second,
				[]int{100, 200, 205}[i], 0)
		}
	}
	driver(w)
	h := hist.New()
	_ = h.RecordN(int64(5*Millisecond), 400) // cannot fail: the value is positive
	response, err := h.MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	raw(t, w, "scale-workers", fmt.Sprintf(`{"stage":"main","knee":{"threshold":0.1,
		"levels":[{"workers":1,"perSecond":[100,105]},{"workers":2,"perSecond":[190,210]},
			{"workers":4,"perSecond":[205,206]}],
		"steps":[{"from":1,"to":2,"gain":0.95,"low":null,"high":null,"class":"unknown"},
			{"from":2,"to":4,"gain":0.03,"low":null,"high":null,"class":"unknown"}],
		"workers":2,"atLeast":null,"atMost":null,"peak":4},"rows":[
		{"workers":1,"perSecond":[100,105],"failed":0,"response":%[1]s,"clientBound":0},
		{"workers":2,"perSecond":[190,210],"failed":0,"response":%[1]s,"clientBound":1},
		{"workers":4,"perSecond":[205,206],"failed":3,"response":%[1]s,"clientBound":0}]}`, response))
	return finish(t, w, objectRun)
}

// CutOff writes the bundle of an object workload that was killed in its main stage:
// after a second of ramp, in which the first slice began, and three of the measured
// time, in which a tenth failed and reads took longer from slice to slice.
func CutOff(t testing.TB) *bundle.Bundle {
	t.Helper()
	w := create(t, "", objectRun, func(r *bundle.Run) {
		r.Plan = []byte(`{"stages":[{"name":"prepare","works":[{"name":"prepare","kind":"prepare"}]},
			{"name":"main","works":[{"name":"one","kind":"normal","rampUpNs":1000000000}]}]}`)
	})
	stage(w, "prepare", "write", Second, 50, 0)
	w.Started(op.InstanceStart{Instance: "main.one-0", Container: "workers", Intended: 2*Second - Millisecond,
		At: 2*Second - Millisecond})
	for i := range int64(4) {
		at := op.Time(2+i) * Second
		for name, rate := range map[string]float64{"iops": 90, "bandwidth": 90 * 4096, "failed": 10, "lost": 0} {
			if i == 0 {
				rate *= 2 // in the ramp, which is not measured
			}
			w.Series(bundle.Series{
				Labels: labels("main.one-0", "main.one"),
				Series: metric.Series{Metric: "read." + name, Step: int64(Second),
					Points: []metric.Point{{At: at, Value: rate}}},
			})
		}
		if i == 0 {
			continue
		}
		h, from := hist.New(), at
		_ = h.RecordN(i*int64(Millisecond), 90) // cannot fail: the value is positive
		if i == 1 {
			from -= Second
		}
		w.Histogram(bundle.HistogramSlice{
			Labels: labels("main.one-0", "main.one"),
			Histogram: metric.Histogram{Metric: "read", Unit: metric.Nanoseconds, Basis: "response", From: from,
				To: at + Second, Hist: h},
		})
	}
	driver(w)
	return killed(t, w)
}

// raw writes a file of findings.
func raw(t testing.TB, w *bundle.Writer, name, text string) {
	t.Helper()
	if err := w.Raw("cnsbench", name, name+".json", []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func objectRun(r *bundle.Run) { r.Engine = bundle.Objects }
