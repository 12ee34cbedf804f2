package compare

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// figure3 and figure2 format a number with three and two significant digits.
func figure3(x float64) string { return short(x, 3) }
func figure2(x float64) string { return short(x, 2) }

func short(x float64, digits int) string {
	if x == 0 || math.IsNaN(x) || math.IsInf(x, 0) {
		return fmt.Sprint(x)
	}
	whole := int(math.Floor(math.Log10(math.Abs(x)))) + 1
	if whole >= digits && whole < 15 { // no exponent
		return fmt.Sprintf("%.0f", x)
	}
	return fmt.Sprintf("%.*g", digits, x)
}

// Times is a ratio with its interval: "×1.33 [0.71, 2.00]".
func (a *Answer) Times() string {
	if a.Ratio == nil {
		return "–"
	}
	if a.Low == nil {
		return "×" + figure3(*a.Ratio)
	}
	return fmt.Sprintf("×%s [%s, %s]", figure3(*a.Ratio), figure3(*a.Low), figure3(*a.High))
}

// facts are ratio, interval and p-value of an answer.
func (a *Answer) facts() string {
	text := a.Times()
	if a.P == nil || a.Low == nil {
		return text
	}
	text += ", p " + equals(*a.P)
	if a.Family > 1 {
		text += fmt.Sprintf(" (%s for %d comparisons)", P(a.PHolm), a.Family)
	}
	if w := a.Welch; w != nil {
		text += fmt.Sprintf(", difference of the means %s [%s, %s] (Welch, assumes normal values)",
			figure(w.Difference, w.unit), figure(w.Low, w.unit), figure(w.High, w.unit))
	}
	return text
}

// clause is the verdict in words, without a subject.
func (a *Answer) clause(word string) string {
	text := word + ", " + a.facts()
	switch a.Verdict {
	case verdict.None, verdict.Inconclusive:
		if a.Ratio == nil {
			text = word
		}
		text += "; " + a.Reason
		if a.Needs != nil {
			text += "; " + a.Needs.Text
		}
	}
	return text
}

// words are the verdicts as predicates of b.
var words = map[verdict.Word]string{
	verdict.None: "no verdict", verdict.Better: "better", verdict.Worse: "worse", verdict.Different: "different",
	verdict.Equivalent: "equivalent", verdict.Trivial: "different by less than the margin (trivial)",
	verdict.Inconclusive: "inconclusive",
}

// label names a level in a sentence: a number with its factor.
func (c *Comparison) label(level string) string {
	if _, err := strconv.ParseFloat(level, 64); err == nil {
		return c.factor + " " + level
	}
	return level
}

// sentence says what a comparison shows.
func (c *Comparison) sentence() string {
	name := of(c.Metric, c.Context)
	text := fmt.Sprintf("%s: %s against %s, %s: %s.", name, c.label(c.B), c.label(c.A), c.Scope,
		c.clause(c.word(&c.Answer)))
	if c.Within != nil {
		text += fmt.Sprintf(" %s: %s.", capital(c.Within.Scope), c.Within.clause(c.word(c.Within)))
	}
	if len(c.Doubts) > 0 {
		text += fmt.Sprintf(" Doubtful: %s.", strings.Join(c.Doubts, ", "))
	}
	return text
}

// word is the verdict of an answer; what is within a margin names it.
func (c *Comparison) word(a *Answer) string {
	if a.Verdict == verdict.Equivalent {
		return fmt.Sprintf("equivalent within %s %%", figure3(100*c.Margin))
	}
	return words[a.Verdict]
}

func capital(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// order of verdicts in a summary.
var order = []verdict.Word{verdict.Better, verdict.Worse, verdict.Different, verdict.Equivalent, verdict.Trivial,
	verdict.Inconclusive, verdict.None}

// tally counts verdicts, with the reason that the undecided ones share: "1 better, 59 inconclusive (…)".
func tally(answers []*Answer) string {
	var parts []string
	for _, w := range order {
		of := with(answers, w)
		if len(of) == 0 {
			continue
		}
		n, name := fmt.Sprint(len(of)), string(w)
		if len(of) == len(answers) {
			n = "all"
		}
		if w == verdict.None {
			name = "without a verdict"
		}
		if why := common(of); why != "" {
			name += " (" + why + ")"
		}
		parts = append(parts, n+" "+name)
	}
	return strings.Join(parts, ", ")
}

// with are the answers with a verdict.
func with(answers []*Answer, w verdict.Word) []*Answer {
	var list []*Answer
	for _, a := range answers {
		if a.Verdict == w {
			list = append(list, a)
		}
	}
	return list
}

// Figure formats a value with its unit and three significant digits: "1.2 ms", "35.7k IOPS". The JSON of a result has
// all digits.
func Figure(x *float64, unit string) string {
	text := column(x, unit, 3)
	switch {
	case x == nil || unit == "" || prefixed(unit):
		return text
	case unit == metric.PerSecond:
		return text + "/s"
	}
	return text + " " + unit
}

// figure is Figure of a known value.
func figure(x float64, unit string) string { return Figure(&x, unit) }

// Column is Figure without its unit, for a column whose heading has the unit.
func Column(x *float64, unit string) string { return column(x, unit, 3) }

// Column is a figure of the cell for a column whose heading has its unit. It has four digits if the 95 % interval of
// the median is so narrow that the third is certain: if half of it is less than half a step of the third.
func (c *Cell) Column(x *float64) string {
	digits := 3
	if c.MedianLow != nil && *c.MedianHigh-*c.MedianLow < 0.001*math.Abs(*c.Median) {
		digits = 4
	}
	return column(x, c.Unit, digits)
}

func column(x *float64, unit string, digits int) string {
	switch {
	case x == nil:
		return "–"
	case prefixed(unit):
		return expr.Format(*x, unit)
	}
	return count(*x, digits)
}

// prefixed reports whether values of a unit are formatted with a fitting prefix of the unit.
func prefixed(unit string) bool {
	return unit == metric.Nanoseconds || unit == metric.BytesPerSecond || unit == metric.Bytes
}

// count formats a number, from 10 000 on with a prefix.
func count(x float64, digits int) string {
	for _, prefix := range []struct {
		name string
		of   float64
	}{{"T", 1e12}, {"G", 1e9}, {"M", 1e6}, {"k", 1e3}} {
		if a := math.Abs(x); a >= 1e4 && a >= prefix.of && a < 1e15 {
			return short(x/prefix.of, digits) + prefix.name
		}
	}
	return short(x, digits)
}

// Percent formats a share: "4.8 %".
func Percent(x *float64) string {
	if x == nil {
		return "–"
	}
	return figure2(100**x) + " %"
}

// P formats a p-value: "0.031", "< 1e-300".
func P(x *float64) string {
	switch {
	case x == nil:
		return "–"
	case *x <= rank.LeastKnownP:
		return "< " + figure2(rank.LeastKnownP)
	}
	return figure2(*x)
}

// equals is a p-value after its name: "= 0.031", "< 1e-300".
func equals(p float64) string {
	if p <= rank.LeastKnownP {
		return P(&p)
	}
	return "= " + P(&p)
}

// common is the reason that answers without a decision share, with the range of what they need; "" if there is none.
func common(answers []*Answer) string {
	reason, of, low, high := answers[0].Reason, "", 0, 0
	for _, a := range answers {
		if a.Verdict != verdict.Inconclusive && a.Verdict != verdict.None || a.Reason != reason {
			return ""
		}
		if a.Needs != nil {
			if low == 0 || a.Needs.N < low {
				low = a.Needs.N
			}
			high, of = max(high, a.Needs.N), a.Needs.Of
		}
	}
	switch {
	case high == 0:
		return reason
	case low == high:
		return fmt.Sprintf("%s; needs %s of each", reason, plural(high, of))
	}
	return fmt.Sprintf("%s; needs %d to %s of each", reason, low, plural(high, of))
}

// plural is a number with its noun: "1 occasion", "2 occasions".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if first, rest, ok := strings.Cut(noun, " "); ok {
		return fmt.Sprintf("%d %ss %s", n, first, rest)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// more is a number of further things: "1 more level", "2 more levels".
func more(n int, noun string) string { return strings.Replace(plural(n, noun), " ", " more ", 1) }

// of names a metric at the levels of other factors: "latency, size 4k".
func of(metric string, context []Level) string {
	for _, l := range context {
		metric += ", " + l.Factor + " " + l.Level
	}
	return metric
}
