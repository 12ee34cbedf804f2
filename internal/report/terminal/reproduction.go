package terminal

import (
	"fmt"
	"io"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/reproduction"
)

// maxDifferences bounds the rows of a table of facts; the JSON has all.
const maxDifferences = 60

// WriteReproduction writes how a later run differs from an earlier one. Without a later run there are only facts.
func WriteReproduction(w io.Writer, r *reproduction.Result, o Options) error {
	if o.Width == 0 {
		o.Width = 96
	}
	p := &printer{width: o.Width, color: o.Color}
	for _, s := range r.Sentences {
		p.wrap("• ", s)
	}
	p.differences("Differing fact", r.Facts.Differences)
	if len(r.Changed) > 0 {
		p.differences("Changed within a side", r.Changed)
	}
	p.note(factNote(&r.Facts))
	if r.Plan != nil {
		p.plan(r)
	}
	p.responses(r.Responses)
	if r.Comparison != nil {
		p.distributionsOf(r.Comparison.Distributions)
		if len(r.Now) > 1 || len(r.Then) > 1 {
			p.verdicts(r.Comparison.Comparisons)
		}
	}
	p.marks("Validity flag", r.Flags)
	p.marks("Objective", r.Verdicts)
	return p.writeTo(w)
}

func factNote(c *reproduction.Comparison) string {
	text := fmt.Sprintf("%d facts are on both sides; %d that differ between any two runs (such as free memory) are not "+
		"compared", c.Compared, c.Volatile)
	if n := len(c.OneSided); n > 0 {
		text += fmt.Sprintf("; %d that are known on one side only cannot be compared (--output json lists them)", n)
	}
	return text
}

// differences prints a table of facts, the most likely causes first.
func (p *printer) differences(title string, list []reproduction.Difference) {
	if len(list) == 0 {
		return
	}
	t := table{head: []string{title, "kind", "then", "now"}, wide: p.width,
		left: map[int]bool{1: true, 2: true, 3: true}}
	widths := []int{0, length("storage"), length("then"), length("now")}
	for _, d := range list[:min(len(list), maxDifferences)] {
		then, now := apart(d.Then, d.Now)
		t.row(d.Fact, string(d.Group), then, now)
		for i, cell := range []string{then, now} {
			widths[2+i] = max(widths[2+i], min(maxCell, length(cell)))
		}
	}
	for _, row := range t.rows {
		row[0] = ending(row[0], p.width-p.needs(widths))
	}
	p.table(t)
	if n := len(list) - maxDifferences; n > 0 {
		p.note(fmt.Sprintf("and %d more (--output json)", n))
	}
}

// ending is the end of a name that is too long: it says more than the beginning.
func ending(name string, room int) string {
	if r := []rune(clean(name)); len(r) > max(room, 12) {
		return "…" + string(r[len(r)-max(room, 12)+1:])
	}
	return name
}

// apart shortens two values from their beginning so that their first difference is seen.
func apart(then, now *string) (a, b string) {
	if then == nil || now == nil {
		return orNone(then), orNone(now)
	}
	a, b = strings.Join(strings.Fields(*then), " "), strings.Join(strings.Fields(*now), " ")
	x, y := []rune(a), []rune(b)
	same := 0
	for same < min(len(x), len(y)) && x[same] == y[same] {
		same++
	}
	const before = 8
	if max(len(x), len(y)) <= maxCell || same <= before {
		return a, b
	}
	return "…" + string(x[same-before:]), "…" + string(y[same-before:])
}

func orNone(s *string) string {
	if s == nil {
		return "–"
	}
	return *s
}

// plan says whether the plans and the schedules are equal.
func (p *printer) plan(r *reproduction.Result) {
	switch {
	case r.Plan.Then == "" || r.Plan.Now == "":
		p.note("plan: one bundle has no plan.json")
	case r.Plan.Same:
		p.note("plan: the same, sha256:" + r.Plan.Now)
	default:
		p.differences("Differing part of the plan", r.Plan.Differences)
	}
	for _, s := range r.Schedules {
		word := "the same scheduled instants"
		if !s.Same {
			word = "other scheduled instants"
		}
		p.note(fmt.Sprintf("schedule of %s: %s in %d of %d operations (then %d, now %d)", s.Action, word, s.Equal,
			min(s.Then, s.Now), s.Then, s.Now))
	}
}

// responses prints the figures of both sides.
func (p *printer) responses(list []reproduction.Response) {
	if len(list) == 0 {
		return
	}
	t := table{head: []string{"Figure", "n then", "then", "n now", "now", "range now", "now/then"}, wide: 2 * maxCell}
	bound := false
	for _, x := range list {
		ratio, spread := "–", "–"
		if x.Ratio != nil {
			ratio = fmt.Sprintf("×%.3g", *x.Ratio)
		}
		if low, high := reproduction.Range(x.Now); low != nil && len(x.Now) > 1 {
			end := "∞"
			if high != nil {
				end = compare.Figure(high, x.Unit)
			}
			spread = "[" + compare.Figure(low, x.Unit) + ", " + end + "]"
		}
		bound = bound || x.Bounds
		t.row(x.Metric, fmt.Sprint(len(x.Then)), figureOf(x.Then, x.Unit), fmt.Sprint(len(x.Now)), figureOf(x.Now, x.Unit),
			spread, ratio)
	}
	p.table(t)
	p.note("n counts runs; with several, the figure is their median, and the ratio is that of the medians")
	if bound {
		p.note("some values are lower bounds: operations had not ended")
	}
}

// figureOf is the median of values; ∞ if it is infinite.
func figureOf(list []*float64, unit string) string {
	m := reproduction.Median(list)
	switch {
	case len(list) == 0:
		return "none"
	case m == nil:
		return "∞"
	}
	return compare.Figure(m, unit)
}

// verdicts prints the verdict of each figure.
func (p *printer) verdicts(list []compare.Comparison) {
	if len(list) == 0 {
		return
	}
	t := table{head: []string{"Now against then", "n", "now/then", "95 % interval", "p (Holm)", "verdict"},
		wide: 2 * maxCell, left: map[int]bool{5: true}}
	for i := range list {
		c := &list[i]
		ratio, interval, pHolm := "–", "–", "–"
		if c.Ratio != nil {
			ratio = fmt.Sprintf("×%.3g", *c.Ratio)
		}
		if c.Low != nil && c.High != nil {
			interval = fmt.Sprintf("[%.3g, %.3g]", *c.Low, *c.High)
		}
		if c.PHolm != nil {
			pHolm = fmt.Sprintf("%.3g", *c.PHolm)
		}
		t.row(c.Metric, fmt.Sprintf("%d, %d", c.NA, c.NB), ratio, interval, pHolm, string(c.Verdict))
	}
	p.table(t)
	seen := map[string]bool{}
	for i := range list {
		if text := list[i].Reason; text != "" && !seen[text] && len(seen) < maxEffects {
			seen[text] = true
			p.note(string(list[i].Verdict) + ": " + text)
		}
	}
}

// marks prints the flags or objectives whose state differs, or that none does.
func (p *printer) marks(title string, list []reproduction.Mark) {
	t := table{head: []string{title, "then", "now"}, left: map[int]bool{1: true, 2: true}, wide: 2 * maxCell}
	for i := range list {
		if m := &list[i]; m.Differs() {
			t.row(m.Name, orAbsent(m.Then), orAbsent(m.Now))
		}
	}
	if len(t.rows) == 0 {
		if len(list) > 0 {
			p.note(strings.ToLower(title) + "s: the same on both sides")
		}
		return
	}
	p.table(t)
}

func orAbsent(states []string) string {
	if len(states) == 0 {
		return "–"
	}
	return strings.Join(states, ", ")
}
