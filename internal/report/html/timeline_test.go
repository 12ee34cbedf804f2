package html

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/figure"
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

// TestBands: other metrics of a tool have a plot for each unit, between bandwidth and latency, with the unit at its axis.
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
