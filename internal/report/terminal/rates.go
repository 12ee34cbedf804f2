package terminal

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
)

// maxRateEffects is how many rows the effects of ops on throughput have.
const maxRateEffects = 12

// rateEffects shows the throughput of tools beside the ops of each action: of each workload the metric that counts most
// operations, of all instances and of each.
func (p *printer) rateEffects(s *summary.Summary) {
	most := map[[2]string]interference.RateEffect{} // by control and action
	for _, e := range s.RateEffects {
		k := [2]string{e.Control, e.Action}
		if m, ok := most[k]; e.Instance == "" && (!ok || e.Outside.Mean > m.Outside.Mean) {
			most[k] = e
		}
	}
	t := table{head: []string{"Throughput", "no op", "same vol.", "×", "others", "×"}}
	more := 0
	for _, e := range s.RateEffects {
		if most[[2]string{e.Control, e.Action}].Metric != e.Metric {
			continue
		}
		if len(t.rows) == maxRateEffects {
			more++
			continue
		}
		name := "  " + e.Instance
		if e.Instance == "" {
			name = e.Control + " ▸ " + e.Action + " " + e.Metric
		}
		t.row(name, summary.Amount(e.Outside.Mean, e.Unit), sideMean(e.Own, e.Unit), interval(e.OwnRatio),
			sideMean(e.Bystander, e.Unit), times(e.BystanderRatio))
	}
	if len(t.rows) == 0 {
		return
	}
	t.dropEmpty()
	p.table(t)
	note := "mean of an instance, by slices of the tool's series; one that an op touches counts as during it"
	if len(t.head) > 3 {
		note += "; × is the ratio to no op, with its 95 % interval for the same volume"
	}
	if more > 0 {
		note += fmt.Sprintf("; the report has %d more", more)
	}
	p.note(note)
}

func sideMean(s interference.RateSide, unit string) string {
	if s.N == 0 {
		return "–"
	}
	return summary.Amount(s.Mean, unit)
}

// interval is a ratio with its bounds.
func interval(r *interference.Ratio) string {
	if r == nil {
		return "–"
	}
	low, high := r.Bounds()
	return fmt.Sprintf("%s [%s, %s]", units.Count(r.Value), low, high)
}

// zeroPeriods shows the longest times in which workloads completed no operation.
func (p *printer) zeroPeriods(s *summary.Summary) {
	if len(s.ZeroPeriods) == 0 {
		return
	}
	t := table{head: []string{"No operations", "at", "for ≥", "op"}, left: map[int]bool{3: true}}
	for _, z := range interference.Longest(s.ZeroPeriods, maxStalls) {
		t.row(z.Instance, summary.Instant(z.From), units.Duration(float64(z.LengthNs)), z.Named())
	}
	p.table(t)
	if n := len(s.ZeroPeriods); n > maxStalls {
		p.note(fmt.Sprintf("the longest of %d; the report has %d", n, min(n, summary.ReportStalls)))
	}
}
