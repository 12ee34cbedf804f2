package figure

import (
	"path/filepath"
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
	f, err := Make(b, []int64{7})
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
	for _, c := range f.Actions {
		if last := c.Response[len(c.Response)-1].P; c.Name == "snapshots" && (last <= 0.9 || last >= 1) {
			t.Errorf("the curve of %s ends at %g; one op of 39 never started, one had not ended", c.Name, last)
		}
	}
	slow := slices.IndexFunc(f.Ops, func(o op.Op) bool { return o.ID == f.Actions[1].Slowest })
	took, _ := f.Ops[slow].Response()
	if slow < 0 || took != slices.Max(truth.Responses) {
		t.Errorf("the slowest snapshot took %d, want %d", took, slices.Max(truth.Responses))
	}
	if !slices.ContainsFunc(f.Ops, func(o op.Op) bool { return o.ID == 7 }) || !slices.IsSortedFunc(f.Ops,
		func(a, b op.Op) int { return int(a.ID - b.ID) }) {
		t.Errorf("op 7 is not among the %d", len(f.Ops))
	}
}

// Most operations never started, so that the median of all is infinite. The one that is drawn is the median of the
// rest.
func TestMedianOfFewStarted(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "b")
	w, err := bundle.Create(dir, bundle.Run{ID: "r", Name: "mk", Engine: "local", EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	for i := range int64(30) {
		o := op.Op{ID: i + 1, Action: "mk", Kind: op.Create, Outcome: op.Dropped, Started: op.Never, Ended: op.Never}
		if i < 11 {
			o.Outcome, o.Started, o.Ended = op.OK, 0, op.Time(i+1)*1e6
		}
		w.Op(o)
	}
	if err := w.Close(func(r *bundle.Run) { r.EndedAt = 1e9 }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	f, err := Make(b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.Actions[0].Median; got != 6 {
		t.Errorf("op %d is the median, want 6 of the 11 that ended", got)
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

func TestAddRates(t *testing.T) {
	var l Line
	for _, p := range []Point{{0, 1000, 10}, {1000, 2000, 20}, {2000, 2010, 1030}, {3000, 3010, 40}} {
		l.addRates([]metric.Point{{At: p.From, Value: p.Value}}, p.To-p.From)
	}
	if want := []Point{{0, 1000, 10}, {1000, 2010, 30}, {3000, 3010, 40}}; !slices.Equal(l.Points, want) {
		t.Errorf("%v", l.Points)
	}
}

// TestLane: a lane with too many ops has no bars and counts all; bars that overlap are in rows.
func TestLane(t *testing.T) {
	var many tally
	for i := range 100_000 {
		o := op.Op{Intended: op.Time(i) * 1e6, Started: op.Time(i) * 1e6, Ended: op.Time(i)*1e6 + 5e6, Outcome: op.OK}
		if i%1000 == 0 {
			o.Outcome = op.Error
		}
		many.add(&o, 0)
	}
	l := lane(&many)
	var n, failed, due, rows int
	var busyNs int64
	for i, b := range l.Heat.Bins {
		n, failed, due, busyNs = n+b.OK, failed+b.Failed, due+b.Due, busyNs+b.BusyNs
		for _, count := range b.Rows {
			rows += count
		}
		if i == 10 && l.Heat.InFlight(i) != 5 {
			t.Errorf("%g ops are in flight, want 5", l.Heat.InFlight(i))
		}
	}
	if len(l.Bars) != 0 || n != 99_900 || failed != 100 || due != 100_000 || rows != n || busyNs != 500_000e6 ||
		l.Heat.Step != 1e9 || len(l.Heat.Bins) > heatBins {
		t.Errorf("%d bars, %d ok, %d failed, %d due, %d in rows, %d ns, %d bins of %d", len(l.Bars), n, failed, due, rows,
			busyNs, len(l.Heat.Bins), l.Heat.Step)
	}
	apart := lane(&tally{bars: []Bar{{From: 0, To: 10}, {From: 5, To: 20}, {From: 12, To: 15}}})
	if apart.Rows != 2 || apart.Bars[1].Row != 1 || apart.Bars[2].Row != 0 {
		t.Errorf("rows: %+v", apart)
	}
}

// The timeline is as long as all instances, of which only some have a panel.
func TestExtendOverAllInstances(t *testing.T) {
	at := func(to op.Time) Panel { return Panel{Latency: []Line{{Name: "read p99", Points: []Point{{0, to, 1}}}}} }
	all := at(90e9)
	tl := Timeline{Panels: []Panel{at(50e9)}, All: &all, Omitted: 1}
	tl.extend(&dataset.Data{Bundle: &bundle.Bundle{Run: bundle.Run{BarrierAt: op.Never}}})
	if tl.From != 0 || tl.To != 90e9 {
		t.Errorf("from %d to %d, want the 90 s of all", tl.From, tl.To)
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

// TestHeat: ops without an end, before the start or never started are counted once each, and bins grow with time only.
func TestHeat(t *testing.T) {
	var h Heat
	for _, o := range []op.Op{
		{Intended: -1e9, Started: -1e9, Ended: 1e9, Outcome: op.OK},
		{Intended: 1e9, Started: op.Never, Ended: op.Never, Outcome: op.Dropped},
		{Intended: 2e9, Started: 3e9, Ended: op.Never, Outcome: op.Censored},
		{Intended: 2e9, Started: 2e9, Ended: 4e9, Outcome: op.Timeout},
	} {
		h.add(&o, 200e9)
	}
	if h.Step != 2e9 || len(h.Bins) != 101 || h.First != -1e9 || h.Last != 200e9 {
		t.Errorf("%d bins of %d, from %d to %d", len(h.Bins), h.Step, h.First, h.Last)
	}
	first, second := h.Bins[0], h.Bins[1]
	if first.Due != 2 || first.OK != 1 || first.Dropped != 1 || first.NotOK != 1 || first.Rows[rowOf(2e9)] != 1 ||
		second.Due != 2 || h.Bins[100].Late != 1 || h.Bins[2].Late != 1 || second.BusyNs != 1e9+2e9 {
		t.Errorf("%+v\n%+v", first, second)
	}
	if from, to := RowNs(rowOf(2e9)); from > 2e9 || to <= 2e9 || to > 1.3*from {
		t.Errorf("2 s is in %g to %g", from, to)
	}
	if h.Spread() != 2 {
		t.Errorf("ops were due in %d bins", h.Spread())
	}
}

// TestTogether: bandwidths of instances are added, of latencies the greatest counts, and each name is one line.
func TestTogether(t *testing.T) {
	of := func(v float64, canary string) Panel {
		return Panel{Bandwidth: []Line{{"read", []Point{{0, 1e9, v}, {1e9, 3e9, 2 * v}}}},
			Latency: []Line{{canary, []Point{{0, 1e9, 10 * v}}}}}
	}
	all := together([]Panel{of(1, "canary read max a"), of(2, "canary read max b")})
	if want := []Point{{0, 1e9, 3}, {1e9, 2e9, 6}, {2e9, 3e9, 6}}; !slices.Equal(all.Bandwidth[0].Points, want) {
		t.Errorf("bandwidth %v", all.Bandwidth[0].Points)
	}
	if l := all.Latency; len(l) != 1 || l[0].Name != "canary read max" || l[0].Points[0] != (Point{0, 1e9, 20}) {
		t.Errorf("latency %v", l)
	}
	if together(nil) != nil {
		t.Error("no instance has a panel")
	}
}

// TestWaterfall: a call is within the step that it belongs to, and the op is covered from its intended instant.
func TestWaterfall(t *testing.T) {
	o := op.Op{Kind: op.Snapshot, Intended: 0, Started: 10, Ended: 110, Outcome: op.OK, Milestones: []op.Milestone{
		{Name: "acked", At: 20}, {Name: "CreateSnapshot.start", At: 30}, {Name: "freeze.start", At: 40},
		{Name: "freeze.end", At: 80}, {Name: "CreateSnapshot.end", At: 90}, {Name: "ready", At: 110}}}
	w := WaterfallOf(&o, true)
	depths := map[string]int{}
	for _, s := range w.Spans {
		depths[s.Name] = s.Depth
		if s.Component == "" {
			t.Errorf("%s is of no component", s.Name)
		}
	}
	if w.From != 0 || w.To != 110 || depths["CreateSnapshot"] != 0 || depths["freeze"] != 1 || len(w.Path) == 0 {
		t.Errorf("%+v", w)
	}
}
