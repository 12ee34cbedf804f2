package terminal

import "github.com/cnsbench/cnsbench/internal/analysis/summary"

// triggers shows when and why rates with a condition triggered.
func (p *printer) triggers(s *summary.Summary) {
	lines := s.TriggerLines()
	if len(lines) == 0 {
		return
	}
	p.title("Triggers")
	names := 0
	for _, l := range lines {
		names = max(names, min(24, length(l.Rate)))
	}
	for _, l := range lines {
		p.wrap("  "+pad(clean(l.Rate), names)+"  ", l.Text)
	}
}
