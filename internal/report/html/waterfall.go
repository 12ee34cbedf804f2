package html

import (
	"cmp"
	"fmt"
	"slices"

	template "github.com/DataDog/datadog-agent/pkg/template/html"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/figure"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Measures of a waterfall in pixels.
const (
	fallWidth, fallLeft, fallRight = 1000.0, 230.0, 940.0
	fallRow                        = 17.0
	maxFallRows                    = 40 // spans drawn of one op
)

// colourOf has the style class of a component. Components of one kind share a colour; others are "not observed".
var colourOf = map[string]string{
	attribution.Driver: "k0", attribution.Formatting: "k1", attribution.Frozen: "k2",
	attribution.Provisioner: "k3", attribution.ProvisionerOrDriver: "k3", attribution.Attacher: "k3",
	attribution.AttacherOrDriver: "k3", attribution.Snapshotter: "k3", attribution.SnapshotterOrDriver: "k3",
	attribution.Resizer: "k3", attribution.ResizerOrDriver: "k3", attribution.Binder: "k3",
	attribution.Kubelet: "k4", attribution.KubeletOrDriver: "k4", attribution.Processes: "k4",
	attribution.Workload: "k5", attribution.WorkloadOrDriver: "k5", attribution.Controllers: "k5",
	attribution.ControllersOrDriver: "k5", attribution.Volume: "k6",
	attribution.API: "k7", attribution.Scheduler: "k7", attribution.Engine: "k7",
	attribution.Runner: "k8", attribution.EndDetection: "k8", attribution.Pause: "k8", attribution.Dependency: "k8",
	attribution.Checking: "k8", attribution.Harness: "k8", attribution.HarnessOrDriver: "k8", attribution.Backoff: "k8",
}

func componentClass(component string) string { return cmp.Or(colourOf[component], "k9") }

// legendItem is a component with its colour.
type legendItem struct{ Class, Name string }

// legendOf lists the components of waterfalls.
func legendOf(falls ...figure.Waterfall) []legendItem {
	var list []legendItem
	add := func(component string) {
		if i := (legendItem{componentClass(component), component}); !slices.Contains(list, i) {
			list = append(list, i)
		}
	}
	for _, w := range falls {
		for _, p := range w.Path {
			add(p.Component)
		}
		for _, s := range w.Spans {
			add(s.Component)
		}
	}
	slices.SortFunc(list, func(a, b legendItem) int {
		return cmp.Or(cmp.Compare(a.Class, b.Class), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// waterfallChart draws the critical path and the spans of an op over length, from the intended instant of the op; empty
// without a span.
func waterfallChart(o *op.Op, w figure.Waterfall, length op.Time) template.HTML {
	if len(w.Spans)+len(w.Path) == 0 || length <= 0 {
		return ""
	}
	spans := w.Spans[:min(len(w.Spans), maxFallRows)]
	rows := len(spans)
	if len(w.Path) > 0 {
		rows++
	}
	bottom := 6 + fallRow*float64(rows)
	x := scale{max: float64(length), lo: fallLeft, hi: fallRight}
	s := &svg{}
	s.open(fallWidth, bottom+22, fmt.Sprintf("Spans of %s/%d", o.Action, o.Instance), "data-op", fmt.Sprint(o.ID),
		"data-from", fmt.Sprint(int64(w.From)), "data-to", fmt.Sprint(int64(w.From+length)))
	for _, t := range x.ticks(8) {
		s.line(x.at(t), 4, x.at(t), bottom, "grid")
		label := "0"
		if t > 0 {
			label = units.Duration(t)
		}
		s.text(x.at(t), bottom+15, "tick mid", label)
	}
	s.line(fallLeft, bottom, fallRight, bottom, "axis")
	y := 6.0
	if len(w.Path) > 0 {
		s.text(fallLeft-8, y+12, "label end strong", "critical path")
		for _, p := range w.Path {
			s.span(x, y, p.From-w.From, p.To-w.From, p.Component, p.Step)
		}
		s.after(x, y, 0, w.Path[len(w.Path)-1].To-w.From)
		y += fallRow
	}
	for _, b := range spans {
		s.text(fallLeft-8-10*float64(b.Depth), y+12, "label end", clip(joined(b.Name, b.Volume), 32-2*b.Depth))
		s.span(x, y, b.At-w.From, b.End()-w.From, b.Component, joined(b.Name, b.Volume))
		s.after(x, y, b.At-w.From, b.End()-w.From)
		y += fallRow
	}
	return s.close()
}

func joined(name, volume string) string {
	if volume == "" {
		return name
	}
	return name + " " + volume
}

// span draws one bar of a waterfall.
func (s *svg) span(x scale, y float64, from, to op.Time, component, what string) {
	at := x.at(float64(from))
	s.rect(at, y+2, max(1.5, x.at(float64(to))-at), fallRow-4, "span "+componentClass(component),
		fmt.Sprintf("%s: %s, %s after %s", component, what, units.Duration(float64(to-from)), units.Duration(float64(from))),
		"data-from", fmt.Sprint(int64(from)), "data-to", fmt.Sprint(int64(to)), "data-component", component)
}

// after writes the length of a bar behind it, or before it where there is no room.
func (s *svg) after(x scale, y float64, from, to op.Time) {
	text := units.Duration(float64(to - from))
	if right := x.at(float64(to)); right+6 < fallWidth-52 {
		s.text(right+5, y+12, "tick", text)
		return
	}
	s.text(x.at(float64(from))-5, y+12, "tick end", text)
}
