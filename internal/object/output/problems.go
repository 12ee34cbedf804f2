package output

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
)

// problems are the failures of a stage by operation and kind, each with the first detail, and what its checks found.
func problems(s *loadgen.StageResult) (lines []string, err error) {
	for i := range s.Works {
		w := &s.Works[i]
		figures, err := w.Figures()
		if err != nil {
			return lines, err
		}
		for _, f := range figures {
			who := fmt.Sprintf("%s/%s %s: ", s.Name, w.Work.Name, f.Name)
			for k := range f.Checks {
				lines = append(lines, who+check(&f.Checks[k], w.Work.Ops[f.Op].CheckWithin))
			}
			for _, x := range f.Failures {
				line := fmt.Sprintf("%s%d × %s", who, x.N, x.Label)
				if x.Detail != "" {
					line += ": " + x.Detail
				}
				lines = append(lines, line)
			}
		}
	}
	return lines, nil
}

// check is what a check found.
func check(c *loadgen.CheckFigures, within time.Duration) string {
	s := fmt.Sprintf("%s: %d violations in %d checks", c.Check, c.Violated(), c.Done)
	if c.Unanswered > 0 {
		s += fmt.Sprintf(", %d without an answer", c.Unanswered)
	}
	if c.Skipped > 0 {
		s += fmt.Sprintf(", %d left out since an earlier change of the object had no answer", c.Skipped)
	}
	for _, v := range c.Violations {
		s += fmt.Sprintf("; %d × %s", v.N, v.Kind)
		if p50, ok := v.Until.Quantile(0.5); ok {
			s += fmt.Sprintf(", consistent after %s (median), %s (longest)", expr.Format(float64(p50), "ns"),
				expr.Format(float64(v.Until.Max()), "ns"))
		}
		if v.Lasting > 0 {
			s += fmt.Sprintf(", %d not within %v", v.Lasting, within)
		}
		if v.Detail != "" {
			s += ", e.g. " + v.Detail
		}
	}
	return s
}
