package timeline

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Lines of a parser continue each other; a quantile needs enough values; counters are rates, and one that went back
// gives none.
func TestOf(t *testing.T) {
	labels := bundle.Labels{Instance: "fio-0", Action: "fio"}
	series := func(at op.Time, v float64) bundle.Series {
		return bundle.Series{Labels: labels, Series: metric.Series{Metric: "read.iops", Unit: "1/s", Step: 1e9,
			Points: []metric.Point{{At: at, Value: v}}}}
	}
	slice := func(at op.Time, n int64) bundle.HistogramSlice {
		h := hist.New()
		if err := h.RecordN(1000, n); err != nil {
			t.Fatal(err)
		}
		return bundle.HistogramSlice{Labels: labels,
			Histogram: metric.Histogram{Metric: "read", Unit: "ns", From: at, To: at + 2e9, Hist: h}}
	}
	d := &dataset.Data{
		Series: []bundle.Series{series(1e9, 7), series(0, 5)},
		Slices: []bundle.HistogramSlice{slice(0, 299), slice(2e9, 298), slice(4e9, 0)},
	}
	samples := func(yield func(op.Sample, error) bool) {
		for _, s := range []op.Sample{{Instance: "fio-0", At: 0},
			{Instance: "fio-0", At: 2e9, ReadBytes: 10, CPUNanos: 1e9}, {Instance: "fio-1", At: 2e9},
			{Instance: "fio-0", At: 4e9, ReadBytes: 4, CPUNanos: 2e9, RSSBytes: 9}} {
			if !yield(s, nil) {
				return
			}
		}
	}
	want := map[string][]Point{
		"sampled cpu CPUs":           {{0, 2e9, 0.5}, {2e9, 2e9, 0.5}},
		"sampled read.bandwidth B/s": {{0, 2e9, 5}},
		"sampled rss B":              {{4e9, 0, 9}},
		"slices read.max ns":         {{0, 2e9, 1000}, {2e9, 2e9, 1000}},
		"slices read.p50 ns":         {{0, 2e9, 1000}, {2e9, 2e9, 1000}},
		"slices read.p99 ns":         {{0, 2e9, 1000}},
		"tool read.iops 1/s":         {{0, 1e9, 5}, {1e9, 1e9, 7}},
	}
	got := map[string][]Point{}
	lines, err := Of(d, samples)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range lines {
		if l.Labels != labels {
			t.Errorf("%+v: a line of an instance that did nothing", l.Labels)
		}
		got[l.Source+" "+l.Metric+" "+l.Unit] = l.Points
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
