package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// model names the units of analysis.
func (s *study) model() {
	g := s.grouping
	nested, others := false, len(s.result.Comparisons) == 0
	var welch []string
	for i := range s.result.Comparisons {
		c := &s.result.Comparisons[i]
		nested, others = nested || c.Within != nil, others || c.Welch == nil
		if c.Welch != nil && !slices.Contains(welch, c.Welch.Text) {
			welch = append(welch, c.Welch.Text)
		}
	}
	for _, text := range welch {
		s.result.Models = append(s.result.Models, Model{Unit: momentsUnit, Text: text})
	}
	if !others {
		return
	}
	perTrial := Model{Unit: cmp.Or(s.options.Trial, defaultTrial),
		Text: "every trial counts as independent; the answer holds for this occasion"}
	if s.options.Paired {
		perTrial.Text = "every pair of trials of one block counts as independent; the answer holds for this occasion"
	}
	if g.name == "" && len(s.table.Occasions) > 1 {
		perTrial.Text += "; each level has one of its own, and a difference may be that of the occasion"
	}
	nestedText := "repetitions nested in " + g.name + "s: every trial counts as independent; the answer holds for " +
		"these " + g.name + "s only, because trials of one share its conditions"
	switch {
	case g.name == "":
	case s.options.PerRepetition:
		perTrial.Text = nestedText
	case nested:
		s.result.Models = append(s.result.Models, Model{Unit: g.name, Text: "one value for each " + g.name +
			": the median of its repetitions; the answer holds for " + g.reach()})
		perTrial.Text = nestedText
	default:
		s.result.Models = append(s.result.Models, Model{Unit: g.name, Text: "one value for each " + g.name +
			"; the answer holds for " + g.reach()})
		return
	}
	s.result.Models = append(s.result.Models, perTrial)
}

// reach is for what an answer that counts groups holds.
func (g *grouping) reach() string {
	if g.word == occasionWord {
		return "other " + g.name + "s too"
	}
	return "other " + g.name + "s of this occasion too"
}

// maxSentences is the most comparisons that the sentences of a result name one by one.
const maxSentences = 6

// summarise writes the sentences of the result.
func (s *study) summarise() {
	r := s.result
	r.Family = s.family()
	if len(r.Comparisons) == 0 {
		r.Sentences = append(r.Sentences, s.nothing())
	}
	if len(r.Comparisons) <= maxSentences {
		for i := range r.Comparisons {
			r.Sentences = append(r.Sentences, r.Comparisons[i].Sentence)
		}
	} else {
		s.tallies()
	}
	for _, level := range s.levels {
		if text := s.firstRuns(level); text != "" {
			r.Sentences = append(r.Sentences, text)
		}
	}
	r.Sentences = append(r.Sentences, r.absentSentences()...)
	r.Sentences = append(r.Sentences, s.flagSentences()...)
}

// absentSentences name the levels without a value, unless the sentence of a comparison does.
func (r *Result) absentSentences() (list []string) {
	for i := range r.Absent {
		switch {
		case len(r.Comparisons) <= maxSentences && r.Absent[i].Trials > 0:
		case len(list) == maxSentences:
			return append(list, more(len(r.Absent)-i, "level")+" without a value.")
		default:
			list = append(list, r.Absent[i].String()+".")
		}
	}
	return list
}

// flagSentences name the flags, those of equal evidence together.
func (s *study) flagSentences() (list []string) {
	r := s.result
	for i, f := range r.Flags {
		metrics := f.Metric
		if f.first != "" || i+1 < len(r.Flags) && r.Flags[i+1].Evidence == f.Evidence && r.Flags[i+1].Level == f.Level {
			continue // of trials, or with the next one
		}
		if i > 0 && r.Flags[i-1].Evidence == f.Evidence && r.Flags[i-1].Level == f.Level {
			metrics = r.Flags[i-1].Metric + " and " + metrics
		}
		list = append(list, fmt.Sprintf("%s: %s, %s: %s.", capital(f.Severity), f.Level, metrics, f.Evidence))
	}
	return append(list, trialSentences(r.Flags)...)
}

// tallies count the verdicts of each scope.
func (s *study) tallies() {
	by, scopes := map[string][]*Answer{}, []string(nil)
	add := func(a *Answer) {
		if by[a.Scope] == nil {
			scopes = append(scopes, a.Scope)
		}
		by[a.Scope] = append(by[a.Scope], a)
	}
	for i := range s.result.Comparisons {
		add(&s.result.Comparisons[i].Answer)
	}
	for i := range s.result.Comparisons {
		if w := s.result.Comparisons[i].Within; w != nil {
			add(w)
		}
	}
	for _, scope := range scopes {
		list := by[scope]
		s.result.Sentences = append(s.result.Sentences, fmt.Sprintf("%s (unit: %s), %s: %s.", capital(scope),
			list[0].UnitOfAnalysis, plural(len(list), "comparison"), tally(list)))
	}
	s.result.Sentences = append(s.result.Sentences, "p is adjusted by "+s.result.Family+".")
}

// family says over which comparisons p-values are adjusted.
func (s *study) family() string {
	text := "Holm over the comparisons of one metric"
	if len(s.contexts) == 0 { // a table without values
		return text
	}
	for i, l := range s.contexts[0].levels {
		text += map[bool]string{true: " at one ", false: " and one "}[i == 0] + l.Factor
	}
	if n := s.families(); n > 1 {
		text += fmt.Sprintf(", not over the %d such families: if no level differed, a false better, worse or different "+
			"would be expected in up to %s of them", n, figure2(verdict.Alpha*float64(n)))
	}
	return text
}

// families counts the families of comparisons of which one has a p-value.
func (s *study) families() (n int) {
	last := ""
	for i := range s.result.Comparisons {
		c := &s.result.Comparisons[i]
		if name := of(c.Metric, c.Context); c.P != nil && name != last {
			n, last = n+1, name
		}
	}
	return n
}

// nothing says why there is no comparison.
func (s *study) nothing() string {
	factor := s.table.Factors[s.factor]
	if len(s.levels) == 1 {
		return fmt.Sprintf("Nothing to compare: %s has one level, %s.", factor, s.levels[0])
	}
	return fmt.Sprintf("Nothing to compare: no two levels of %s have a metric in common.", factor)
}

// Explained says whether the sentences of a result have the reason of every comparison without a decision.
func (r *Result) Explained() bool {
	if len(r.Comparisons) <= maxSentences {
		return true
	}
	var answers []*Answer
	for i := range r.Comparisons {
		answers = append(answers, &r.Comparisons[i].Answer)
	}
	for _, w := range []verdict.Word{verdict.None, verdict.Inconclusive} {
		if of := with(answers, w); len(of) > 0 && common(of) == "" {
			return false
		}
	}
	return true
}

// rank orders the levels of each metric that has comparisons.
func (s *study) rank() {
	for m := range s.table.Metrics {
		for i := range s.contexts {
			if r, ok := s.ranking(m, &s.contexts[i]); ok {
				s.result.Rankings = append(s.result.Rankings, r)
			}
		}
	}
}

// ranking orders the levels of one metric.
func (s *study) ranking(metric int, c *context) (Ranking, bool) {
	r := Ranking{Metric: s.table.Metrics[metric].Name, Context: c.levels, Between: []string{}}
	at := map[string]float64{}
	for _, level := range s.levels {
		k, ok := s.at(metric, c, level)
		switch {
		case !ok:
		case s.flagged(k):
			r.LeftOut = append(r.LeftOut, level)
		case s.cell(k).Median == nil:
		default:
			r.Levels = append(r.Levels, level)
			at[level] = *s.cell(k).Median
		}
	}
	lower := chosen(s.table.Metrics[metric], s.options.Directions) == verdict.LessIsBetter
	slices.SortStableFunc(r.Levels, func(a, b string) int {
		switch {
		case at[a] == at[b]:
			return 0
		case (at[a] < at[b]) == lower:
			return -1
		}
		return 1
	})
	var scopes []string
	for i := 1; i < len(r.Levels); i++ {
		a, forward := s.between(r.Metric, c, r.Levels[i-1], r.Levels[i])
		if a == nil {
			return r, false // not every pair is compared
		}
		sign := relation(a.Verdict)
		if sign == ">" && (value(a.Ratio) > 1) != (forward == lower) {
			sign = "?" // pairs, or medians of occasions, have the opposite order to the medians of all values
		}
		r.UnitOfAnalysis, scopes = a.UnitOfAnalysis, append(scopes, a.Scope)
		r.Between = append(r.Between, sign)
	}
	r.Scope = CommonScope(scopes)
	return r, len(r.Levels) > 1 && len(r.Levels)+len(r.LeftOut) > 2
}

// CommonScope is the scope that several answers share. It names no number of occasions if they have different ones.
func CommonScope(scopes []string) string {
	if len(scopes) > 1 && slices.ContainsFunc(scopes, func(s string) bool { return s != scopes[0] }) {
		occasions := func(s string) bool { return !strings.HasSuffix(strings.TrimSuffix(s, "s"), "block") }
		if !slices.ContainsFunc(scopes, occasions) {
			return "for these blocks"
		}
		return "for these occasions"
	}
	return strings.Join(scopes[:min(1, len(scopes))], "")
}

// relation is a verdict as a sign.
func relation(w verdict.Word) string {
	switch w {
	case verdict.Better, verdict.Worse, verdict.Different:
		return ">"
	case verdict.Equivalent, verdict.Trivial:
		return "≈"
	}
	return "?"
}

// flagged says whether a cell has an invalid flag.
func (s *study) flagged(k key) bool {
	c := s.cell(k)
	return slices.ContainsFunc(s.result.Flags, func(f Flag) bool {
		return f.Severity == invalid && f.Metric == c.Metric && f.Level == c.Level && slices.Equal(f.Context, c.Context)
	})
}

// between is the answer that compares two levels, that for these occasions if there is one; nil if they are not
// compared. forward says that its ratio is b/a, not a/b.
func (s *study) between(metric string, c *context, a, b string) (answer *Answer, forward bool) {
	for i := range s.result.Comparisons {
		x := &s.result.Comparisons[i]
		if x.Metric == metric && slices.Equal(x.Context, c.levels) && (x.A == a && x.B == b || x.A == b && x.B == a) {
			if x.Within != nil {
				return x.Within, x.A == a
			}
			return &x.Answer, x.A == a
		}
	}
	return nil, false
}

// String is the order as text: "Portworx > Disk Storage ≈ OpenEBS".
func (r *Ranking) String() string {
	var b strings.Builder
	for i, level := range r.Levels {
		if i > 0 {
			b.WriteString(" " + r.Between[i-1] + " ")
		}
		b.WriteString(level)
	}
	return b.String()
}

// firstRuns names the metrics of a level whose first run differs.
func (s *study) firstRuns(level string) string {
	var metrics []string
	total := 0
	for _, c := range s.result.Cells {
		if c.Level != level {
			continue
		}
		total++
		for _, w := range c.Warnings {
			if w.Name == "firstRun" {
				metrics = append(metrics, c.Metric)
			}
		}
	}
	if len(metrics) == 0 {
		return ""
	}
	return fmt.Sprintf("%s: the first run differs from the others in %d of %d metrics (%s).", level, len(metrics), total,
		strings.Join(metrics, ", "))
}
