package terminal

import (
	"fmt"
	"io"
	"strings"

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
	if r.Comparison != nil {
		p.line("")
		p.comparison(r.Comparison)
	}
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
