package cli

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/observation"
	"github.com/cnsbench/cnsbench/internal/stats/verdict"
	"github.com/cnsbench/cnsbench/internal/study"
)

// Names of the columns of a study's trials.
const (
	blockColumn    = "block"
	occasionColumn = "occasion"
	cellColumn     = "cell" // of a study without factors
)

// studyTable has the values of the trials of a study. Its blocks are pairs by design.
func studyTable(d *study.Dir, given *cost.Prices) (*compared, error) {
	t, err := d.Table()
	if err != nil {
		return nil, err
	}
	factors := t.Factors
	if len(factors) == 0 {
		factors = []string{cellColumn}
	}
	b := observation.NewBuilder(factors, occasionColumn, blockColumn)
	b.Numbered = true
	in := &compared{preferred: d.Compared, paired: t.Order != nil, margins: map[string]float64{},
		directions: map[string]verdict.Direction{}, arms: map[string][][2]string{}}
	in.declare(t)
	done := 0
	for i := range t.Rows {
		done += t.Rows[i].Done
		in.arm(t, i)
		addRow(b, t, &t.Rows[i])
	}
	if err := in.studyCosts(b, d, given); err != nil {
		return nil, err
	}
	if done == 0 {
		return nil, fmt.Errorf("no trial of the study in %s is complete: there is nothing to compare", d.Path)
	}
	in.table = b.Table()
	if in.times, err = studyTimes(d, t, factors); err != nil {
		return nil, err
	}
	in.quantiles, err = studyQuantiles(d, factors)
	return in, err
}

// studyQuantiles has the quantiles of the latencies in the trials of a study.
func studyQuantiles(d *study.Dir, factors []string) (*compare.Quantiles, error) {
	var quantiles trial.Quantiles
	for _, x := range d.Trials {
		b := d.Bundle(x)
		if b == nil {
			continue
		}
		data, err := dataset.Read(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
		at := observation.Row{Levels: levelsOf(d.Cells[x.Cell].Levels), Occasion: fmt.Sprint(x.Occasion),
			Block: fmt.Sprint(x.Block), Repetition: 1}
		if err := quantiles.Add(at, data); err != nil {
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
	}
	b := observation.NewBuilder(factors, occasionColumn, blockColumn)
	b.Numbered = true
	return quantiles.Fill(b), nil
}

// studyTimes has the times of the components in the trials of a study, which explain its responses.
func studyTimes(d *study.Dir, t *study.Table, factors []string) (*compare.Times, error) {
	queries, err := study.Responses(d.Responses)
	if err != nil {
		return nil, err
	}
	var times trial.Times
	for _, q := range queries {
		times.Explain(q)
	}
	for _, x := range d.Trials {
		b := d.Bundle(x)
		if b == nil {
			continue
		}
		at := observation.Row{Levels: levelsOf(t.Rows[x.Cell].Levels), Occasion: fmt.Sprint(x.Occasion),
			Block: fmt.Sprint(x.Block), Repetition: 1}
		if err := times.Add(at, b); err != nil {
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
	}
	b := observation.NewBuilder(factors, occasionColumn, blockColumn)
	b.Numbered = true
	return times.Fill(b), nil
}

// studyCosts adds the costs of the trials of a study.
func (in *compared) studyCosts(b *observation.Builder, d *study.Dir, given *cost.Prices) error {
	p, err := pricesOf(d, given)
	if err != nil || p == nil {
		return err
	}
	for _, trial := range d.Trials {
		bundle := d.Bundle(trial)
		if bundle == nil {
			continue
		}
		data, err := dataset.Read(bundle)
		if err != nil {
			return fmt.Errorf("%s: %w", trial.Name, err)
		}
		row := observation.Row{Levels: levelsOf(d.Cells[trial.Cell].Levels), Repetition: 1,
			Occasion: fmt.Sprint(trial.Occasion), Block: fmt.Sprint(trial.Block)}
		if err := in.addCosts(b, row, data, p); err != nil {
			return fmt.Errorf("%s: %w", trial.Name, err)
		}
	}
	return nil
}

// levelsOf are the values of a cell's levels; of a study without factors all trials are of one.
func levelsOf(list []study.Level) []string {
	levels := make([]string, 0, len(list))
	for _, l := range list {
		levels = append(levels, l.Value)
	}
	if len(levels) == 0 {
		levels = []string{"all"}
	}
	return levels
}

// declare takes over what a study declares of its metrics.
func (in *compared) declare(t *study.Table) {
	in.least = map[string]int64{}
	for j, response := range t.Responses {
		for _, r := range t.Rows {
			in.least[response] = max(in.least[response], r.Values[j].Needs)
		}
	}
	for _, m := range t.Metrics {
		if m.Margin > 0 {
			in.margins[m.Response] = m.Margin
		}
		if direction, err := compare.ParseDirections([]string{m.Direction}); err == nil {
			in.directions[m.Response] = direction[""]
		}
	}
	if len(t.Distributions) > 0 {
		in.notes = append(in.notes, "factors that are distributions vary from block to block; the figures include that")
	}
}

// arm notes the two labels of an A/A arm.
func (in *compared) arm(t *study.Table, i int) {
	if t.Rows[i].AAOf == nil {
		return
	}
	twin, of := t.Rows[i].Levels, t.Rows[*t.Rows[i].AAOf].Levels
	for j := range twin {
		if pair := [2]string{of[j].Value, twin[j].Value}; pair[0] != pair[1] {
			in.arms[twin[j].Factor] = append(in.arms[twin[j].Factor], pair)
		}
	}
}

// addRow adds the trials of a cell.
func addRow(b *observation.Builder, t *study.Table, row *study.Row) {
	levels := levelsOf(row.Levels)
	for j, v := range row.Values {
		m := observation.Metric{Name: t.Responses[j], Unit: v.Unit}
		for _, x := range v.Trials {
			r := observation.Row{Levels: levels, Metric: m, Occasion: fmt.Sprint(x.Occasion), Block: fmt.Sprint(x.Block),
				Repetition: 1}
			r.Value, r.State = trialValue(x)
			b.Add(r)
		}
	}
}

// trialValue is a value of a study's table.
func trialValue(x study.TrialValue) (float64, observation.State) {
	switch {
	case x.Infinite:
		return 0, observation.Infinite
	case x.Operations > 0:
		return 0, observation.Few
	case x.Value == nil:
		return 0, observation.Missing
	case x.AtLeast:
		return *x.Value, observation.AtLeast
	}
	return *x.Value, observation.Known
}
