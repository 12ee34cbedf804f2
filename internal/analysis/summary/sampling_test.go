package summary_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestSamplingCost: the CPU time of the samples of two instances is that of each level, over the time of its samples.
func TestSamplingCost(t *testing.T) {
	t.Parallel()
	const s = op.Time(1e9)
	w, err := bundle.Create(t.TempDir(), bundle.Run{ID: "s", Name: "s", Engine: "local",
		Sampling: &bundle.Sampling{Level: op.SampleDetailed, IntervalNs: int64(s), MaxOverhead: 0.001}})
	if err != nil {
		t.Fatal(err)
	}
	for at := op.Time(0); at <= 10; at++ {
		x := op.Sample{At: at * s, Level: op.SampleDetailed, SamplerNanos: int64(at) * 2e6}
		if at > 5 {
			x.Level, x.SamplerNanos = op.SampleBasic, 10e6+int64(at-5)*1e5
		}
		for _, x.Instance = range []string{"fio-0", "fio-1"} {
			w.Sample(x)
		}
	}
	if err := w.Close(func(r *bundle.Run) {
		r.State, r.BarrierAt, r.EndedAt = bundle.Complete, 0, 10*s
		r.Sampling.Steps = []bundle.SamplingStep{{At: 5 * s, Level: op.SampleBasic, Overhead: 0.004}}
	}); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	want := []summary.SamplingCost{{Level: op.SampleDetailed, Samples: 10, CPUShare: 0.004, EachNs: 2e6},
		{Level: op.SampleBasic, Samples: 8, CPUShare: 0.0002, EachNs: 1e5}}
	if diff := cmp.Diff(want, sum.Sampling.Costs); diff != "" {
		t.Error(diff)
	}
	const text = "detailed, each 1s; detailed took 0.4 % of a CPU (n=10, 2 ms each); basic took 0.02 % of a CPU " +
		"(n=8, 100 µs each); at 5.00 s down to basic, since it took 0.4 %"
	if got := sum.Sampling.Text(); got != text {
		t.Errorf("got  %s\nwant %s", got, text)
	}
}

// TestDetail: waits and pressures are from the start of the measurement, and what was not observed is no value.
func TestDetail(t *testing.T) {
	t.Parallel()
	const s = op.Time(1e9)
	w, err := bundle.Create(t.TempDir(), bundle.Run{ID: "s", Name: "s", Engine: "local"})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fio-0", "fio-1"} {
		w.Started(op.InstanceStart{Instance: name, Intended: 2 * s, At: 2 * s})
		for at := int64(0); at <= 12; at += 2 {
			x := op.SampleDetail{IOWaitNanos: max(0, at-2) * 5e8, CPUPressureNanos: -1, IOPressureNanos: -1,
				MemoryPressureNanos: -1, PressureMissing: op.SharedCgroup,
				Volumes: []op.VolumeUse{{Volume: name + "-data", UsedBytes: at, FreeBytes: 100 - at,
					UsedInodes: 1, FreeInodes: 9}}}
			if name == "fio-1" {
				x.PressureMissing = ""
				x.CPUPressureNanos, x.IOPressureNanos, x.MemoryPressureNanos = at*1e8, at*4e8, 0
				x.Volumes[0].UsedBytes = 4 * at
			}
			w.Sample(op.Sample{Instance: name, At: op.Time(at) * s, Level: op.SampleDetailed, Detail: &x})
		}
		w.Sample(op.Sample{Instance: name, At: 13 * s, Level: op.SampleBasic})
	}
	if err := w.Close(func(r *bundle.Run) { r.State, r.BarrierAt, r.EndedAt = bundle.Complete, 2*s, 14*s }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	const text = "1 threads waited for block I/O on average; pressure: CPU 10 %, I/O 40 %, memory 0 %; " +
		"pressure not observed: the workload shares the control group of the runner, as always on engine local; " +
		"fullest volume: fio-1-data, 35 %"
	if got := sum.Workloads[0].DetailText(); got != text {
		t.Errorf("got  %s\nwant %s", got, text)
	}
	if x := sum.Workloads[0].Instances[0].Detail; *x.IOWaitThreads != 0.5 || x.IOPressure != nil || len(x.Volumes) != 1 {
		t.Errorf("%+v", x)
	}
}

// TestVolumeStats: the last answers of drivers and the number of abnormal ones are those of each volume, failures and
// drivers without statistics are said, and the cost is that of the level detailed.
func TestVolumeStats(t *testing.T) {
	t.Parallel()
	const s = op.Time(1e9)
	w, err := bundle.Create(t.TempDir(), bundle.Run{ID: "s", Name: "s", Engine: "local",
		Sampling: &bundle.Sampling{Level: op.SampleDetailed, IntervalNs: int64(s)}})
	if err != nil {
		t.Fatal(err)
	}
	w.Volume(op.VolumeReading{Driver: "b.example", At: 0, Problem: "Unimplemented", Message: "the driver lacks it"})
	for at := op.Time(0); at <= 4; at++ {
		w.Sample(op.Sample{Instance: "fio-0", At: at * s, Level: op.SampleDetailed, SamplerNanos: int64(at) * 1e6})
		abnormal := at == 2
		full := op.VolumeReading{Volume: "full", Driver: "a.example", At: at * s, SamplerNanos: int64(at) * 2e6,
			Bytes: &op.VolumeAmount{Total: 100, Used: 50 + int64(at), Available: 50 - int64(at)}, Abnormal: &abnormal}
		if abnormal {
			full.Message = "a path is lost"
		}
		w.Volume(full)
		half := op.VolumeReading{Volume: "few-inodes", Driver: "a.example", At: at * s, SamplerNanos: int64(at)*2e6 + 1e6,
			Inodes: &op.VolumeAmount{Total: 10, Used: 9, Available: 1}}
		if at == 3 {
			half = op.VolumeReading{Volume: "few-inodes", Driver: "a.example", At: at * s, SamplerNanos: int64(at)*2e6 + 1e6,
				Problem: "Internal", Message: "no answer"}
		}
		w.Volume(half)
	}
	if err := w.Close(func(r *bundle.Run) { r.State, r.BarrierAt, r.EndedAt = bundle.Complete, 0, 5*s }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	sum, err := summary.Make(b)
	if err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	want := []summary.VolumeStats{{Volume: "few-inodes", Driver: "a.example", Readings: 4, Failed: 1,
		Inodes: &op.VolumeAmount{Total: 10, Used: 9, Available: 1}}, {Volume: "full", Driver: "a.example", Readings: 5,
		Bytes: &op.VolumeAmount{Total: 100, Used: 54, Available: 46}, Abnormal: &one}}
	if diff := cmp.Diff(want, sum.Volumes, cmpopts.IgnoreUnexported(summary.VolumeStats{})); diff != "" {
		t.Error(diff)
	}
	const text = "detailed, each 1s; detailed took 0.1 % of a CPU (n=4, 1 ms each); statistics of volumes by CSI took " +
		"at " +
		"most 0.22 % of a CPU (n=9)"
	if got := sum.Sampling.Text(); got != text {
		t.Errorf("got  %s\nwant %s", got, text)
	}
	flags := map[string]string{}
	for _, f := range sum.Validity {
		flags[f.Name] = f.Severity + " " + f.Evidence
	}
	for name, part := range map[string]string{
		"volumeAbnormal": "warning the driver reports an abnormal condition: volume full: in 1 of 5 readings, the first at " +
			"2.00 s: a path is lost",
		"volumeStatsMissing": "info statistics of volumes by their drivers are missing: driver b.example: the driver lacks " +
			"it; volume few-inodes: 1 of 5 readings failed, the first at 3.00 s: Internal: no answer"} {
		if flags[name] != part {
			t.Errorf("%s:\ngot  %s\nwant %s", name, flags[name], part)
		}
	}
}
