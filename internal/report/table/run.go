package table

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

func duration(ns float64) string { return units.Duration(ns) }

// Operations has a row for each action.
func Operations(s *summary.Summary) Table {
	t := Table{Columns: slices.Concat([]Column{text("action"), number("ops"), number("ok"), number("failed"),
		number("timed out"), number("not ended"), number("never started")}, latencyColumns[1:],
		[]Column{number("offered /s"), number("achieved /s"), number("lateness, max")})}
	for _, a := range s.Actions {
		name := Cell{Text: a.Name, Strong: true, Sub: []string{string(a.Kind)}}
		if a.Rate != "" {
			name.Sub[0] += ", rate " + a.Rate
		}
		if a.NoOps != "" {
			name.Sub = append(name.Sub, "no op: "+a.NoOps)
		}
		row := []Cell{name, cell(fmt.Sprint(a.N)), cell(fmt.Sprint(a.Outcomes[op.OK])),
			cell(fmt.Sprint(a.Outcomes[op.Error])), some(a.Outcomes[op.Timeout]), some(a.Outcomes[op.Censored]),
			some(a.Outcomes[op.Dropped])}
		row = append(row, latency(a.Response)[1:]...)
		row = append(row, cell(count(a.OfferedPerSecond)), cell(count(a.AchievedPerSecond)), cell(units.Ns(a.Lateness.MaxNs)))
		t.Rows = append(t.Rows, row)
	}
	return t.trimmed()
}

// Phases has the response and service time of an action's ops, and their spans.
func Phases(a *summary.Action) Table {
	t := Table{Columns: slices.Concat([]Column{text("phase")}, latencyColumns)}
	t.add(Cell{Text: "response time", Strong: true}, a.Response)
	t.add(Cell{Text: "service time", Strong: true}, a.Service)
	for _, s := range a.Spans {
		name := cell(s.Name)
		if s.From != s.Name+".start" {
			name.Sub = []string{s.From + " → " + s.To}
		}
		t.add(name, s.Latency)
	}
	return t.trimmed()
}

// Episodes has the response time of episodes, and the latency of their steps.
func Episodes(s *summary.Summary) Table {
	t := Table{Columns: slices.Concat([]Column{text("episode"), number("ok"), number("broke off"), number("share")},
		latencyColumns)}
	for _, e := range s.Episodes {
		t.Rows = append(t.Rows, append([]Cell{{Text: e.Name + " and what follows", Strong: true},
			cell(fmt.Sprint(e.OK())), cell(fmt.Sprint(e.Broken())), {}}, latency(e.Response)...))
		for _, x := range e.Steps {
			t.Rows = append(t.Rows, append([]Cell{cell(x.Action), cell(fmt.Sprint(x.Latency.N)), cell(fmt.Sprint(x.Broken)),
				cell(fmt.Sprintf("%.0f %%", 100*x.Share))}, latency(x.Latency)...))
		}
	}
	return t.trimmed()
}

// Milestones has the times from the intended start of an action's ops to their milestones.
func Milestones(a *summary.Action) Table {
	t := Table{Columns: slices.Concat([]Column{text("milestone")}, latencyColumns)}
	for _, m := range a.Milestones {
		t.add(cell(m.To), m.Latency)
	}
	return t.trimmed()
}

func (t *Table) add(name Cell, l summary.Latency) {
	t.Rows = append(t.Rows, append([]Cell{name}, latency(l)...))
}

// Metrics has the operations of a workload that have latencies: of all instances, then of variants and phases.
func Metrics(w *summary.Workload) Table {
	t := Table{Columns: metricColumns}
	t.addMetrics(Cell{Text: "all", Strong: true}, w.Metrics)
	for _, v := range w.Variants {
		t.addMetrics(Cell{Text: v.Vars, Sub: []string{fmt.Sprintf("%d instances", v.Instances)}}, v.Metrics)
	}
	for _, p := range w.Phases {
		of := cell(p.Title())
		if p.StartAfter != "" {
			of.Sub = []string{fmt.Sprintf("from %s after the barrier", p.StartAfter)}
		}
		t.addMetrics(of, p.Metrics)
	}
	return t.trimmed()
}

// InstanceMetrics is Metrics of each instance.
func InstanceMetrics(w *summary.Workload) Table {
	t := Table{Columns: metricColumns}
	for _, i := range apart(w) {
		t.addMetrics(cell(i.Name), i.Metrics)
	}
	return t.trimmed()
}

var metricColumns = slices.Concat([]Column{text("instance"), text("metric"), number("per second"), number("bandwidth")},
	latencyColumns)

func (t *Table) addMetrics(of Cell, list []summary.Metric) {
	for _, m := range list {
		name := cell(m.Name)
		for _, sub := range []string{m.Basis, m.Volume} {
			if sub != "" {
				name.Sub = append(name.Sub, sub)
			}
		}
		if m.Errors > 0 {
			name.Bad = []string{fmt.Sprintf("%d errors", m.Errors)}
		}
		row := []Cell{of, name, cell(count(m.PerSecond)), cell(bandwidth(m.BandwidthBytesSec))}
		t.Rows = append(t.Rows, append(row, latency(m.Latency)...))
		for _, view := range []struct {
			name string
			of   *summary.Latency
		}{{"service", m.Service}, {"lateness", m.Lateness}} {
			if view.of != nil {
				row := []Cell{of, {Text: m.Name + " " + view.name}, {}, {}}
				t.Rows = append(t.Rows, append(row, latency(*view.of)...))
			}
		}
	}
}

// apart returns the instances with figures other than those of the workload.
func apart(w *summary.Workload) []summary.Instance {
	if len(w.Instances) == 1 && !slices.ContainsFunc(w.Instances[0].Metrics,
		func(m summary.Metric) bool { return m.Volume != "" }) {
		return nil
	}
	return w.Instances
}

// Values has the other metrics of a workload's tool.
func Values(w *summary.Workload) Table {
	t := Table{Columns: []Column{text("instance"), text("metric"), number("value"), text("kind"), text("better"),
		number("instances"), number("min … max")}}
	add := func(of string, list []dataset.Figure) {
		for _, v := range list {
			spread := ""
			if v.Instances > 1 {
				spread = summary.Amount(v.Min, v.Unit) + " … " + summary.Amount(v.Max, v.Unit)
			}
			t.Rows = append(t.Rows, []Cell{cell(of), cell(v.Metric), cell(summary.Amount(v.Value, v.Unit)), cell(string(v.Kind)),
				cell(string(v.Better)), cell(fmt.Sprint(v.Instances)), cell(spread)})
		}
	}
	add("all", w.Values)
	for _, v := range w.Variants {
		add(v.Vars, v.Values)
	}
	for _, p := range w.Phases {
		add(p.Title(), p.Values)
	}
	if len(w.Instances) > 1 {
		for _, i := range w.Instances {
			add(i.Name, i.Values)
		}
	}
	return t.trimmed()
}

func count(v *float64) string {
	if v == nil {
		return ""
	}
	return units.Count(*v)
}

func bandwidth(v *float64) string {
	if v == nil {
		return ""
	}
	return units.Bandwidth(*v)
}
