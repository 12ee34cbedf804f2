package dataset

import (
	"encoding/json"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// An I/O that had not ended bounds nothing beyond what the canary saw.
func TestCanaryUntil(t *testing.T) {
	for _, tt := range []struct {
		name string
		ios  []op.CanaryIO
		want op.Time
	}{
		{"none", nil, op.Never},
		{"the last to end", []op.CanaryIO{{Intended: 10, Ended: 90}, {Intended: 20, Ended: 21}}, 90},
		{"the last that was due", []op.CanaryIO{{Intended: 10, Ended: 11}, {Intended: 20, Ended: op.Never}}, 20},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := (&Canary{IOs: tt.ios}).Until(); got != tt.want {
				t.Errorf("Until() = %d, want %d", got, tt.want)
			}
		})
	}
}

// TestObjectRate: parts of one work that end at different times: it is their sum over the time of all, not the sum of
// what each did in its own.
func TestObjectRate(t *testing.T) {
	const s = op.Time(1e9)
	scalar := func(instance, name string, v float64) bundle.Scalar {
		return bundle.Scalar{
			Labels: bundle.Labels{Instance: instance, Action: "o"},
			Scalar: metric.Scalar{Metric: name, Unit: "1/s", Value: v},
		}
	}
	d := Data{Scalars: []bundle.Scalar{scalar("o-0", "read.iops", 50), scalar("o-1", "read.iops", 12.5),
		scalar("fio-0", "read.iops", 1000), scalar("fio-1", "read.iops", 1)},
		Totals: []bundle.HistogramSlice{{
			Labels:    bundle.Labels{Instance: "o-0"},
			Histogram: metric.Histogram{Metric: "read", From: 1 * s, To: 2 * s},
		}, {
			Labels:    bundle.Labels{Instance: "o-1"},
			Histogram: metric.Histogram{Metric: "read", From: 1 * s, To: 5 * s},
		}, {
			Labels:    bundle.Labels{Instance: "fio-0"},
			Histogram: metric.Histogram{Metric: "read", From: 0, To: 100 * s},
		}}}
	if err := json.Unmarshal([]byte(`{"actions":[{"name":"o","createObjSpec":{"objectSpec":{}}},{"name":"fio","createObjSpec":{}}]}`), &d.Spec); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]float64{"o": 25, "o-0": 50, "o-1": 12.5, "fio": 1001} {
		f, ok := d.Figure("read.iops", Selection{Instance: func(instance string, _ int) bool {
			return instance == name || ActionOf(instance) == name
		}})
		if !ok || f.Value != want {
			t.Errorf("%s: %g a second, want %g", name, f.Value, want)
		}
	}
}
