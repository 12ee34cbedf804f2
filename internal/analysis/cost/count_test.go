package cost_test

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestCount: I/Os without latencies count where the tool counted them, each once, and an action whose I/Os are unknown
// is named, as is that the cost of one is an upper bound.
func TestCount(t *testing.T) {
	t.Parallel()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "b"), bundle.Run{ID: "a", Engine: "local", EndedAt: op.Never,
		Spec: json.RawMessage(`{"spec":{"actions":[]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Environment(bundle.Environment{Hostname: "large"}); err != nil {
		t.Fatal(err)
	}
	of := func(instance string) bundle.Labels {
		return bundle.Labels{Instance: instance, Action: dataset.ActionOf(instance)}
	}
	h := hist.New()
	_ = h.RecordN(1000, 3000) // a valid value
	w.Histogram(bundle.HistogramSlice{Labels: of("fio-0"), Total: true,
		Histogram: metric.Histogram{Metric: metric.Read, Unit: metric.Nanoseconds, Hist: h, To: hour}})
	for _, x := range []struct {
		instance, metric string
		value            float64
	}{
		{"fio-0", "read.ios", 3000}, {"fio-0", "write.ios", 500}, // of writes there are no latencies
		{"fast-0", "read.ios", 7000}, {"fast-0", "job.read.ios", 7000}, // gtod_reduce=1
		{"cut-0", "write.ok", 200}, {"cut-0", "write.iops", 2},
		{"dd-0", "write.bytes", 1e9}, {"dd-1", "write.bytes", 1e9},
	} {
		w.Scalar(bundle.Scalar{Labels: of(x.instance), Scalar: metric.Scalar{Metric: x.metric, Value: x.value}})
	}
	for _, name := range []string{"fio-0", "fast-0", "cut-0", "dd-0", "dd-1"} {
		w.Started(op.InstanceStart{Instance: name, Container: "c", At: 0})
	}
	if err := w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, hour }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	d, err := dataset.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	u, err := cost.Read(d)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "I/Os", *u.IOs, 3000+500+7000+200)
	r := cost.Of(u, parse(t, prices))
	if !slices.Contains(r.Without, "I/Os of dd, which has neither latencies nor counts") {
		t.Errorf("without %q", r.Without)
	}
	for _, rate := range r.Rates {
		want := map[string]string{cost.PerIOs: "at most: the I/Os of dd are unknown", cost.PerOps: "there were none",
			cost.PerGB: "not observed", cost.PerGBMonth: "there were none"}[rate.Name]
		if rate.Reason != want {
			t.Errorf("%s: %q, want %q", rate.Name, rate.Reason, want)
		}
	}
}
