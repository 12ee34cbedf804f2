package terminal

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/tenant"
)

// tenants shows a row for each tenant, step and kind of I/O, then the targets and limits in words.
func (p *printer) tenants(s *summary.Summary) {
	if len(s.Tenants) == 0 {
		return
	}
	t := table{head: []string{"Tenants", "step", "missed", "I/O", "n", "per s", "latency ÷ base", "rate ÷ base"},
		left: map[int]bool{1: true, 3: true}}
	for i := range s.Tenants {
		x := &s.Tenants[i]
		name := x.Name
		for _, step := range x.Steps {
			missed := "–"
			if step.ViolationsNs != nil {
				missed = tenant.Time(*step.ViolationsNs) + " of " + tenant.Time(step.MeasuredNs)
			}
			label := step.Name
			for _, m := range x.Shown(step) {
				t.row(name, label, missed, m.Metric, fmt.Sprint(m.N), rate(m.PerSecond), tenant.Ratio(m.Latency, true),
					tenant.Ratio(m.Rate, false))
				name, label, missed = "", "", ""
			}
			if label != "" {
				t.row(name, label, missed, "no I/O", "", "", "", "")
				name = ""
			}
		}
	}
	p.table(t)
	p.note("missed: time in which an instance missed a target, of the measured time; ratios to the base, " +
		"with 95 % intervals, need ten recorded intervals on each side")
	for i := range s.Tenants {
		x := &s.Tenants[i]
		for _, target := range x.Targets {
			p.wrap("  ", x.Name+": "+target.Text()+": "+target.Result())
		}
		for k := range x.Limits {
			p.wrap("  ", x.Limits[k].Evidence(x.Name))
		}
	}
}
