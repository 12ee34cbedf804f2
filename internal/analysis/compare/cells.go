package compare

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// maxMissing is the share of trials without a value from which a cell is not judged.
const maxMissing = 0.1

// describe makes the cells, in order of metric, context and level.
func (s *study) describe() {
	for m := range s.table.Metrics {
		for i := range s.contexts {
			for _, level := range s.levels {
				cell, ok := s.contexts[i].cells[level]
				if ok {
					s.describeCell(key{Metric: m, Cell: cell}, level, s.contexts[i].levels)
				}
			}
		}
	}
}

func (s *study) describeCell(k key, level string, context []Level) {
	values, aggregate := s.table.Series[k], observation.Aggregate{}
	if values == nil {
		var ok bool
		if aggregate, ok = s.table.Aggregates[k]; !ok {
			return
		}
	}
	metric := s.table.Metrics[k.Metric]
	c := Cell{Metric: metric.Name, Unit: metric.Unit, Level: level, Context: context, CVDenominator: "mean",
		Warnings: []Warning{}, key: k}
	s.cells[k] = len(s.result.Cells)
	for _, name := range []string{"", metric.Name} {
		if reason := s.options.Weak[name]; reason != "" {
			s.weaken(k, "%s", reason)
		}
	}
	if values == nil {
		c.N, c.Mean, c.SD = aggregate.N, number(aggregate.Mean), number(aggregate.SD)
		if aggregate.Mean > 0 {
			c.CV = number(aggregate.SD / aggregate.Mean)
		}
		s.result.Cells = append(s.result.Cells, c)
		s.warnOfMean(k, level, aggregate)
		return
	}
	if s.grouping.name != "" {
		c.Occasions = len(s.grouping.groups(values))
	}
	finite := known(values)
	if d, ok := stats.Describe(finite); ok {
		c.N, c.Mean, c.SD, c.Median = d.N, number(d.Mean), number(d.SD), number(d.Median)
		c.CV, c.CVOfMedian = number(d.CVMean), number(d.CVMedian)
		c.MedianLow, c.MedianHigh, c.Min, c.Max = number(d.Low), number(d.High), number(d.Min), number(d.Max)
	}
	s.result.Cells = append(s.result.Cells, c)
	s.warnOfValues(k, level, values, finite)
	s.flagTrials(k, len(values))
}

// warnOfMean says what is known of a cell without single trials.
func (s *study) warnOfMean(k key, level string, a observation.Aggregate) {
	if math.IsNaN(a.SD) || a.N < 2 {
		s.warn(k, "meanOnly", "only a mean is known: without single trials, or sd and n, nothing can be tested")
	} else {
		s.warn(k, "meanOnly", "%s", WelchText)
	}
	if !(a.Mean > 0) {
		s.weaken(k, "%s has a mean of %s: a ratio needs values above 0", level, figure(a.Mean, s.cell(k).Unit))
	}
}

// weaken adds a reason for which a cell is not judged.
func (s *study) weaken(k key, format string, args ...any) {
	s.weak[k] = append(s.weak[k], fmt.Sprintf(format, args...))
}

// warnOfValues judges the values regardless of their order.
func (s *study) warnOfValues(k key, level string, values []observation.Value, finite []float64) {
	count := map[observation.State]int{}
	for _, v := range values {
		count[v.State]++
	}
	c := s.cell(k)
	c.Missing, c.Invalid = count[observation.Missing], count[observation.Invalid]
	if c.Invalid > 0 && float64(c.Invalid+c.Missing) > maxMissing*float64(len(values)) {
		s.weaken(k, "%d of %d trials of %s are invalid (%s)", c.Invalid, len(values), level, s.reasons(k))
	}
	if missing := count[observation.Missing]; missing > 0 {
		s.warn(k, "missing", "%d of %d trials have no value", missing, len(values))
		switch {
		case missing == len(values):
			s.weaken(k, "no trial of %s has a value: all %d failed, or measured nothing of it", level, missing)
		case float64(missing) > maxMissing*float64(len(values)):
			s.weaken(k, "%d of %d trials of %s have no value", missing, len(values), level)
		}
	}
	if few := count[observation.Few]; few > 0 {
		than := "the quantile needs"
		if least := s.options.Least[c.Metric]; least > 0 {
			than = fmt.Sprintf("the %d that the quantile needs", least)
		}
		s.warn(k, "fewOperations", "%d of %d trials have fewer operations than %s", few, len(values), than)
		s.weaken(k, "%d of %d trials of %s have fewer operations than %s: let trials last longer, or compare p50 or max",
			few, len(values), level, than)
	}
	if unbounded := count[observation.AtLeast] + count[observation.Infinite]; unbounded > 0 {
		s.warn(k, "censored", "%d of %d trials have a lower bound only: operations had not ended, or a search met no rate "+
			"that fails, or no knee", unbounded, len(values))
		s.weaken(k, "%d of %d trials of %s have a lower bound only", unbounded, len(values), level)
	}
	if n := int(stats.MinN(0.5)); c.N > 0 && c.N < n {
		s.warn(k, "few", "n = %d: an interval of the median needs %d values", c.N, n)
	}
	if c.N > 1 && *c.Min == *c.Max {
		s.warn(k, "constant", "all %d values are equal: check that this was measured", c.N)
	}
	for _, x := range finite {
		if !(x > 0) {
			s.weaken(k, "%s has a value of %s: a ratio needs values above 0", level, figure(x, c.Unit))
			break
		}
	}
}
