package summary

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Trigger is a line about a rate that triggers by a condition.
type Trigger struct{ Rate, Text string }

// maxTriggers bounds the lines of one rate.
const maxTriggers = 10

// TriggerLines say when and why the rates with a condition triggered, and how often it could not be judged.
func (s *Summary) TriggerLines() (lines []Trigger) {
	for i := range s.Rates {
		r := &s.Rates[i]
		c := r.Condition
		if c == nil {
			continue
		}
		for _, f := range c.Firings[:min(maxTriggers, len(c.Firings))] {
			lines = append(lines, Trigger{r.Name, fmt.Sprintf("at %s, true since %s: %s", Instant(f.At), Instant(f.Since),
				f.Observed)})
		}
		lines = append(lines, Trigger{r.Name, judged(r, c)})
	}
	return lines
}

func judged(r *bundle.RateStats, c *bundle.Condition) string {
	often := fmt.Sprintf("%d times", r.Triggers)
	switch r.Triggers {
	case 0:
		often = "never"
	case 1:
		often = "once"
	}
	return fmt.Sprintf("%s by %s, evaluated %d times, of which %d were undecided", often, OneLine(c.When), c.Evaluations,
		c.Unknown)
}
