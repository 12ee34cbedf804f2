package compare

import (
	"fmt"
	"math"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/precision"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
	"github.com/cnsbench/cnsbench/internal/stats/series"
)

// Bounds of the warnings.
const (
	alpha = 0.05
	// judgeModes and judgeOrder are the least numbers of values whose modes and whose order are judged.
	judgeModes = 10
	judgeOrder = 10
)

// warnOfOrder judges the values of each cell in order of time: whether the first of an occasion differs from the
// others, whether neighbours are alike; and whether values are of one group.
func (s *study) warnOfOrder() {
	for i := range s.contexts {
		for _, level := range s.levels {
			var keys []key
			for m := range s.table.Metrics {
				if k, ok := s.at(m, &s.contexts[i], level); ok && s.table.Series[k] != nil {
					keys = append(keys, k)
				}
			}
			s.warnOfFirst(keys)
			for _, k := range keys {
				s.warnOfDependence(k)
			}
		}
	}
}

// warnOfFirst names the metrics of one level whose first repetition differs from the others.
func (s *study) warnOfFirst(keys []key) {
	metrics := make([][][]float64, len(keys))
	for i, k := range keys {
		for _, g := range s.grouping.groups(s.table.Series[k]) {
			metrics[i] = append(metrics[i], known(g))
		}
	}
	firsts, ok := series.FirstRuns(metrics)
	if !ok { // the metrics have different numbers of values
		firsts = make([]series.First, len(keys))
		p := make([]float64, len(keys))
		for i := range keys {
			if firsts[i], ok = series.FirstRun(metrics[i]); !ok {
				firsts[i].P = math.NaN()
			}
			p[i] = firsts[i].P
		}
		for i, adjusted := range rank.Holm(p) {
			firsts[i].Adjusted = adjusted
		}
	}
	for i, f := range firsts {
		if f.Adjusted < alpha {
			s.warn(keys[i], "firstRun", "%s", firstText(f, s.grouping.name))
		}
	}
}

// firstText describes a first repetition that differs.
func firstText(f series.First, group string) string {
	side, n := "lower", f.Lowest
	if f.Highest > f.Lowest {
		side, n = "higher", f.Highest
	}
	text := "the first run is " + side + " than all others"
	if f.Occasions > 1 {
		text += fmt.Sprintf(" in %d of %s", n, plural(f.Occasions, group))
	}
	if !math.IsNaN(f.Ratio) {
		text += " (×" + figure3(f.Ratio) + " of their median"
	} else {
		text += " ("
	}
	return text + ", p = " + figure2(f.Adjusted) + "): warm-up or cache"
}

// warnOfDependence names values that depend on their neighbours, and values of several groups.
func (s *study) warnOfDependence(k key) {
	values := s.table.Series[k]
	finite := known(values)
	if len(finite) >= judgeModes {
		if within, p, ok := precision.Bimodal(finite); ok && p < alpha {
			s.warn(k, "bimodal", "the values form two or more groups (%.2g of their variance is within two, p = %.2g): the "+
				"interval of their median will not converge", within, p)
		}
	}
	if s.grouped(k) {
		s.warnOfOccasions(k, values)
		return
	}
	if len(finite) < judgeOrder {
		return
	}
	if r, limit, ok := series.Lag1(finite); ok && math.Abs(r) > limit {
		how := "alike"
		if r < 0 {
			how = "opposite"
		}
		s.warn(k, "autocorrelated", "neighbours are %s (lag-1 correlation %.2f, limit %.2f): the values are not independent",
			how, r, limit)
		return
	}
	if p, ok := series.Runs(finite); ok && p < alpha {
		s.warn(k, "autocorrelated", "the values are not in random order (runs test, p = %.2g): they are not independent", p)
	}
}

// warnOfOccasions says that values of one occasion are more alike than those of others.
func (s *study) warnOfOccasions(k key, values []observation.Value) {
	var groups [][]float64
	for _, g := range s.grouping.groups(values) {
		var logs []float64
		for _, x := range known(g) {
			if !(x > 0) {
				return
			}
			logs = append(logs, math.Log(x))
		}
		groups = append(groups, logs)
	}
	test, ok := rank.KruskalWallis(groups)
	c, varies := precision.VarianceOf(groups)
	if !ok || !varies || test.P >= alpha || c.Add != precision.Occasions {
		return
	}
	s.warn(k, "occasionsDiffer", "%ss differ by ±%s %% (p = %.2g), repetitions within one by ±%s %%: more repetitions "+
		"will not help, more %ss will", s.grouping.name, figure2(100*math.Sqrt(c.Between)), test.P,
		figure2(100*math.Sqrt(c.Within)), s.grouping.name)
}
