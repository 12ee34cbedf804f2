package terminal

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	words "github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// WriteComparison writes the answer of a comparison: its sentences, then the tables of each metric.
func WriteComparison(w io.Writer, r *compare.Result, o Options) error {
	if o.Width == 0 {
		o.Width = 96
	}
	p := &printer{width: o.Width, color: o.Color}
	p.comparison(r)
	return p.writeTo(w)
}

func (p *printer) comparison(r *compare.Result) {
	for _, s := range r.Sentences {
		p.wrap("• ", s)
	}
	for from := 0; from < len(r.Cells); {
		to := from + 1
		for to < len(r.Cells) && sameTable(&r.Cells[to], &r.Cells[from]) {
			to++
		}
		p.cells(r, r.Cells[from:to])
		from = to
	}
	p.distributionsOf(r.Distributions)
	p.history(r.History)
	p.legend(r)
}

// sameTable says whether two cells are of one metric and context.
func sameTable(a, b *compare.Cell) bool {
	return a.Metric == b.Metric && slices.Equal(a.Context, b.Context)
}

// cells prints the cells of one metric and their comparisons.
func (p *printer) cells(r *compare.Result, cells []compare.Cell) {
	first := &cells[0]
	var comparisons []compare.Comparison
	for _, c := range r.Comparisons {
		if c.Metric == first.Metric && slices.Equal(c.Context, first.Context) {
			comparisons = append(comparisons, c)
		}
	}
	p.title(clean(heading(first, comparisons)))
	names := shortNames(cells, comparisons)
	p.describe(r, cells, names)
	p.comparisons(r, comparisons, names)
	p.warnings(cells)
	for _, f := range r.Flags {
		if f.Metric == first.Metric && slices.Equal(f.Context, first.Context) && !f.Warned {
			p.wrapAfter("  ! ", "  "+p.paint(red, "!")+" ", fmt.Sprintf("%s: %s: %s", f.Level, f.Severity, f.Evidence))
		}
	}
}

// describe prints the figures of cells. Of means there is neither median nor range.
func (p *printer) describe(r *compare.Result, cells []compare.Cell, names shortened) {
	t := table{wide: 2 * maxCell,
		head: []string{r.Factor, "n", "mean", "sd", "CV", "median", "95 % interval", "min", "max"}}
	means := !slices.ContainsFunc(cells, func(c compare.Cell) bool { return c.Median != nil || c.Missing+c.Invalid > 0 })
	if means {
		t.head = t.head[:5]
	}
	for i := range cells {
		c := &cells[i]
		f := c.Column
		interval := "–"
		if c.MedianLow != nil {
			interval = "[" + f(c.MedianLow) + ", " + f(c.MedianHigh) + "]"
		}
		n := "–"
		if c.N > 0 || c.Missing+c.Invalid > 0 {
			n = fmt.Sprint(c.N)
		}
		row := []string{names.full(c.Level), n, f(c.Mean), compare.Column(c.SD, c.Unit), compare.Percent(c.CV), f(c.Median),
			interval, f(c.Min), f(c.Max)}
		t.row(row[:len(t.head)]...)
	}
	p.table(t)
}

// warnings prints those of cells, each text once.
func (p *printer) warnings(cells []compare.Cell) {
	levels, texts := map[string][]string{}, []string(nil)
	for i := range cells {
		for _, w := range cells[i].Warnings {
			if levels[w.Text] == nil {
				texts = append(texts, w.Text)
			}
			levels[w.Text] = append(levels[w.Text], cells[i].Level)
		}
	}
	for _, text := range texts {
		of := strings.Join(levels[text], ", ")
		if len(levels[text]) == len(cells) && len(cells) > 1 {
			of = "all"
		}
		p.wrapAfter("  ! ", "  "+p.paint(yellow, "!")+" ", of+": "+text)
	}
}

// shortened has letters for levels whose pairs do not fit a column; nil: none are needed.
type shortened map[string]string

// shortNames gives the levels of a table letters where a pair of them is too long for a column.
func shortNames(cells []compare.Cell, list []compare.Comparison) shortened {
	long := func(c compare.Comparison) bool { return length(c.A)+length(" / ")+length(c.B) > maxCell }
	if !slices.ContainsFunc(list, long) || len(cells) > 'Z'-'A'+1 {
		return nil
	}
	s := shortened{}
	for i, c := range cells {
		s[c.Level] = string(rune('A' + i))
	}
	return s
}

// of is the letter of a level, or the level.
func (s shortened) of(level string) string {
	if letter, ok := s[level]; ok {
		return letter
	}
	return level
}

// full is a level with its letter.
func (s shortened) full(level string) string {
	if letter, ok := s[level]; ok {
		return letter + "  " + level
	}
	return level
}

// heading names a metric: "Random read IOPS (IOPS, higher is better)".
func heading(c *compare.Cell, comparisons []compare.Comparison) string {
	text := c.Metric
	for _, l := range c.Context {
		text += ", " + l.Factor + " " + l.Level
	}
	var facts []string
	if c.Unit != "" {
		facts = append(facts, c.Unit)
	}
	if len(comparisons) > 0 {
		switch d := comparisons[0].Direction; d {
		case "unknown":
			facts = append(facts, "it is unknown which values are better")
		default:
			facts = append(facts, d+" is better")
		}
	}
	if len(facts) == 0 {
		return text
	}
	return text + " (" + strings.Join(facts, ", ") + ")"
}

// comparisons prints the pairs of one metric, in a table for each unit of analysis.
func (p *printer) comparisons(r *compare.Result, list []compare.Comparison, names shortened) {
	if len(list) == 0 {
		return
	}
	for i := range r.Overall {
		if o := &r.Overall[i]; o.Metric == list[0].Metric && slices.Equal(o.Context, list[0].Context) {
			p.note("overall: " + o.Sentence)
		}
	}
	p.answers(list, names, func(c *compare.Comparison) *compare.Answer { return &c.Answer })
	if list[0].Within != nil {
		p.answers(list, names, func(c *compare.Comparison) *compare.Answer { return c.Within })
	}
	if !r.Explained() {
		p.reasons(list)
	}
	for i := range r.Rankings {
		k := &r.Rankings[i]
		if k.Metric != list[0].Metric || !slices.Equal(k.Context, list[0].Context) {
			continue
		}
		order := "best"
		if list[0].Direction == "unknown" {
			order = "greatest"
		}
		text := fmt.Sprintf("%s first, by median %s: %s", order, k.Scope, k)
		if len(k.LeftOut) > 0 {
			text += "; left out: " + strings.Join(k.LeftOut, ", ")
		}
		p.note(text)
	}
	if !oneMargin(r) {
		p.note(fmt.Sprintf("margin %.3g %% (%s)", 100*list[0].Margin, list[0].MarginFrom))
	}
}

// answers prints one unit of analysis.
func (p *printer) answers(list []compare.Comparison, names shortened, of func(*compare.Comparison) *compare.Answer) {
	var scopes []string
	for i := range list {
		scopes = append(scopes, of(&list[i]).Scope)
	}
	title := "b / a " + compare.CommonScope(scopes)
	t := table{head: []string{title, "n", "ratio b/a", "p", "adjusted", "effect", "verdict"}, left: map[int]bool{6: true}}
	for i := range list {
		c := &list[i]
		a := of(c)
		n := fmt.Sprint(a.N)
		if a.NA != a.NB {
			n = fmt.Sprintf("%d, %d", a.NA, a.NB)
		}
		effect := a.Magnitude
		if effect == "" {
			effect = "–"
		}
		t.row(names.of(c.B)+" / "+names.of(c.A), n, a.Times(), compare.P(a.P), compare.P(a.PHolm), effect, doubted(c, a))
	}
	p.table(t)
}

// doubted is a verdict, with a mark if flags of trials weaken it.
func doubted(c *compare.Comparison, a *compare.Answer) string {
	if len(c.Doubts) == 0 || a.Verdict == words.None {
		return string(a.Verdict)
	}
	return string(a.Verdict) + " (doubtful)"
}

// oneMargin says whether all comparisons have the same margin for the same reason.
func oneMargin(r *compare.Result) bool {
	for i := range r.Comparisons {
		if a, b := &r.Comparisons[i], &r.Comparisons[0]; a.Margin != b.Margin || a.MarginFrom != b.MarginFrom {
			return false
		}
	}
	return true
}

// reasons prints why comparisons are not decided, each reason once.
func (p *printer) reasons(list []compare.Comparison) {
	seen := map[string]bool{}
	for i := range list {
		c := &list[i]
		same := func(x compare.Comparison) bool { return x.Reason == c.Reason && undecided(x.Verdict) }
		switch all := slices.IndexFunc(list, func(x compare.Comparison) bool { return !same(x) }) < 0; {
		case !undecided(c.Verdict) || seen[c.Reason]:
		case all && c.Needs == nil:
			p.note("all: " + c.Reason)
			seen[c.Reason] = true
		default:
			seen[c.Reason] = c.Needs == nil
			p.note(note(c))
		}
	}
}

// note says why a comparison is not decided.
func note(c *compare.Comparison) string {
	text := c.B + " / " + c.A + ": " + c.Reason
	if c.Needs != nil {
		text += "; " + c.Needs.Text
	}
	return text
}

func undecided(w words.Word) bool { return w == words.None || w == words.Inconclusive }

// legend explains the tables.
func (p *printer) legend(r *compare.Result) {
	p.line("")
	for _, m := range r.Models {
		p.wrap("unit of analysis: ", m.Unit+": "+m.Text+".")
	}
	if len(r.Comparisons) > 0 {
		if oneMargin(r) {
			p.wrap("", fmt.Sprintf("margin: %.3g %% (%s).", 100*r.Comparisons[0].Margin, r.Comparisons[0].MarginFrom))
		}
		p.wrap("", fmt.Sprintf("ratio: b/a with its %.0f %% interval; adjusted: p by %s.", 100*r.Confidence, r.Family))
	}
	if len(r.Cells) > 0 {
		p.wrap("", "CV: sd ÷ mean. Interval: of the median, by order statistics, trials counted as independent.")
	}
	for _, n := range r.Notes {
		p.wrap("note: ", n)
	}
}
