package compare

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Absent is a level without a value of a metric of which another level has some.
type Absent struct {
	Metric  string  `json:"metric"`
	Context []Level `json:"context,omitempty"`
	Level   string  `json:"level"`
	// Trials of the level, of which none has a value; 0: it has none, or they do not measure the metric.
	Trials int `json:"trials"`
	// Than are the levels with values.
	Than []string `json:"than"`
}

// String says what is absent: "p50(volumes), size 4k: b has no value in 6 trials, a has some".
func (a *Absent) String() string {
	name := of(a.Metric, a.Context)
	in := ""
	if a.Trials > 0 {
		in = " in " + plural(a.Trials, "trial")
	}
	has := "has"
	if len(a.Than) > 1 {
		has = "have"
	}
	return fmt.Sprintf("%s: %s has no value%s, %s %s some", name, a.Level, in, strings.Join(a.Than, " and "), has)
}

// findAbsent lists the levels without values. A level that a context does not have counts if the options say so.
func (s *study) findAbsent() {
	for m := range s.table.Metrics {
		for i := range s.contexts {
			c := &s.contexts[i]
			var than []string
			var without []Absent
			for _, level := range s.levels {
				_, has := c.cells[level]
				if s.twin(level) || !has && !s.options.Whole {
					continue
				}
				n, usable := s.usable(m, c, level)
				if usable {
					than = append(than, level)
					continue
				}
				without = append(without, Absent{Metric: s.table.Metrics[m].Name, Context: c.levels, Level: level, Trials: n})
			}
			for _, a := range without {
				if a.Than = than; len(than) > 0 {
					s.result.Absent = append(s.result.Absent, a)
				}
			}
		}
	}
}

// usable says whether a level has a value or a mean that can be used, with the number of its trials.
func (s *study) usable(metric int, c *context, level string) (n int, ok bool) {
	k, ok := s.at(metric, c, level)
	if !ok {
		return 0, false
	}
	if _, ok := s.table.Aggregates[k]; ok {
		return 0, true
	}
	return len(s.table.Series[k]), slices.ContainsFunc(s.table.Series[k], func(v observation.Value) bool {
		return v.State != observation.Missing && v.State != observation.Invalid
	})
}

// Gate is the answer that a gate judges: the verdict's, or the one for these occasions where the occasions are too few
// for any difference to be shown in general.
func (c *Comparison) Gate() *Answer {
	undecided := c.Verdict == verdict.None || c.Verdict == verdict.Inconclusive
	if c.Within != nil && undecided &&
		rank.LeastP(c.Paired, c.NA, c.NB)*float64(max(1, c.Family)) >= verdict.Alpha {
		return c.Within
	}
	return &c.Answer
}
