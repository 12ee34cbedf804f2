package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/visible"
)

// Colours, as SGR parameters.
const (
	bold   = "1"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// printer collects lines that fit the width. Text from files is cleaned of control
// characters.
type printer struct {
	strings.Builder
	width int
	color bool
}

// clean replaces unprintable characters, and line breaks by spaces.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '?'
		}
		return r
	}, s)
}

// paint returns clean text in a colour.
func (p *printer) paint(color, s string) string {
	s = clean(s)
	if !p.color || color == "" {
		return s
	}
	return "\x1b[" + color + "m" + s + "\x1b[0m"
}

// writeTo writes the lines, with the colours past a writer that escapes control characters.
func (p *printer) writeTo(w io.Writer) error {
	if p.color {
		w = visible.Raw(w)
	}
	_, err := io.WriteString(w, p.String())
	return err
}

// line writes clean text that fits.
func (p *printer) line(s string) { p.WriteString(strings.TrimRight(s, " ") + "\n") }

func (p *printer) title(s string) { p.line("\n" + p.paint(bold, s)) }

func (p *printer) note(s string) { p.wrap("  ", s) }

// wrap writes text over as many lines as it needs, indented beneath itself.
func (p *printer) wrap(label, text string) { p.wrapAfter(clean(label), clean(label), text) }

// wrapAfter is wrap with a painted label; plain gives its width.
func (p *printer) wrapAfter(plain, painted, text string) {
	indent := min(length(plain), p.width/2)
	room := p.width - indent
	prefix, rest := painted, []rune(clean(text))
	for {
		var first []rune
		first, rest = split(rest, room)
		p.line(prefix + string(first))
		if len(rest) == 0 {
			return
		}
		prefix = strings.Repeat(" ", indent)
	}
}

// Fold breaks a text at spaces into lines of at most width columns, indented beneath a bullet; width 0 leaves it.
func Fold(text string, width int) string {
	if width == 0 {
		return visible.Line(text) + "\n"
	}
	if rest, bullet := strings.CutPrefix(text, "• "); bullet {
		return Hang("• ", rest, width)
	}
	return Hang("", text, width)
}

// Hang breaks a text at spaces into lines of at most width columns, indented beneath the label in front of the first;
// width 0 leaves it.
func Hang(label, text string, width int) string {
	if width == 0 {
		return visible.Line(label+text) + "\n"
	}
	p := printer{width: width}
	p.wrap(label, text)
	return p.String()
}

// split cuts a text after at most n runes, at a space if there is one.
func split(s []rune, n int) (first, rest []rune) {
	if len(s) <= n {
		return s, nil
	}
	for i := n; i > n/3; i-- {
		if s[i] == ' ' {
			return s[:i], s[i+1:]
		}
	}
	return s[:n], s[n:]
}

func length(s string) int { return utf8.RuneCountInString(s) }

func pad(s string, n int) string { return clip(s, n) + strings.Repeat(" ", max(0, n-length(s))) }

func clip(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// table has its title as the head of its first column. The first column and those in left
// are aligned left, the others right.
type table struct {
	head []string
	rows [][]string
	left map[int]bool
	wide int // most runes of the first column; 0: maxCell
}

func (t *table) row(cells ...string) { t.rows = append(t.rows, cells) }

// dropEmpty leaves out the columns in which no row has a value.
func (t *table) dropEmpty() {
	for i := len(t.head) - 1; i > 0; i-- {
		if slices.ContainsFunc(t.rows, func(r []string) bool { return r[i] != "–" }) {
			continue
		}
		t.head = slices.Delete(slices.Clone(t.head), i, i+1)
		for j := range t.rows {
			t.rows[j] = slices.Delete(t.rows[j], i, i+1)
		}
	}
}

// maxCell bounds the width of a column.
const maxCell = 30

func (p *printer) table(t table) {
	widths := make([]int, len(t.head))
	for _, r := range append([][]string{t.head}, t.rows...) {
		for i, c := range r {
			most := maxCell
			if i == 0 {
				most = max(most, t.wide)
			}
			widths[i] = max(widths[i], min(most, length(clean(c))))
		}
	}
	if over := p.needs(widths) - p.width; over > 0 {
		widths[0] = max(12, widths[0]-over)
	}
	p.line("")
	p.line(p.paint(bold, strings.TrimRight(clip(t.format(t.head, widths, 0), p.width), " ")))
	for _, r := range t.rows {
		p.line(clip(t.format(r, widths, 2), p.width))
	}
}

// needs returns the width of a row.
func (p *printer) needs(widths []int) int {
	sum := 2 * len(widths)
	for _, w := range widths {
		sum += w
	}
	return sum
}

func (t *table) format(cells []string, widths []int, indent int) string {
	var b strings.Builder
	for i, c := range cells {
		c = clip(clean(c), widths[i])
		space := strings.Repeat(" ", widths[i]-length(c))
		switch {
		case i == 0:
			b.WriteString(strings.Repeat(" ", indent) + c + space + strings.Repeat(" ", 2-indent))
		case t.left[i]:
			b.WriteString("  " + c + space)
		default:
			b.WriteString("  " + space + c)
		}
	}
	return b.String()
}

// short formats a quantile in few columns.
func short(q summary.Quantile) string {
	if q.NeedsN > 0 {
		return fmt.Sprintf("n<%d", q.NeedsN)
	}
	return q.String()
}

func rate(v *float64) string {
	if v == nil {
		return "–"
	}
	return units.Count(*v)
}
