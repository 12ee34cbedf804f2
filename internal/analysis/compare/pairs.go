package compare

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// pair is a comparison with its two cells.
type pair struct {
	Comparison
	a, b key
}

// compare compares the levels of one metric in one context: a family for Holm's correction.
func (s *study) compare(metric int, c *context) {
	m := s.table.Metrics[metric]
	direction := chosen(m, s.options.Directions)
	margin, from := s.margin(metric, c)
	var pairs []pair
	for _, names := range s.pairs(metric, c) {
		a, _ := s.at(metric, c, names[0])
		b, _ := s.at(metric, c, names[1])
		pairs = append(pairs, pair{a: a, b: b, Comparison: Comparison{Metric: m.Name, Unit: m.Unit, Context: c.levels,
			factor: s.result.Factor, A: names[0], B: names[1], Direction: directionWord(direction), Margin: margin,
			MarginFrom: from}})
	}
	rule := verdict.Rule{Margin: margin, Direction: direction}
	units, all := make([]sample, len(pairs)), make([]sample, len(pairs))
	nested := false
	for i, p := range pairs {
		units[i], all[i] = s.sample(p, true), s.sample(p, false)
		nested = nested || s.grouped(p.a, p.b)
	}
	s.overall(metric, c, nested)
	answers, within := s.judge(pairs, units, rule), []Answer(nil)
	if nested {
		within = s.judge(pairs, all, rule)
	}
	for i := range pairs {
		p := &pairs[i].Comparison
		p.Answer = answers[i]
		if nested {
			p.Within = &within[i]
			if s.options.PerRepetition {
				p.Answer, p.Within = within[i], nil
			}
		}
		if p.Verdict != verdict.None || p.Within != nil {
			p.Doubts = doubtsOf(slices.Concat(s.doubts[pairs[i].a], s.doubts[pairs[i].b]))
		}
		p.Sentence = p.sentence()
		s.result.Comparisons = append(s.result.Comparisons, *p)
	}
}

// pairs lists the compared levels: a before b in order of appearance. The second label of an A/A pair is
// in none of them: its differences from the first are the noise floor.
func (s *study) pairs(metric int, c *context) [][2]string {
	var list [][2]string
	for i, a := range s.levels {
		if _, ok := s.at(metric, c, a); !ok || s.twin(a) {
			continue
		}
		for j, b := range s.levels {
			_, ok := s.at(metric, c, b)
			against := s.options.Against != ""
			switch {
			case !ok || s.twin(b) || i == j, against && a != s.options.Against, !against && j < i:
			default:
				list = append(list, [2]string{a, b})
			}
		}
	}
	return list
}

// twin says whether a level is the second label of an A/A pair.
func (s *study) twin(level string) bool {
	return slices.ContainsFunc(s.options.AA, func(aa [2]string) bool { return aa[1] == level })
}

// sample has the values that are compared: one for each unit of analysis.
type sample struct {
	a, b   []float64
	paired bool
	unit   string
	scope  string
	// effectA and effectB are for the effect size, where a and b are ratios.
	effectA, effectB []float64
	// aggregate is the ratio of means, if there are no values. moments are those of a and b, if Welch's test is possible;
	// else lacks says what is missing.
	aggregate float64
	moments   []stats.Moments
	mixed     bool // one of moments is of trials
	lacks     string
}

// defaultTrial is what a trial is called.
const defaultTrial = "repetition"

// meanUnit is the unit of analysis of a source that has only means: none. momentsUnit is that of one that has their
// standard deviations and numbers of values.
const (
	meanUnit    = "mean"
	momentsUnit = "value"
)

// sample gathers the units of a pair: groups, or all trials.
func (s *study) sample(p pair, groups bool) sample {
	va, vb := s.table.Series[p.a], s.table.Series[p.b]
	groups = groups && s.grouping.name != ""
	x := sample{unit: cmp.Or(s.options.Trial, defaultTrial), scope: s.scope(p, groups), aggregate: math.NaN()}
	if va == nil || vb == nil {
		return s.means(p)
	}
	if groups {
		x.unit = s.grouping.name
	}
	switch {
	case s.options.Paired:
		s.pairUp(&x, va, vb, groups)
	case groups:
		x.a, x.b = s.medians(va), s.medians(vb)
	default:
		x.a, x.b = known(va), known(vb)
	}
	return x
}

// means gathers what is known of a pair of which a side at least has no values.
func (s *study) means(p pair) sample {
	x := sample{unit: meanUnit, scope: "for these means", aggregate: math.NaN()}
	a, ofTrialsA := s.aggregate(p.a)
	b, ofTrialsB := s.aggregate(p.b)
	only := "only means are known, no single trials"
	if x.mixed = ofTrialsA || ofTrialsB; x.mixed {
		only = "of one side only a mean is known, no single trials"
	}
	x.aggregate = b.Mean / a.Mean
	var columns []string
	if math.IsNaN(a.SD) || math.IsNaN(b.SD) {
		columns = append(columns, "sd")
	}
	if a.N == 0 && !ofTrialsA || b.N == 0 && !ofTrialsB {
		columns = append(columns, "n")
	}
	switch {
	case len(columns) > 0:
		x.lacks = fmt.Sprintf("%s, and Welch's test of means needs the column of %s too (cnsbench import csv --%s COLUMN)",
			only, strings.Join(columns, " and of "), strings.Join(columns, " COLUMN --"))
	case min(a.N, b.N) < 2:
		x.lacks = only + ", and one mean is of fewer than two values: a standard deviation needs two"
	case a.SD == 0 && b.SD == 0:
		x.lacks = only + ", and the standard deviation of both is 0: check that this was measured"
	default:
		x.unit, x.moments = momentsUnit, []stats.Moments{{Mean: a.Mean, SD: a.SD, N: a.N}, {Mean: b.Mean, SD: b.SD, N: b.N}}
	}
	return x
}

// aggregate is the mean of a cell, with the sd and n of its trials if it has them.
func (s *study) aggregate(k key) (_ observation.Aggregate, ofTrials bool) {
	if a, ok := s.table.Aggregates[k]; ok {
		return a, false
	}
	d, ok := stats.Describe(known(s.table.Series[k]))
	if !ok {
		d.Mean = math.NaN()
	}
	if d.N < 2 {
		d.SD = 0 // n says what is missing
	}
	return observation.Aggregate{Mean: d.Mean, SD: d.SD, N: d.N}, true
}

// Scopes of answers: of one that counts occasions, and of one from a single occasion.
const (
	inGeneral   = "in general"
	oneOccasion = "for this occasion"
)

// scope says for what a verdict holds.
func (s *study) scope(p pair, groups bool) string {
	switch {
	case groups && s.grouping.word == occasionWord:
		return inGeneral
	case groups || s.grouping.name == "": // blocks are all of one occasion
		return oneOccasion
	}
	n := max(len(s.grouping.groups(s.table.Series[p.a])), len(s.grouping.groups(s.table.Series[p.b])))
	if n == 1 {
		return "for this " + s.grouping.word
	}
	return fmt.Sprintf("for these %d %ss", n, s.grouping.word)
}

// pairUp finds the values of the same occasion, block and repetition. Of a group of pairs the unit is the median of
// their ratios.
func (s *study) pairUp(x *sample, va, vb []observation.Value, groups bool) {
	right := map[trialNumber]float64{}
	for _, v := range vb {
		if v.State == observation.Known {
			right[numberOf(v)] = v.Value
		}
	}
	x.paired = true
	if !groups {
		for _, v := range va {
			if y, ok := right[numberOf(v)]; ok && v.State == observation.Known {
				x.a, x.b = append(x.a, v.Value), append(x.b, y)
			}
		}
		return
	}
	x.effectA, x.effectB = s.medians(va), s.medians(vb)
	for _, g := range s.grouping.groups(va) {
		var ratios []float64
		for _, v := range g {
			if y, ok := right[numberOf(v)]; ok && v.State == observation.Known {
				ratios = append(ratios, math.Log(y/v.Value))
			}
		}
		if len(ratios) > 0 {
			x.a, x.b = append(x.a, 1), append(x.b, math.Exp(stats.Median(ratios)))
		}
	}
}

// judge estimates the pairs of a family, adjusts their p-values, and applies the rule.
func (s *study) judge(pairs []pair, samples []sample, rule verdict.Rule) []Answer {
	estimates, p := make([]*verdict.Estimate, len(pairs)), make([]float64, len(pairs))
	family := 0
	for i, x := range samples {
		p[i] = math.NaN()
		e, ok := x.estimate()
		if ok {
			if x.effectA != nil {
				e.Effect, _ = rank.EffectOf(x.effectA, x.effectB)
			}
			estimates[i], p[i] = &e, e.Test.P
			family++
		}
	}
	answers := make([]Answer, len(pairs))
	for i, adjusted := range rank.Holm(p) {
		x, e := &samples[i], estimates[i]
		a := Answer{UnitOfAnalysis: x.unit, Paired: x.paired, NA: len(x.a), NB: len(x.b), N: min(len(x.a), len(x.b)),
			Family: family, Scope: x.scope, Ratio: number(x.aggregate), P: number(p[i]), PHolm: number(adjusted),
			Reason: x.lacks, Verdict: verdict.None}
		if e != nil {
			a.estimate(e, s.table.Metrics[pairs[i].a.Metric].Unit)
			if a.Welch != nil && x.mixed {
				a.Welch.Text = MixedText
			}
		}
		rule.Weak = slices.Compact(slices.Concat(s.weak[pairs[i].a], s.weak[pairs[i].b]))
		s.conclude(&a, e, adjusted, rule)
		answers[i] = a
	}
	return answers
}

// estimate estimates b against a; false if there is nothing to compare.
func (x *sample) estimate() (verdict.Estimate, bool) {
	if x.moments != nil {
		return verdict.FromMoments(x.moments[0], x.moments[1])
	}
	return verdict.New(x.a, x.b, x.paired)
}

// estimate copies the figures of an estimate of a metric with a unit.
func (a *Answer) estimate(e *verdict.Estimate, unit string) {
	a.Ratio, a.Low, a.High = number(e.Ratio.Value), number(e.Ratio.Low), number(e.Ratio.High)
	a.Low90, a.High90 = number(e.Ratio90.Low), number(e.Ratio90.High)
	a.Method = string(e.Test.Method)
	if e.Welch != nil {
		a.NA, a.NB, a.N = e.NA, e.NB, min(e.NA, e.NB)
		d := e.Welch.Difference(verdict.Wide)
		a.Welch = &Welch{Text: WelchText, T: e.Welch.T, Freedom: e.Welch.Freedom, Difference: d.Value, Low: d.Low,
			High: d.High, unit: unit}
		return
	}
	if e.Ratio.Bounded() { // of fewer values the effect is large by chance
		a.Magnitude = string(e.Effect.Magnitude)
		a.CliffDelta, a.A12 = number(e.Effect.Delta), number(e.Effect.A12)
	}
}

// conclude sets the verdict of an answer with its reason and what would decide it.
func (s *study) conclude(a *Answer, e *verdict.Estimate, adjusted float64, rule verdict.Rule) {
	least := smallest(a.Paired, a.Family)
	if a.Welch != nil {
		least = 2
	}
	switch {
	case len(rule.Weak) > 0:
		a.Reason = strings.Join(rule.Weak, "; ")
	case a.Reason != "": // what a comparison of means lacks
	case e != nil && e.Welch != nil && !e.Ratio.Bounded():
		a.Reason = "a mean is not shown to be above 0: its standard deviation is too great, or n too small, for an " +
			"interval of the ratio"
	case e == nil:
		a.Reason = "there is nothing to compare"
		if a.Paired {
			a.Reason = "no value of one has a pair in the other: pairs have the same occasion, block and repetition; " +
				"--paired=false compares without pairs"
		}
	case !e.Ratio.Bounded():
		a.Reason = fmt.Sprintf("too few values: %s", a.count())
		a.need(least, false)
	default:
		// The family is in adjusted. One that is too large for so few values is inconclusive, not without a verdict.
		rule.Comparisons = 1
		v := verdict.Judge(e, adjusted, rule)
		a.Verdict, a.Reason = v.Word, v.Reason
		if v.Word != verdict.Inconclusive {
			return
		}
		a.Reason = a.inconclusive(e, adjusted, rule)
		needed, capped := v.Needed, v.Capped
		if needed < least {
			needed, capped = least, false
		}
		a.need(needed, capped)
	}
}

// inconclusive says what is missing: a small p-value, a narrow interval, or both.
func (a *Answer) inconclusive(e *verdict.Estimate, adjusted float64, rule verdict.Rule) string {
	lowest := rank.LeastP(a.Paired, a.NA, a.NB) * float64(a.Family)
	if a.Welch == nil && lowest >= verdict.Alpha {
		return fmt.Sprintf("%s cannot show any difference: the least possible p, for %d comparisons, is %.2g", a.count(),
			a.Family, min(1, lowest))
	}
	high := 1 + rule.Margin
	if beyond := e.Ratio.Low > high || e.Ratio.High < 1/high; beyond {
		return fmt.Sprintf("the interval is beyond the margin, but p = %.2g for %d comparisons", adjusted, a.Family)
	}
	return fmt.Sprintf("the interval has values on both sides of a margin (%.3g or %.3g)", 1/high, high)
}

// count names the sizes of both sides.
func (a *Answer) count() string {
	if a.Paired {
		return plural(a.N, "pair of "+a.UnitOfAnalysis+"s")
	}
	if a.NA == a.NB {
		return plural(a.NA, a.UnitOfAnalysis) + " of each"
	}
	return fmt.Sprintf("%d and %d %ss", a.NA, a.NB, a.UnitOfAnalysis)
}

// need sets how many units of analysis are needed on each side.
func (a *Answer) need(n int, atLeast bool) {
	a.Needs = &Needs{N: n, More: n - a.N, Of: a.UnitOfAnalysis, AtLeast: atLeast}
	bound := ""
	if atLeast {
		bound = "at least "
	}
	of := plural(n, a.UnitOfAnalysis) + " of each"
	if a.Paired {
		of = plural(n, "pair") + " of " + a.UnitOfAnalysis + "s"
	}
	a.Needs.Text = fmt.Sprintf("needs %s%s: %s%d more", bound, of, bound, a.Needs.More)
}

// checkPairs compares without pairs where the design has them, but no two levels have any: each was measured at other
// times, such as on another cluster.
func (s *study) checkPairs() {
	if !s.options.Paired || !s.options.ByDesign || len(s.levels) < 2 || s.anyPair() {
		return
	}
	s.options.Paired = false
	s.result.Notes = append(s.result.Notes, fmt.Sprintf("no two levels of %s have values of the same occasion and block: "+
		"they are compared without pairs", s.result.Factor))
}

// anyPair says whether two levels have trials of the same occasion, block and repetition.
func (s *study) anyPair() bool {
	for m := range s.table.Metrics {
		for i := range s.contexts {
			seen := map[trialNumber]string{}
			for level, cell := range s.contexts[i].cells {
				if s.twin(level) {
					continue
				}
				for _, v := range s.table.Series[key{Metric: m, Cell: cell}] {
					if other, ok := seen[numberOf(v)]; ok && other != level {
						return true
					}
					seen[numberOf(v)] = level
				}
			}
		}
	}
	return false
}

// trialNumber is the place of a trial: a pair has one.
type trialNumber struct{ occasion, block, repetition int32 }

func numberOf(v observation.Value) trialNumber {
	return trialNumber{v.Occasion, v.Block, v.Repetition}
}

// smallest is the least number of values on each side, or pairs, with which a p-value below verdict.Alpha is possible
// in a family of that size.
func smallest(paired bool, family int) int {
	n := 1
	for rank.LeastP(paired, n, n)*float64(max(1, family)) >= verdict.Alpha {
		n++
	}
	return n
}

// at is the key of a level; false if the context has no values of this metric there.
func (s *study) at(metric int, c *context, level string) (key, bool) {
	cell, ok := c.cells[level]
	k := key{Metric: metric, Cell: cell}
	if !ok {
		return k, false
	}
	_, ok = s.cells[k]
	return k, ok
}
