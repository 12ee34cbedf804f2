package compare

import (
	"fmt"
	"math"
	"slices"

	"github.com/cnsbench/cnsbench/internal/stats/verdict"
)

// margin is the ratio − 1 from which a difference of a metric matters, and where it is from: the option, what the study
// declares, or the greater of 5 % and the noise floor. The text has the noise floor too. A margin below it gets a note.
func (s *study) margin(metric int, c *context) (margin float64, from string) {
	floor, n := s.noise(metric, c)
	margin, from = s.options.Margin, "given"
	if margin == 0 {
		margin, from = s.options.Margins[s.table.Metrics[metric].Name], "declared by the study"
	}
	if margin > 0 {
		if n > 0 {
			from += fmt.Sprintf("; the noise floor of %d differences is %s %%", n, figure2(100*floor))
		}
		if floor > margin {
			s.result.Notes = append(s.result.Notes, fmt.Sprintf("%s: the margin of %s %% is below the noise floor of %s %%: "+
				"two labels of one provider differ by more, and so can levels that are alike",
				of(s.table.Metrics[metric].Name, c.levels), figure3(100*margin), figure2(100*floor)))
		}
		return margin, from
	}
	switch {
	case floor > verdict.DefaultMargin:
		return floor, fmt.Sprintf("noise floor: 95th percentile of %d differences between two labels of one provider", n)
	case n > 0:
		return verdict.DefaultMargin, fmt.Sprintf("default; the noise floor of %d differences is %s %%", n,
			figure2(100*floor))
	}
	return verdict.DefaultMargin, "default; no provider under two labels shows the noise floor"
}

// noise is the noise floor of a metric: the 95th percentile of the differences between the two labels of an A/A pair,
// as the share by which a ratio is above 1. n counts the differences: those of values with the same occasion, block
// and repetition.
func (s *study) noise(metric int, c *context) (floor float64, n int) {
	var differences []float64
	for _, aa := range s.options.AA {
		a, okA := s.at(metric, c, aa[0])
		b, okB := s.at(metric, c, aa[1])
		if !okA || !okB {
			continue
		}
		var x sample
		s.pairUp(&x, s.table.Series[a], s.table.Series[b], false)
		for i := range x.a {
			if x.a[i] > 0 && x.b[i] > 0 {
				differences = append(differences, math.Abs(math.Log(x.b[i]/x.a[i])))
			}
		}
	}
	if len(differences) == 0 {
		return 0, 0
	}
	slices.Sort(differences)
	at := int(math.Ceil(0.95*float64(len(differences)))) - 1
	return math.Exp(differences[at]) - 1, len(differences)
}
