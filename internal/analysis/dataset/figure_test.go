package dataset

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

func scalarOf(instance, name, unit string, t metric.Traits, v float64) bundle.Scalar {
	return bundle.Scalar{Labels: bundle.Labels{Instance: instance, Action: ActionOf(instance)},
		Scalar: metric.Scalar{Metric: name, Unit: unit, Traits: t, Value: v}}
}

func seriesOf(instance, name, unit string, t metric.Traits, values ...float64) bundle.Series {
	s := bundle.Series{Labels: bundle.Labels{Instance: instance, Action: ActionOf(instance)},
		Series: metric.Series{Metric: name, Unit: unit, Traits: t, Step: 1e9}}
	for i, v := range values {
		s.Points = append(s.Points, metric.Point{At: op.Time(i) * 1e9, Value: v})
	}
	return s
}

// later shifts a series.
func later(by op.Time, s bundle.Series) bundle.Series {
	for i := range s.Points {
		s.Points[i].At += by
	}
	return s
}

// TestFigureOfExtremes: minima, maxima and percentiles have no mean, over instances (those of go-ycsb were 157, 175 and
// 206 ms, and the mean stood there as the maximum) and over the lives of one.
func TestFigureOfExtremes(t *testing.T) {
	for _, tt := range []struct {
		traits metric.Traits
		want   float64
	}{
		{metric.Traits{Kind: metric.Level, Better: metric.Lower}, (157 + (175+206)/2.0) / 2},
		{metric.Traits{Kind: metric.Greatest, Better: metric.Lower}, 206},
		{metric.Traits{Kind: metric.Least, Better: metric.Lower}, 157},
		{metric.Traits{Kind: metric.Statistic, Better: metric.Lower}, 206},
		{metric.Traits{Kind: metric.Statistic, Better: metric.Higher}, 157},
	} {
		d := &Data{Scalars: []bundle.Scalar{scalarOf("y-0", "m", "ns", tt.traits, 157),
			scalarOf("y-1", "m", "ns", tt.traits, 175), scalarOf("y-1", "m", "ns", tt.traits, 206)}}
		f, ok := d.Figure("m", Selection{Instance: func(string, int) bool { return true }})
		if !ok || f.Value != tt.want || f.Instances != 2 {
			t.Errorf("%v: %+v, want %v", tt.traits, f, tt.want)
		}
	}
}

// TestFigure: how values of instances and of time are combined follows from the kind.
func TestFigure(t *testing.T) {
	rate, level := metric.Traits{Kind: metric.Rate, Better: metric.Higher}, metric.Traits{Kind: metric.Level}
	quantity := metric.Traits{Kind: metric.Quantity}
	d := &Data{
		Scalars: []bundle.Scalar{
			scalarOf("pg-0", "tps", "1/s", rate, 100), scalarOf("pg-1", "tps", "1/s", rate, 50),
			scalarOf("pg-0", "lag", "ns", level, 10), scalarOf("pg-1", "lag", "ns", level, 20),
			scalarOf("pg-0", "failed", "1", quantity, 3), scalarOf("pg-1", "failed", "1", quantity, 4),
			scalarOf("pg-0", "old", "B", metric.Traits{}, 3), scalarOf("pg-1", "old", "B", metric.Traits{}, 4),
			// The pod of kv-0 was replaced.
			scalarOf("kv-0", "tps", "1/s", rate, 90), scalarOf("kv-0", "tps", "1/s", rate, 10),
			scalarOf("kv-0", "failed", "1", quantity, 1), scalarOf("kv-0", "failed", "1", quantity, 2),
			scalarOf("other-0", "tps", "1/s", rate, 7),
		},
		Series: []bundle.Series{
			seriesOf("pg-0", "tps", "1/s", rate, 130, 70), seriesOf("pg-1", "tps", "1/s", rate, 40, 60),
			seriesOf("kv-0", "tps", "1/s", rate, 90, 90, 90), later(20e9, seriesOf("kv-0", "tps", "1/s", rate, 10)),
			seriesOf("pg-0", "written", "1", quantity, 1, 2), seriesOf("pg-1", "written", "1", quantity, 5),
		},
	}
	of := func(action string) Selection {
		return Selection{Instance: func(instance string, _ int) bool { return ActionOf(instance) == action }}
	}
	firstSecond := of("pg")
	firstSecond.Slice = func(_ string, from, _ op.Time) bool { return from == 0 }
	for _, tt := range []struct {
		name      string
		of        Selection
		value     float64
		min, max  float64
		instances int
		kind      metric.Kind
	}{
		{"tps", of("pg"), 150, 50, 100, 2, metric.Rate},
		{"lag", of("pg"), 15, 10, 20, 2, metric.Level},
		{"failed", of("pg"), 7, 3, 4, 2, metric.Quantity},
		{"old", of("pg"), 7, 3, 4, 2, metric.Quantity},
		{"written", of("pg"), 8, 3, 5, 2, metric.Quantity},
		{"tps", firstSecond, 170, 40, 130, 2, metric.Rate},
		{"tps", of("kv"), 70, 70, 70, 1, metric.Rate},
		{"failed", of("kv"), 3, 3, 3, 1, metric.Quantity},
	} {
		f, ok := d.Figure(tt.name, tt.of)
		if !ok || f.Value != tt.value || f.Min != tt.min || f.Max != tt.max || f.Instances != tt.instances ||
			f.Kind != tt.kind {
			t.Errorf("%s: %+v, want %+v", tt.name, f, tt)
		}
	}
	if f, ok := d.Figure("absent", of("pg")); ok {
		t.Errorf("a figure of nothing: %+v", f)
	}
	var names []string
	for _, f := range d.Figures(of("pg")) {
		names = append(names, f.Metric)
	}
	if got := strings.Join(names, " "); got != "failed lag tps written" { // old has no declared kind
		t.Errorf("figures %s", got)
	}
}
