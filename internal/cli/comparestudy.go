package cli

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/study"
)

// blockColumn is what groups the trials of a study: each block has every cell once.
const blockColumn = "block"

// studyTable has the values of the trials of a study. Its blocks are pairs by design.
func studyTable(d *study.Dir) (*compared, error) {
	t, err := d.Table()
	if err != nil {
		return nil, err
	}
	factors := t.Factors
	if len(factors) == 0 {
		factors = []string{"cell"}
	}
	b := observation.NewBuilder(factors, "", blockColumn)
	b.Numbered = true
	done := 0
	for i := range t.Rows {
		row := &t.Rows[i]
		done += row.Done
		levels := []string{"all"}
		if len(row.Levels) > 0 {
			levels = nil
		}
		for _, l := range row.Levels {
			levels = append(levels, l.Value)
		}
		for j, v := range row.Values {
			m := observation.Metric{Name: t.Responses[j], Unit: v.Unit}
			for _, x := range v.Trials {
				r := observation.Row{Levels: levels, Metric: m, Block: fmt.Sprint(x.Repetition), Repetition: 1}
				r.Value, r.State = trialValue(x)
				b.Add(r)
			}
		}
	}
	if done == 0 {
		return nil, fmt.Errorf("no trial of the study in %s is complete: there is nothing to compare", d.Path)
	}
	return &compared{table: b.Table(), paired: t.Order != nil}, nil
}

// trialValue is a value of a study's table.
func trialValue(x study.TrialValue) (float64, observation.State) {
	switch {
	case x.Infinite:
		return 0, observation.Infinite
	case x.Value == nil:
		return 0, observation.Missing
	case x.AtLeast:
		return *x.Value, observation.AtLeast
	}
	return *x.Value, observation.Known
}
