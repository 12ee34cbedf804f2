package compare

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats"
	"github.com/cnsbench/cnsbench/internal/stats/changepoint"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// Histories searches the levels of a factor, which are runs in order of time, for changes of each metric.
func Histories(t *observation.Table, o Options) (*Result, error) {
	s, err := newStudy(t, &o)
	if err != nil {
		return nil, err
	}
	s.describe()
	if err := s.limit(); err != nil {
		return nil, err
	}
	s.result.Cells = []Cell{} // each is one run: the history has their medians
	if err := s.histories(); err != nil {
		return nil, err
	}
	changed := 0
	for _, h := range s.result.History {
		changed += min(1, len(h.Changes))
	}
	s.result.Sentences = append(s.result.Sentences, fmt.Sprintf("%s, %s: %d changed.",
		plural(len(s.levels), "run"), plural(len(s.result.History), "metric"), changed))
	for _, h := range s.result.History {
		if len(h.Changes) > 0 {
			s.result.Sentences = append(s.result.Sentences, h.Sentence)
		}
	}
	s.result.Sentences = append(s.result.Sentences, s.flagSentences()...)
	return s.result, nil
}

// histories searches the series of all metrics together: they are one family.
func (s *study) histories() error {
	var all [][]float64
	var runs [][]string
	for m := range s.table.Metrics {
		for c := range s.contexts {
			h, values, of := s.history(m, &s.contexts[c])
			s.result.History = append(s.result.History, h)
			all, runs = append(all, values), append(runs, of)
		}
	}
	found, err := changepoint.FindAll(all, changepoint.Options{Seed: 1})
	if err != nil {
		return err
	}
	for i, f := range found {
		h := &s.result.History[i]
		h.Parameters = Parameters{Method: "E-divisive", Alpha: f.Options.Alpha, MinSegment: f.Options.MinSegment,
			Permutations: f.Options.Permutations, Seed: f.Options.Seed, Margin: h.Parameters.Margin, Family: f.Family}
		if least := 2 * f.Options.MinSegment; len(all[i]) < least {
			h.Sentence = fmt.Sprintf("%s: too few runs for a change point: %d have a value, it needs %d.", h.Metric,
				len(all[i]), least)
			continue
		}
		direction := chosen(s.table.Metrics[i/len(s.contexts)], s.options.Directions)
		for _, change := range f.Changes {
			h.Changes = append(h.Changes, changeOf(change, runs[i], h.Parameters.Margin, direction))
		}
		for _, at := range f.Outliers {
			if beyondMargin(all[i], f.Changes, at, h.Parameters.Margin) {
				h.Outliers = append(h.Outliers, runs[i][at])
			}
		}
		reason := s.options.Weak[""]
		for j := range h.Changes {
			if reason != "" {
				h.Changes[j].Word = verdict.None
			}
		}
		if h.Sentence = h.sentence(); reason != "" && len(h.Changes) > 0 {
			h.Sentence += " " + capital(reason) + "."
		}
	}
	return nil
}

// beyondMargin reports whether a value differs by more than the margin from the median of the values between the same
// two changes: where values hardly vary, standard deviations alone make outliers of differences without a meaning.
func beyondMargin(values []float64, changes []changepoint.Change, at int, margin float64) bool {
	from, to := 0, len(values)
	for _, c := range changes {
		if c.Index <= at {
			from = c.Index
		} else {
			to = min(to, c.Index)
		}
	}
	median := stats.Median(values[from:to])
	return math.Abs(values[at]-median) > margin*math.Abs(median)
}

// history is the series of one metric, with the values that are known and the names of their runs.
func (s *study) history(metric int, c *context) (h History, values []float64, runs []string) {
	m := s.table.Metrics[metric]
	direction := chosen(m, s.options.Directions)
	margin := s.options.Margin
	if margin == 0 {
		margin = verdict.DefaultMargin
	}
	h = History{Metric: m.Name, Unit: m.Unit, Context: c.levels, Direction: directionWord(direction), Changes: []Change{},
		Parameters: Parameters{Margin: margin}}
	for _, level := range s.levels {
		var x *float64
		if cell, ok := c.cells[level]; ok {
			if of := known(s.table.Series[key{Metric: metric, Cell: cell}]); len(of) > 0 {
				if x = number(stats.Median(of)); x != nil {
					values, runs = append(values, *x), append(runs, level)
				}
			}
		}
		h.Values, h.Runs = append(h.Values, x), append(h.Runs, level)
	}
	return h, values, runs
}

// changeOf is a found change with the names of its runs and its verdict.
func changeOf(f changepoint.Change, runs []string, margin float64, direction verdict.Direction) Change {
	at := func(i int) string { return runs[max(0, min(len(runs)-1, i))] }
	c := Change{Run: at(f.Index), From: at(f.Low), To: at(f.High), Ratio: number(f.Ratio.Value), Low: number(f.Ratio.Low),
		High: number(f.Ratio.High), P: number(f.P), Before: number(f.Before), After: number(f.After), Word: verdict.Trivial}
	up, down := f.Ratio.Low > 1+margin, f.Ratio.High < 1/(1+margin)
	switch {
	case math.IsNaN(f.Ratio.Value):
		c.Word = verdict.Different
	case !up && !down && (f.Ratio.Value > 1+margin || f.Ratio.Value < 1/(1+margin)):
		c.Word = verdict.Inconclusive
	case !up && !down:
	case direction == verdict.Unknown:
		c.Word = verdict.Different
	case up == (direction == verdict.MoreIsBetter):
		c.Word = verdict.Better
	default:
		c.Word = verdict.Worse
	}
	return c
}

// searched says how many runs have a value, and how many have none.
func (h *History) searched() string {
	missing := 0
	for _, x := range h.Values {
		if x == nil {
			missing++
		}
	}
	if missing == 0 {
		return plural(len(h.Runs), "run")
	}
	return fmt.Sprintf("%s (%d more have no value)", plural(len(h.Runs)-missing, "run"), missing)
}

// sentence names the changes.
func (h *History) sentence() string {
	name := of(h.Metric, h.Context)
	if len(h.Changes) == 0 {
		return name + ": no change over " + h.searched() + "."
	}
	text := name + ":"
	for i, c := range h.Changes {
		if i > 0 {
			text += ";"
		}
		times := "–"
		if c.Ratio != nil {
			times = (&Answer{Ratio: c.Ratio, Low: c.Low, High: c.High}).Times()
		}
		where := "with 95 % confidence"
		if c.From != c.To {
			where = fmt.Sprintf("with 95 %% confidence between %s and %s", c.From, c.To)
		}
		text += fmt.Sprintf(" %s from %s on (%s): %s, p = %s", words[c.Word], c.Run, where, times, P(c.P))
	}
	return text + "."
}
