package table

import (
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
)

// Objectives has the verdict of each objective, and what was observed.
func Objectives(s *summary.Summary) Table {
	t := Table{Columns: []Column{text("objective"), text("verdict"), text("expression"), text("observed")}}
	for _, v := range s.Verdicts {
		seen := Cell{}
		for _, o := range v.Observed {
			if o.Value == "no data" {
				continue
			}
			line := o.String()
			if o.Warning != "" {
				line += ": " + o.Warning
			}
			if seen.Text == "" {
				seen.Text = line
			} else {
				seen.Sub = append(seen.Sub, line)
			}
		}
		if v.Message != "" {
			seen.Sub = append(seen.Sub, v.Message)
		}
		t.Rows = append(t.Rows, []Cell{{Text: v.Name, Strong: true}, cell(string(v.Status)), cell(v.Expr), seen})
	}
	return t.trimmed()
}

// Validity has the validity flags of a run.
func Validity(s *summary.Summary) Table {
	t := Table{Columns: []Column{text("flag"), text("severity"), text("evidence")}}
	for _, f := range s.Validity {
		t.Rows = append(t.Rows, []Cell{{Text: f.Name, Strong: true}, cell(f.Severity), cell(f.Evidence)})
	}
	return t
}
