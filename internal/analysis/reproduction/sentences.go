package reproduction

import (
	"fmt"
	"strings"
)

// sentences are the answer in words.
func (r *Result) sentences() []string {
	list := []string{r.factSentence()}
	if len(r.Changed) > 0 {
		list = append(list, fmt.Sprintf("Facts changed between runs of one side, so these are not repetitions: %s.",
			names(r.Changed)))
	}
	if r.Plan != nil && r.Plan.Then != "" && r.Plan.Now != "" && !r.Plan.Same {
		list = append(list, "The resolved plans differ.")
	}
	for _, s := range r.Schedules {
		if !s.Same {
			list = append(list, fmt.Sprintf("The schedule of %s differs from its operation %d on.", s.Action, s.Equal+1))
		}
	}
	n := len(r.Then)
	if n == 1 && len(r.Now) == 1 {
		return append(list, "One run against one run cannot show that results differ: intervals are those within the two "+
			"runs. More runs: --runs 6, and further earlier bundles after the first.")
	}
	if n == 1 {
		list = append(list, r.outside())
	}
	if r.Comparison != nil {
		list = append(list, r.Comparison.Sentences...)
	}
	return list
}

// outside says which of the only earlier values are outside of the range of the later ones.
func (r *Result) outside() string {
	var outside []string
	judged, least := 0, 0 // the least number of later values has the greatest probability
	for _, x := range r.Responses {
		if x.Outside == nil {
			continue
		}
		if judged++; judged == 1 || len(x.Now) < least {
			least = len(x.Now)
		}
		if *x.Outside {
			outside = append(outside, x.Metric)
		}
	}
	left := ""
	if n := len(r.Responses) - judged; n > 0 {
		left = fmt.Sprintf(" %d other metrics are not compared with a range: a side has too few values, or lower bounds.", n)
	}
	if judged == 0 {
		return "No earlier value can be compared with a range of later ones." + left
	}
	what := "No earlier value is"
	if len(outside) > 0 {
		what = fmt.Sprintf("The earlier values of %s are", strings.Join(outside, ", "))
	}
	return fmt.Sprintf("%s outside of the range of the later ones, at least %d; if nothing changed, that happens by chance "+
		"with probability at most %.2g for each of the %d metrics.", what, least, 2/float64(least+1), judged) + left
}

func (r *Result) factSentence() string {
	if len(r.Facts.Differences) == 0 {
		return fmt.Sprintf("No recorded fact differs: %d were compared.", r.Facts.Compared)
	}
	return fmt.Sprintf("%d of %d compared facts differ.", len(r.Facts.Differences),
		r.Facts.Compared+onlyOne(r.Facts.Differences))
}

// onlyOne counts the facts that one side does not have.
func onlyOne(list []Difference) (n int) {
	for _, d := range list {
		if d.Then == nil || d.Now == nil {
			n++
		}
	}
	return n
}

func names(list []Difference) string {
	var all []string
	for _, d := range list {
		all = append(all, d.Fact)
	}
	return strings.Join(all, ", ")
}
