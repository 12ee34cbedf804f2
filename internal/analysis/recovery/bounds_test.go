package recovery

import (
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// late are the slices of a tool with 100 operations a second, of which one lasts from 18 s to 23 s and has a rate of its own.
func late(rate float64) []bundle.Series {
	s := bundle.Series{Series: metric.Series{Metric: "tps", Unit: metric.PerSecond, Step: int64(second),
		Traits: metric.Traits{Kind: metric.Rate, Better: metric.Higher}}}
	s.Instance = "pg-0"
	one := s
	one.Step, one.Points = int64(5*second), []metric.Point{{At: 18 * second, Value: rate}}
	for at := range op.Time(60) {
		if at < 18 || at >= 23 {
			s.Points = append(s.Points, metric.Point{At: at * second, Value: 100})
		}
	}
	return []bundle.Series{s, one}
}

// TestBounds: of a slice that is longer than the step the times are bounds; what the counters of the processes know
// narrows them.
func TestBounds(t *testing.T) {
	for _, tt := range []struct {
		name               string
		rate               float64
		idle               dataset.Union
		serving, recovered string
	}{
		{"all may have come at once", 100, nil, "0 s … 3 s", "0 s … 3 s"},
		{"too few for the level throughout", 30, nil, "0 s … 3 s", "1.33 s … 3 s"},
		{"the processes did nothing", 100, dataset.Union{{From: 205 * second / 10, To: 225 * second / 10}}, "2.5 s … 3 s",
			"2.5 s … 3 s"},
		{"the counters see no operations", 100, dataset.Union{{From: 0, To: 60 * second}}, "0 s … 3 s", "0 s … 3 s"},
	} {
		d := &dataset.Data{Bundle: &bundle.Bundle{}, Series: late(tt.rate),
			Samples: []dataset.Sampled{{Instance: "pg-0", Idle: tt.idle}}}
		d.Bundle.Run.EndedAt = 60 * second
		list := Of(d, []dataset.Window{kill(20)}, Share)
		if len(list) != 1 || list[0].Serving == nil {
			t.Errorf("%s: %+v", tt.name, list)
			continue
		}
		if r := list[0]; r.Serving.String() != tt.serving || r.Recovered.String() != tt.recovered {
			t.Errorf("%s: serving %s, recovered %s, want %s, %s", tt.name, r.Serving, r.Recovered, tt.serving, tt.recovered)
		}
		if low, high := list[0].Serving.Bounds(); low > 3e9 || high < 3e9 {
			t.Errorf("%s: from %g to %g", tt.name, low, high)
		}
	}
}

// TestBoundsOfNextOp: the search ends at the next op, also within a slice.
func TestBoundsOfNextOp(t *testing.T) {
	d := &dataset.Data{Bundle: &bundle.Bundle{}, Series: late(100)}
	d.Bundle.Run.EndedAt = 60 * second
	list := Of(d, []dataset.Window{kill(20), kill(22)}, Share)
	if len(list) != 2 || list[0].Serving == nil || list[0].Serving.String() != "≥ 0 ns" {
		t.Errorf("%+v", list)
	}
}
