package terminal

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

func (p *printer) workloads(s *summary.Summary) {
	t := table{head: []string{"Workloads", "per s", "bandwidth", "p50", "p99", "max", "errors"}}
	counted := slices.ContainsFunc(s.Workloads, func(w summary.Workload) bool {
		return slices.ContainsFunc(w.Metrics, func(m summary.Metric) bool { return m.OK+m.Lost > 0 })
	})
	if counted {
		t.head = append(t.head, "ok", "lost")
	}
	for _, w := range s.Workloads {
		if w.Step {
			continue // in the table of the search
		}
		metrics(&t, w.Action, w.Metrics)
		for _, v := range w.Variants {
			metrics(&t, "  "+v.Vars, v.Metrics)
		}
		for _, ph := range w.Phases {
			metrics(&t, fmt.Sprintf("  phase %d", ph.Phase), ph.Metrics)
		}
	}
	if len(t.rows) > 0 {
		p.table(t)
	}
	p.values(s)
	for _, w := range s.Workloads {
		if w.Invalid != "" {
			p.note(fmt.Sprintf("%s: invalid: %s", w.Action, w.Invalid))
		}
		if w.CutOff && !w.Step {
			p.note(fmt.Sprintf("%s: incomplete, %s", w.Action, summary.CutOffNote(s.Live)))
		}
		for _, m := range w.Metrics {
			if words := late(&m); words != "" {
				p.note(w.Action + " " + words)
			}
		}
		if words := syncs(&w); words != "" {
			p.note(words)
		}
		if words := w.DetailText(); words != "" {
			p.note(w.Action + ": " + words)
		}
		for _, ph := range w.Phases[min(1, len(w.Phases)):] {
			p.note(fmt.Sprintf("%s, %s after the barrier: %s", w.Action, ph.StartAfter, ph.Title()))
		}
	}
}

// values writes the other metrics of workloads, without the counts that the table before has.
func (p *printer) values(s *summary.Summary) {
	t := table{head: []string{"Metrics", "value", "kind", "better", "instances", "min", "max"}}
	add := func(name string, ms []summary.Metric, values []dataset.Figure) {
		for _, v := range summary.Uncounted(ms, values) {
			low, high := "–", "–"
			if v.Instances > 1 {
				low, high = summary.Amount(v.Min, v.Unit), summary.Amount(v.Max, v.Unit)
			}
			t.row(name+" "+v.Metric, summary.Amount(v.Value, v.Unit), string(v.Kind), cmp.Or(string(v.Better), "–"),
				fmt.Sprint(v.Instances), low, high)
		}
	}
	for _, w := range s.Workloads {
		add(w.Action, w.Metrics, w.Values)
		for _, v := range w.Variants {
			add("  "+v.Vars, v.Metrics, v.Values)
		}
		for _, ph := range w.Phases {
			add(fmt.Sprintf("  phase %d", ph.Phase), ph.Metrics, ph.Values)
		}
	}
	if len(t.rows) > 0 {
		p.table(t)
	}
}

// late says how late the I/Os of a canary started, and what they took from then on, if most waited for longer than for the
// volume; else it is empty.
func late(m *summary.Metric) string {
	if m.Lateness == nil || m.Lateness.Median.Ns == nil || m.Service.Median.Ns == nil ||
		*m.Lateness.Median.Ns <= *m.Service.Median.Ns {
		return ""
	}
	return fmt.Sprintf("%s: from their start I/Os took p50 %s, p99 %s; they started late by p50 %s, p99 %s", m.Name,
		short(m.Service.P50), short(m.Service.P99), short(m.Lateness.P50), short(m.Lateness.P99))
}

// syncs says how often the processes of a workload asked for durability; empty: it was not to be counted.
func syncs(w *summary.Workload) string {
	s := w.Syncs
	if s == nil {
		return ""
	}
	words := fmt.Sprintf("%s: calls at the process (n=%d): fsync %d, fdatasync %d, sync_file_range %d, msync %d", w.Action,
		s.Containers, s.Fsync, s.Fdatasync, s.SyncFileRange, s.Msync)
	if s.NotObserved != "" {
		words = fmt.Sprintf("%s: calls of fsync not observed at the process: %s", w.Action, s.NotObserved)
	}
	if s.Tool != nil {
		words += fmt.Sprintf("; the tool counted %d syncs", *s.Tool)
	}
	return words
}

func metrics(t *table, name string, ms []summary.Metric) {
	for _, m := range ms {
		if m.Part {
			continue // in the report
		}
		bandwidth := "–"
		if m.BandwidthBytesSec != nil {
			bandwidth = units.Bandwidth(*m.BandwidthBytesSec)
		}
		row := []string{name + " " + m.Name, rate(m.PerSecond), bandwidth,
			short(m.Latency.P50), short(m.Latency.P99), m.Latency.Max(), fmt.Sprint(m.Errors)}
		if len(t.head) > len(row) {
			row = append(row, fmt.Sprint(m.OK), fmt.Sprint(m.Lost))
		}
		t.row(row...)
	}
}
