package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// WriteFindMax writes the result of a search whose steps are runs of their own, and its steps.
func WriteFindMax(w io.Writer, m *summary.FindMax, o Options) error {
	if o.Width == 0 {
		o.Width = 96
	}
	p := &printer{width: o.Width, color: o.Color}
	p.wrap("• ", m.Line())
	p.findMax(m)
	return p.writeTo(w)
}

// findMax shows the steps of a search of the highest rate.
func (p *printer) findMax(m *summary.FindMax) {
	if m == nil || len(m.Steps) == 0 {
		return
	}
	t := table{head: []string{"Search of " + m.Stage, "per s", "achieved", "p50", "p99", "measured", "holds"}}
	for i := range m.Steps {
		s := &m.Steps[i]
		t.row(strings.TrimPrefix(s.Stage, m.Stage+"."), summary.Rate(s.PerSecond), summary.Rate(s.AchievedPerSecond),
			short(s.Latency.P50), short(s.Latency.P99), s.Measured(), s.Holds())
	}
	p.table(t)
	p.note("p50, p99: without failed operations, from when they were due; measured: the value in the condition")
	if m.Runs {
		p.note("achieved: operations that ended in the second half of the window, per second of it")
	}
	if m.Resolution != nil {
		p.note(fmt.Sprintf("the bracket is %.1f %% wide", 100**m.Resolution))
	}
	if m.Evidence != "" {
		p.note(m.Bound + ": " + m.Evidence)
	}
}

// maxHosts is the number of rows of the table of hosts, beside those of failed hosts; the report has all.
const maxHosts = 32

// hosts shows what each of several hosts did of the stages of object storage.
func (p *printer) hosts(s *summary.Summary) {
	t := table{head: []string{"By host", "host", "ok", "failed", "lost", "per s", "p50", "p99", "late"},
		left: map[int]bool{1: true}}
	more := 0
	for _, w := range s.Workloads {
		for _, in := range w.Instances {
			for _, m := range in.Metrics {
				if in.Host == "" || w.Step || m.Part {
					continue
				}
				if ended := in.OK != nil && *in.OK; ended && len(t.rows) >= maxHosts {
					more++
					continue
				}
				late := "–"
				if in.SkewNs != nil {
					late = units.Duration(float64(*in.SkewNs)) + " ± " + units.Duration(float64(in.SkewErrorNs))
				}
				t.row(w.Action+" "+m.Name, in.Host, fmt.Sprint(m.OK), fmt.Sprint(m.Errors), fmt.Sprint(m.Lost),
					rate(m.PerSecond), short(m.Latency.P50), short(m.Latency.P99), late)
			}
		}
	}
	if len(t.rows) == 0 {
		return
	}
	p.table(t)
	p.note("late: the start of its works, after the agreed instant")
	if more > 0 {
		p.note(fmt.Sprintf("%d more lines are in the report", more))
	}
}

// maxBounds is the length of the list; the report has all.
const maxBounds = 8

// bounds shows the limits of the stages of object storage.
func (p *printer) bounds(s *summary.Summary) {
	list := s.Bounds
	if len(list) == 0 {
		return
	}
	p.title("Limits of object storage")
	for _, b := range list[:min(len(list), maxBounds)] {
		who := b.Stage
		if b.Instance != "" {
			who = b.Instance + " " + b.Stage
		}
		p.wrap("  ", fmt.Sprintf("%s: %s, %s of CPU per operation (mean of %d); %s",
			who, b.Bound, units.Duration(float64(b.CPUPerOpNs)), b.Ops, b.Evidence))
	}
	if more := len(list) - maxBounds; more > 0 {
		p.note(fmt.Sprintf("%d more are in the report", more))
	}
}

// scaling shows a row for each number of workers.
func (p *printer) scaling(s *summary.Scaling) {
	if s == nil || len(s.Rows) == 0 {
		return
	}
	t := table{head: []string{"Workers of " + s.Stage, "per s", "from – to", "p50", "p99", "gain", "95 %", "failed"}}
	for _, r := range s.Rows {
		spread, gain, interval := "–", "–", "–"
		if len(r.PerSecond) > 1 {
			spread = units.Count(slices.Min(r.PerSecond)) + " – " + units.Count(slices.Max(r.PerSecond))
		}
		if r.GainPerDoubling != nil {
			gain = fmt.Sprintf("%.0f %%", 100**r.GainPerDoubling)
		}
		if r.GainLow != nil && r.GainHigh != nil {
			interval = fmt.Sprintf("%.0f … %.0f %%", 100**r.GainLow, 100**r.GainHigh)
		}
		t.row(fmt.Sprint(r.Workers), units.Count(r.MedianPerSecond), spread, short(r.Latency.P50), short(r.Latency.P99),
			gain, interval, fmt.Sprint(r.Failed))
	}
	p.table(t)
	p.note("per s: the median of the repetitions; gain: of throughput, for each doubling of the workers")
}
