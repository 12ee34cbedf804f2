package terminal

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/cost"
)

// cost prints what a run cost.
func (p *printer) cost(r *cost.Result) {
	if r == nil {
		return
	}
	p.title(clean(fmt.Sprintf("Cost (%s)", r.Currency)))
	t := table{head: []string{"used", "quantity", "unit", "price", r.Currency}, left: map[int]bool{2: true},
		wide: 2 * maxCell}
	for _, c := range r.Charges {
		t.row(strings.TrimSpace(c.Resource+" "+c.Name), amount(&c.Quantity), c.Unit, amount(c.Price),
			amount(c.Cost))
	}
	t.row("total", "", "", "", amount(r.Total))
	p.table(t)
	of := table{head: []string{"cost per", "amount", r.Currency, ""}, left: map[int]bool{3: true}}
	for _, x := range r.Rates {
		of.row(x.Name, amount(x.Amount), amount(x.Value), x.Reason)
	}
	p.table(of)
	for _, w := range r.Without {
		p.note("without " + w)
	}
	if r.CPUSeconds != nil {
		p.note("CPU time of the workloads: " + amount(r.CPUSeconds) + " s, which the price of a node includes")
	}
	p.note(fmt.Sprintf("n = 1 run, no interval; charged from its start to its end, without the clean-up; a month has %d "+
		"hours, a GB 10^9 bytes", cost.HoursPerMonth))
	if r.Source != "" {
		p.note("prices: " + r.Source)
	}
}

func amount(x *float64) string {
	if x == nil {
		return "–"
	}
	return strconv.FormatFloat(*x, 'g', 4, 64)
}
