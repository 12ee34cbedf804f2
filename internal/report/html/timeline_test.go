package html

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// An operation has one look in both bands, and no other operation has it.
func TestLineClasses(t *testing.T) {
	p := figure.Panel{Bandwidth: []figure.Line{{Name: "small"}, {Name: "read"}, {Name: "large"}},
		Latency: []figure.Line{{Name: "read p99"}, {Name: "small p99"}, {Name: "large p99"}, {Name: "head p99"},
			{Name: "canary read max"}}}
	classes := lineClasses(p)
	looks := map[string]string{}
	for name, class := range classes {
		if other := looks[class]; other != "" {
			t.Errorf("%s and %s are both %q", name, other, class)
		}
		looks[class] = name
	}
	if len(classes) != 5 || classes["read"] != "c0" || classes["canary read"] != "c2 thin" {
		t.Errorf("%v", classes)
	}
}

// TestBands: other metrics of a tool have a plot for each unit, between bandwidth and latency, with the unit at its
// axis.
func TestBands(t *testing.T) {
	tps := figure.Line{Name: "tps", Points: []figure.Point{{From: 0, To: 1e9, Value: 20000}, {From: 1e9, To: 2e9}}}
	ratio := figure.Line{Name: "hits", Points: []figure.Point{{From: 0, To: 2e9, Value: 0.25}}}
	p := figure.Panel{Instance: "pg-0", Values: []figure.Band{{Unit: "1/s", Lines: []figure.Line{tps}},
		{Unit: "", Lines: []figure.Line{ratio}}}}
	chart, _, _ := timelineCharts(figure.Timeline{To: 2e9, Panels: []figure.Panel{p}}, nil, nil)
	svg := string(chart)
	for _, want := range []string{"<title>tps over time</title>", "<title>hits over time</title>", ">20k/s<", ">0.2<"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q in %s", want, svg)
		}
	}
	if h, without := panelHeight(p), panelHeight(figure.Panel{}); h != without+2*bandHeight {
		t.Errorf("height %v, without bands %v", h, without)
	}
}

// manyOps are three bins of a lane that has too many ops for bars.
func manyOps() figure.Heat {
	bin := func(ok, failed int) figure.HeatBin {
		return figure.HeatBin{Due: ok + failed, OK: ok, Failed: failed, NotOK: failed, BusyNs: 2e9,
			Rows: map[int]int{60: ok, 70: 1}}
	}
	return figure.Heat{Step: 1e9, Bins: []figure.HeatBin{bin(100, 0), bin(200, 5), bin(10, 0)}, Last: 3e9}
}

// TestAggregate: a lane without bars shows how many ops were in flight and how they ended.
func TestAggregate(t *testing.T) {
	lane := figure.Lane{Action: "snapshots", Heat: manyOps()}
	chart, _, _ := timelineCharts(figure.Timeline{To: 3e9, Lanes: []figure.Lane{lane}}, nil, nil)
	for _, want := range []string{"in flight, ≤ 2<", "ended, ≤ 205/s<", "5 failed", `class="bar error"`, ">snapshots<"} {
		if !strings.Contains(string(chart), want) {
			t.Errorf("no %q in %s", want, chart)
		}
	}
}

// TestHeat: cells are coloured by their count with a scale, and what was not ok has a row of its own.
func TestHeat(t *testing.T) {
	chart := string(heatChart(figure.Action{Name: "snapshots", Heat: manyOps()}, 0, 3e9))
	for _, want := range []string{`class="heat h5"`, `class="heat h1"`,
		"200 ops due from 1.00 s to 2.00 s took 1 ms to 1.26 ms",
		"5 ops due from 1.00 s to 2.00 s were not ok", ">≥ ", "ops in a cell", "offered 78.8/s, achieved 77.5/s"} {
		if !strings.Contains(chart, want) {
			t.Errorf("no %q in %s", want, chart)
		}
	}
	once := manyOps()
	once.Bins = once.Bins[:1]
	if chart := heatChart(figure.Action{Heat: once}, 0, 3e9); chart != "" {
		t.Error("ops of one instant have a heat map")
	}
	if got := heatBounds(1000); len(got) != 5 || got[0] != 1 || got[4] < 200 || got[4] > 300 {
		t.Errorf("bounds %v", got)
	}
	if got := []string{level(heatBounds(2), 1), level(heatBounds(2), 2), level(heatBounds(1000), 1000)}; got[0] != "h4" ||
		got[1] != "h5" || got[2] != "h5" {
		t.Errorf("levels %v", got)
	}
}

// TestEqualScales: panels of one metric have one scale, and the first stall is explained once.
func TestEqualScales(t *testing.T) {
	of := func(name string, v float64) figure.Panel {
		line := figure.Line{Name: "read", Points: []figure.Point{{From: 0, To: 1e9, Value: v}}}
		return figure.Panel{Instance: name, Bandwidth: []figure.Line{line}}
	}
	stalls := []interference.Stall{{Instance: "b", From: 1e8, To: 2e8, LengthNs: 1e8}, {Instance: "a", From: 5e8, To: 9e8,
		LengthNs: 4e8}}
	panels := []figure.Panel{of("a", 1<<20), of("b", 1<<30)}
	chart, _, shaded := timelineCharts(figure.Timeline{To: 1e9, Panels: panels}, stalls, nil)
	if n := strings.Count(string(chart), ">500 MiB/s<"); n != 2 {
		t.Errorf("%d axes have 500 MiB/s, want 2: %s", n, chart)
	}
	if strings.Count(string(chart), "is the backlog") != 1 || len(shaded) != 2 {
		t.Errorf("%d stalls are drawn: %s", len(shaded), chart)
	}
}

// TestTail: the axis of a distribution shows each nine that the values allow.
func TestTail(t *testing.T) {
	steps := []stats.Step{{V: 1e6, P: 0.5}, {V: 2e6, P: 0.999}, {V: 3e6, P: 1}}
	chart := string(cdfChart(figure.Action{Name: "a", N: 1000, Response: steps, Service: steps}))
	for _, want := range []string{">50 %<", ">90 %<", ">99 %<", ">99.9 %<"} {
		if !strings.Contains(chart, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(chart, "99.99 %") {
		t.Error("1000 values reach 99.99 %")
	}
}
