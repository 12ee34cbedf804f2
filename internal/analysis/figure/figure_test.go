package figure

import (
	"slices"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

func TestMake(t *testing.T) {
	b, truth := analysistest.Demo(t)
	f, err := Make(b)
	if err != nil {
		t.Fatal(err)
	}
	if n := len(f.Timeline.Panels); n != 3 || f.Timeline.Omitted != 0 {
		t.Errorf("%d panels, %d omitted", n, f.Timeline.Omitted)
	}
	for _, l := range f.Timeline.Lanes {
		want := map[string]int{"fio": 3, "snapshots": 40}[l.Action]
		if len(l.Bars) != want {
			t.Errorf("%s has %d bars, want %d", l.Action, len(l.Bars), want)
		}
	}
	var worst float64
	for _, line := range f.Timeline.Panels[1].Latency {
		if line.Name == "canary write max" {
			for _, p := range line.Points {
				worst = max(worst, p.Value)
			}
		}
	}
	longest := truth.Freezes[7]
	if d := float64(longest.To-longest.From) - worst; d < -1e6 || d > float64(analysistest.Interval) {
		t.Errorf("the worst canary write is %g ns, the freeze took %d", worst, longest.To-longest.From)
	}
	for _, c := range f.CDFs {
		if last := c.Response[len(c.Response)-1].P; c.Action == "snapshots" && (last <= 0.9 || last >= 1) {
			t.Errorf("the curve of %s ends at %g; one op of 39 never started, one had not ended", c.Action, last)
		}
	}
}

// Every operation that moves bytes and has a latency has its bandwidth; a work's
// own figures, which its stage's have in them, are not drawn once more.
func TestBandwidths(t *testing.T) {
	series := func(name string, v float64) bundle.Series {
		return bundle.Series{
			Labels: bundle.Labels{Instance: "o-0"},
			Series: metric.Series{Metric: name + metric.Bandwidth, Step: 1e9,
				Points: []metric.Point{{At: 0, Value: v}}},
		}
	}
	var tl Timeline
	d := &dataset.Data{Bundle: &bundle.Bundle{}, Series: []bundle.Series{series("read", 0), series("small", 1),
		series("delete", 0), series("reads.small", 1)}}
	for _, name := range []string{"read", "small", "delete"} {
		h := hist.New()
		_ = h.Record(1e6) // positive
		d.Slices = append(d.Slices, bundle.HistogramSlice{
			Labels:    bundle.Labels{Instance: "o-0"},
			Histogram: metric.Histogram{Metric: name, To: 1e9, Hist: h},
		})
	}
	tl.panels(d)
	var names []string
	for _, l := range tl.Panels[0].Bandwidth {
		names = append(names, l.Name)
	}
	if !slices.Equal(names, []string{"read", "small"}) {
		t.Errorf("%q", names)
	}
}

func TestAppendRate(t *testing.T) {
	var lines []Line
	for _, p := range []Point{{0, 1000, 10}, {1000, 2000, 20}, {2000, 2010, 1030}, {3000, 3010, 40}} {
		appendRate(&lines, "read", p)
	}
	if want := []Point{{0, 1000, 10}, {1000, 2010, 30}, {3000, 3010, 40}}; !slices.Equal(lines[0].Points, want) {
		t.Errorf("%v", lines[0].Points)
	}
}

// TestLane: many bars are thinned without losing any, and overlap in rows.
func TestLane(t *testing.T) {
	var bars []Bar
	for i := range 100_000 {
		o := op.OK
		if i%1000 == 0 {
			o = op.Error
		}
		bars = append(bars, Bar{From: op.Time(i) * 1e6, To: op.Time(i)*1e6 + 5e6, N: 1, Outcome: o})
	}
	l := lane("a", bars)
	n, failed := 0, 0
	for _, b := range l.Bars {
		n += b.N
		if b.Outcome == op.Error {
			failed += b.N
		}
	}
	if len(l.Bars) > maxBars || n != 100_000 || failed != 100 || l.Rows > maxRows {
		t.Errorf("%d bars for %d ops, %d failed, in %d rows", len(l.Bars), n, failed, l.Rows)
	}
	apart := lane("a", []Bar{{From: 0, To: 10}, {From: 5, To: 20}, {From: 12, To: 15}})
	if apart.Rows != 2 || apart.Bars[1].Row != 1 || apart.Bars[2].Row != 0 {
		t.Errorf("rows: %+v", apart)
	}
}

// TestValues: declared series of a tool are in bands by unit; those beyond the limits are named.
func TestValues(t *testing.T) {
	declared := func(name, unit string, step int64) bundle.Series {
		return bundle.Series{Series: metric.Series{Metric: name, Unit: unit, Step: step,
			Traits: metric.Traits{Kind: metric.KindOf(unit)}, Points: []metric.Point{{At: 0, Value: 1}, {At: 2e9, Value: 3}}}}
	}
	var p Panel
	for _, s := range []bundle.Series{declared("tps", "1/s", 2e9), declared("aborts", "1/s", 2e9),
		declared("queue", "", 0), declared("heap", "B", 0), declared("heat", "K", 0)} {
		p.addValues(s)
	}
	if len(p.Values) != maxBands || len(p.Values[0].Lines) != 2 || len(p.Omitted) != 1 || p.Omitted[0] != "heat" {
		t.Fatalf("%+v", p)
	}
	if got := p.Values[0].Lines[0].Points; got[0] != (Point{0, 2e9, 1}) || got[1] != (Point{2e9, 4e9, 3}) {
		t.Errorf("points %v", got)
	}
	if got := p.Values[1].Lines[0].Points; got[0] != (Point{0, 2e9, 1}) { // holds until the next
		t.Errorf("points of instants %v", got)
	}
	if len(p.Lines()) != 4 {
		t.Errorf("%d lines", len(p.Lines()))
	}
}
