package validity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

func TestCheck(t *testing.T) {
	good := Action{Name: "a", N: 100, Started: 100, Scheduled: true, ResponseP50Ns: 1e9, LatenessP99Ns: 1e5,
		OfferedPerSecond: 10, StartedPerSecond: 10}
	change := func(f func(*Action)) []Action {
		a := good
		f(&a)
		return []Action{a}
	}
	second := op.Time(1e9)
	tests := []struct {
		name    string
		actions []Action
		data    func(*dataset.Data)
		want    map[string]string
	}{
		{"nothing wrong", []Action{good}, nil, map[string]string{}},
		{"late in the tail", change(func(a *Action) { a.LatenessP99Ns = 110e6 }), nil,
			map[string]string{"dispatchLate": Warning}},
		{"late, but little beside the response", change(func(a *Action) { a.LatenessP99Ns = 20e6 }), nil,
			map[string]string{}},
		{"late, but shortly", change(func(a *Action) { a.LatenessP99Ns, a.ResponseP50Ns = 2e6, 10e6 }), nil,
			map[string]string{}},
		{"late in the middle", change(func(a *Action) {
			a.LatenessP50Ns, a.LatenessP99Ns, a.ResponseP50Ns = 1e6, 2e6,
				10e6
		}), nil, map[string]string{"dispatchLate": Warning}},
		{"few late", change(func(a *Action) { a.Started, a.LatenessP50Ns, a.LatenessP99Ns = 19, 200e6, 200e6 }), nil,
			map[string]string{"dispatchLate": Info}},
		{"late once at the start", change(func(a *Action) {
			a.Scheduled, a.LatenessP50Ns, a.LatenessP99Ns = false,
				200e6, 200e6
		}), nil, map[string]string{}},
		{"late, all failed", change(func(a *Action) { a.LatenessP99Ns, a.ResponseP50Ns = 200e6, 0 }), nil,
			map[string]string{}},
		{"one in a thousand failed", change(func(a *Action) { a.N, a.Failed = 1000, 1 }), nil,
			map[string]string{"failedOps": Info}},
		{"some failed", change(func(a *Action) { a.Failed = 5 }), nil, map[string]string{"failedOps": Warning}},
		{"many cut off", change(func(a *Action) { a.Censored = 50 }), nil, map[string]string{"failedOps": Invalid}},
		{"dropped", change(func(a *Action) { a.Dropped = 1 }), nil, map[string]string{"droppedOps": Warning}},
		{"behind", change(func(a *Action) { a.StartedPerSecond = 9 }), nil,
			map[string]string{"achievedBelowOffered": Warning}},
		{"behind by less than an op", change(func(a *Action) { a.N, a.Started, a.StartedPerSecond = 12, 12, 9.8 }), nil,
			map[string]string{}},
		{"clock", change(func(a *Action) { a.MaxErrorNs = 2e7 }), nil, map[string]string{"clockError": Warning}},
		{"clock, of a span", change(func(a *Action) { a.DoubtfulSpans = []string{"ready"} }), nil,
			map[string]string{"clockError": Info}},
		{
			"time that may be the driver's", change(func(a *Action) { a.DriverUnseen = 0.99 }), nil,
			map[string]string{"driverUnseen": Info},
		},
		{"skew", nil, func(d *dataset.Data) {
			d.Instances[1].Starts = []op.InstanceStart{{Instance: "fio-1", Intended: 0, At: second}}
		}, map[string]string{"startSkew": Warning}},
		{"killed after its phase", nil, func(d *dataset.Data) {
			d.Instances[1].End = &op.InstanceEnd{OK: true, Containers: []op.ContainerEnd{
				{Name: "fio", Signal: "SIGTERM", PhaseOver: true},
				{Name: "fio-phase-1", Signal: "SIGKILL", PhaseOver: true, Message: "still running 5s after its phase"},
			}}
		}, map[string]string{"phaseKilled": Warning}},
		{"wall clock set", nil, func(d *dataset.Data) {
			before, after := int64(0), int64(-3600e9)
			d.Machines = append(d.Machines, op.Machine{ID: "m", At: second, WallAheadNanos: &before},
				op.Machine{ID: "m", At: 2 * second, WallAheadNanos: &after})
		}, map[string]string{"clockStep": Warning}},
		{"generator busy", nil, func(d *dataset.Data) {
			changeSamples(d, func(s *op.Sample) { s.CPUNanos = int64(s.At) * 13 / 10 }) // 3 instances on 4 CPUs
		}, map[string]string{"generatorCPUBound": Warning}},
		{"busy in turn", nil, func(d *dataset.Data) {
			from := map[string]op.Time{"fio-0": 0, "fio-1": 100 * second, "fio-2": 200 * second}
			changeSamples(d, func(s *op.Sample) {
				s.CPUNanos = int64(s.At) * 13 / 10
				s.At += from[s.Instance]
			})
		}, map[string]string{}},
		{"busy for an instant", nil, func(d *dataset.Data) {
			d.Samples = []dataset.Sampled{{Instance: "fio-0", First: op.Sample{At: second},
				Last: op.Sample{At: second + 1e6, CPUNanos: 1e7}}}
		}, map[string]string{}},
		{"cached reads", nil, func(d *dataset.Data) {
			changeSamples(d, func(s *op.Sample) { s.ReadBytes /= 2 })
		}, map[string]string{"readsFromCache": Invalid}},
		{"reads of a file system without a device", nil, func(d *dataset.Data) {
			changeSamples(d, func(s *op.Sample) { s.ReadBytes, s.Uncounted = 0, op.FileSystemOf("FUSE") })
		}, map[string]string{"deviceReadsUnknown": Info}},
		{"reads of which no counters are readable", nil, func(d *dataset.Data) {
			changeSamples(d, func(s *op.Sample) { s.ReadBytes, s.Uncounted = 0, op.CountersClosed })
		}, map[string]string{"deviceReadsUnknown": Info}},
		{"output missing", nil, func(d *dataset.Data) {
			d.Instances = append(d.Instances, bundle.Instance{Name: "fio-7"})
		}, map[string]string{"outputMissing": Invalid}},
		{"recorded before", nil, func(d *dataset.Data) {
			d.Bundle.Run.Validity = []bundle.Flag{{Name: "gtodReduce", Severity: Invalid, Evidence: "job 1"}}
		}, map[string]string{"gtodReduce": Invalid}},
	}
	b, _ := analysistest.Demo(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			own := *b
			d, err := dataset.Read(&own)
			if err != nil {
				t.Fatal(err)
			}
			if tt.data != nil {
				tt.data(d)
			}
			got := map[string]string{}
			for _, f := range Check(d, tt.actions) {
				if got[f.Name] = f.Severity; f.Evidence == "" {
					t.Errorf("%s has no evidence", f.Name)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// changeSamples changes the samples that flags depend on.
func changeSamples(d *dataset.Data, f func(*op.Sample)) {
	for i := range d.Samples {
		f(&d.Samples[i].First)
		f(&d.Samples[i].Last)
	}
}

// TestMissingOutputs: one flag an action, none where no output is expected.
func TestMissingOutputs(t *testing.T) {
	b, _ := analysistest.Demo(t)
	for _, path := range []string{"raw/w-0/main/out.txt", "raw/w-1/main/out.txt", "raw/x-0/main/empty.txt"} {
		path = filepath.Join(b.Dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		text := []byte("some")
		if strings.Contains(path, "empty") {
			text = nil
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fio-3", "fio-4", "fio-5", "fio-6", "fio-7", "fio-8", "w-0", "w-1", "x-0", "y-0"} {
		d.Instances = append(d.Instances, bundle.Instance{Name: name})
	}
	want := []bundle.Flag{
		{Name: "outputMissing", Severity: Invalid, Evidence: "no figures of 6 instances (fio-3, fio-4, fio-5, fio-6, fio-7, …); other instances of fio have some",
			Sources: []string{"fio-3", "fio-4", "fio-5", "fio-6", "fio-7", "fio-8"}},
		{Name: "outputMissing", Severity: Info, Evidence: "2 instances (w-0, w-1) left output without figures"},
	}
	if diff := cmp.Diff(want, Check(d, nil)); diff != "" {
		t.Error(diff)
	}
}

// TestCheckTwice: flags recorded in the bundle are not repeated.
func TestCheckTwice(t *testing.T) {
	d, err := dataset.Read(analysistest.Killed(t))
	if err != nil {
		t.Fatal(err)
	}
	first := Check(d, []Action{{Name: "a", N: 2, Dropped: 1}})
	d.Bundle.Run.Validity = first
	if diff := cmp.Diff(first, Check(d, []Action{{Name: "a", N: 2, Dropped: 1}})); diff != "" || len(first) != 2 {
		t.Errorf("%d flags; %s", len(first), diff)
	}
}
