package compare

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Overall tests whether three or more levels have one distribution of a metric. It does not say which differ: that is
// the comparisons', whose p-values are adjusted whether or not this one is small.
type Overall struct {
	Metric         string  `json:"metric"`
	Context        []Level `json:"context,omitempty"`
	UnitOfAnalysis string  `json:"unitOfAnalysis"`
	Scope          string  `json:"scope"`
	// Test is Friedman, of pairs, or Kruskal–Wallis.
	Test   string   `json:"test"`
	Levels []string `json:"levels"`
	// N is the number of values of each level, or of blocks that have all levels.
	N         []int    `json:"n"`
	Statistic *float64 `json:"statistic"`
	P         *float64 `json:"p"`
	Method    string   `json:"method,omitempty"` // permutation, approximate or exact
	// Reason says why there is no test.
	Reason string `json:"reason,omitempty"`
	// Sentence is the answer in words.
	Sentence string `json:"sentence"`
}

// The tests of several levels.
const (
	friedman      = "Friedman"
	kruskalWallis = "Kruskal–Wallis"
)

// overall tests the levels of one metric in one context, for each unit of analysis of its comparisons. It tests nothing
// with fewer than three levels, or if all levels are compared with one alone.
func (s *study) overall(metric int, c *context, nested bool) {
	levels, keys := s.tested(metric, c)
	if len(levels) < 3 || s.options.Against != "" {
		return
	}
	units := []bool{true}
	switch {
	case nested && s.options.PerRepetition:
		units = []bool{false}
	case nested:
		units = []bool{true, false}
	}
	for _, groups := range units {
		x := s.sample(pair{a: keys[0], b: keys[1]}, groups)
		o := Overall{Metric: s.table.Metrics[metric].Name, Context: c.levels, UnitOfAnalysis: x.unit, Scope: x.scope,
			Levels: levels}
		s.testAll(&o, keys, groups && s.grouping.name != "")
		o.Sentence = o.sentence()
		s.result.Overall = append(s.result.Overall, o)
	}
}

// tested are the levels with single values, without the second labels of A/A pairs.
func (s *study) tested(metric int, c *context) (levels []string, keys []key) {
	for _, level := range s.levels {
		k, ok := s.at(metric, c, level)
		if ok && len(known(s.table.Series[k])) > 0 && !s.twin(level) {
			levels, keys = append(levels, level), append(keys, k)
		}
	}
	return levels, keys
}

// testAll computes the test.
func (s *study) testAll(o *Overall, keys []key, groups bool) {
	samples := make([][]float64, len(keys))
	for i, k := range keys {
		if reasons := s.weak[k]; len(reasons) > 0 {
			o.Reason = reasons[0]
		}
		samples[i] = known(s.table.Series[k])
		if groups {
			samples[i] = s.medians(s.table.Series[k])
		}
	}
	var test rank.Test
	var ok bool
	if o.Test = kruskalWallis; s.options.Paired {
		o.Test = friedman
		blocks := s.complete(keys, groups)
		o.N = []int{len(blocks)}
		test, ok = rank.Friedman(blocks)
	} else {
		for _, x := range samples {
			o.N = append(o.N, len(x))
		}
		test, ok = rank.KruskalWallis(samples)
	}
	switch {
	case o.Reason != "":
	case !ok:
		o.Reason = "no block has all levels"
	default:
		o.Statistic, o.P, o.Method = number(test.Statistic), number(test.P), string(test.Method)
	}
}

// complete are the blocks that have every level: rows of values, one for each level. Of groups the values of a level
// are their medians, over the blocks that have all levels.
func (s *study) complete(keys []key, groups bool) [][]float64 {
	count := map[trialNumber]int{}
	for _, k := range keys {
		for _, v := range s.table.Series[k] {
			if v.State == observation.Known {
				count[numberOf(v)]++
			}
		}
	}
	columns := make([][]float64, len(keys))
	for i, k := range keys {
		var own []observation.Value
		for _, v := range s.table.Series[k] {
			if v.State == observation.Known && count[numberOf(v)] == len(keys) {
				own = append(own, v)
			}
		}
		if columns[i] = known(own); groups && len(own) > 0 {
			columns[i] = s.medians(own)
		}
	}
	for _, column := range columns {
		if len(column) != len(columns[0]) { // a block has two trials of one number
			return nil
		}
	}
	rows := make([][]float64, len(columns[0]))
	for i := range rows {
		for _, column := range columns {
			rows[i] = append(rows[i], column[i])
		}
	}
	return rows
}

// sentence says what the test shows.
func (o *Overall) sentence() string {
	name := of(o.Metric, o.Context)
	if o.P == nil {
		return fmt.Sprintf("%s: no overall test of %d levels %s: %s.", name, len(o.Levels), o.Scope, o.Reason)
	}
	text := "no difference is shown"
	if *o.P < verdict.Alpha {
		text = "not all are alike"
	}
	return fmt.Sprintf("%s: %d levels %s: %s (%s, n = %s %ss, p %s).", name, len(o.Levels), o.Scope, text, o.Test,
		o.counts(), o.UnitOfAnalysis, equals(*o.P))
}

// counts is N as text: one number if all levels have as many.
func (o *Overall) counts() string {
	text := ""
	for i, n := range o.N {
		switch {
		case i == 0:
			text = fmt.Sprint(n)
		case n != o.N[0]:
			return fmt.Sprint(o.N)
		}
	}
	return text
}
