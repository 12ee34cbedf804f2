package cli

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/expr"
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
	builder := func() *observation.Builder {
		b := observation.NewBuilder(factors, occasionColumn, blockColumn)
		b.Numbered = true
		return b
	}
	b := builder()
	in := &compared{preferred: d.Compared, paired: t.Order != nil, margins: map[string]float64{},
		directions: map[string]verdict.Direction{}, arms: map[string][][2]string{}}
	in.declare(t)
	queries, err := study.Responses(d.Responses)
	if err != nil {
		return nil, err
	}
	prices, err := pricesOf(d, given)
	if err != nil {
		return nil, err
	}
	flags, err := in.studyTrials(d, t, queries, prices, builder)
	if err != nil {
		return nil, err
	}
	done, waiting := 0, 0
	for i := range t.Rows {
		done += t.Rows[i].Done
		in.arm(t, i)
		waiting += addRow(b, t, &t.Rows[i], queries, flags)
		flagUnsteady(b, d, t, i)
	}
	if waiting > 0 {
		in.notes = append(in.notes, fmt.Sprintf("%d of %s of the study in %s have not run: the study is unfinished, and the "+
			"figures are of those that ran", waiting, count(len(d.Trials), "trial"), d.Path))
	}
	if done == 0 {
		return nil, fmt.Errorf("no trial of the study in %s is complete: there is nothing to compare", d.Path)
	}
	in.costs.fill(b)
	in.table = b.Table()
	return in, nil
}

// studyTrials reads the bundles of a study: the times of the components in its trials, which explain its responses, the
// quantiles of its latencies, what its trials cost, and the validity flags by the name of the trial.
func (in *compared) studyTrials(d *study.Dir, t *study.Table, queries []expr.Query, prices *cost.Prices,
	builder func() *observation.Builder) (map[string]trial.Flags, error) {
	flags, o := map[string]trial.Flags{}, newOrigin("")
	var times trial.Times
	var quantiles trial.Quantiles
	for _, q := range queries {
		times.Explain(q)
	}
	for _, x := range d.Trials {
		run := d.Bundle(x)
		if run == nil {
			continue
		}
		at := observation.Row{Levels: levelsOf(t.Rows[x.Cell].Levels), Occasion: fmt.Sprint(x.Occasion),
			Block: fmt.Sprint(x.Block), Repetition: 1}
		data, err := dataset.Read(run)
		if err == nil {
			err = errors.Join(times.Add(at, run), quantiles.Add(at, data))
		}
		if err == nil {
			flags[x.Name], err = trial.FlagsOf(&run.Run)
		}
		if err == nil {
			err = in.addCosts(at, data, prices, flags[x.Name])
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", x.Name, err)
		}
		if err := o.addRun(at.Levels, &run.Run, d.Of(x)); err != nil {
			return nil, err
		}
	}
	in.times, in.quantiles = times.Fill(builder()), quantiles.Fill(builder())
	for _, c := range o.cells {
		for _, f := range d.Distributions {
			text, err := json.Marshal(f.Distribution)
			if err != nil {
				return nil, err
			}
			c.workload[f.Key+" (distribution)"] = []string{string(text)}
		}
	}
	in.origins = []origin{o}
	return flags, nil
}

// levelsOf are the values of a cell's levels; of a study without factors all trials are of one.
func levelsOf(list []study.Level) []string {
	if len(list) == 0 {
		return []string{"all"}
	}
	return levelValues(list)
}

func levelValues(list []study.Level) (values []string) {
	for _, l := range list {
		values = append(values, l.Value)
	}
	return values
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

// notSteady is the flag of cells that did not become steady before an occasion.
const notSteady = "notSteady"

// flagUnsteady flags a cell that did not become steady in its precondition. An A/A arm has the storage of its cell.
func flagUnsteady(b *observation.Builder, d *study.Dir, t *study.Table, i int) {
	row := &t.Rows[i]
	of := row
	if row.AAOf != nil {
		of = &t.Rows[*row.AAOf]
	}
	for _, w := range t.WarmUps {
		if row.Done == 0 || w.Cell != cellName(of.Levels) || !d.Unsteady(&w) {
			continue
		}
		for j, v := range row.Values {
			b.Flag(levelsOf(row.Levels), observation.Metric{Name: t.Responses[j], Unit: v.Unit}, observation.Flag{
				Name: notSteady, Severity: validity.Warning, OfCell: true, Occasion: fmt.Sprint(w.Occasion),
				Evidence: fmt.Sprintf("precondition, occasion %d: %s of %s was not steady after %s", w.Occasion,
					d.Precondition.Response, w.Cell, count(w.Rounds, "round"))})
		}
	}
}

// addRow adds the trials of a cell that ran, with their flags. It returns the number of the others.
func addRow(b *observation.Builder, t *study.Table, row *study.Row, queries []expr.Query,
	flags map[string]trial.Flags) (waiting int) {
	levels := levelsOf(row.Levels)
	for j, v := range row.Values {
		m := observation.Metric{Name: t.Responses[j], Unit: v.Unit}
		for _, x := range v.Trials {
			if x.Missing == study.NotDone {
				if j == 0 {
					waiting++
				}
				continue
			}
			r := observation.Row{Levels: levels, Metric: m, Occasion: fmt.Sprint(x.Occasion), Block: fmt.Sprint(x.Block),
				Repetition: 1}
			r.Value, r.State = trialValue(x)
			addFlagged(b, r, func() ([]observation.Flag, bool) { return flags[x.Trial].Of(queries[j]) })
		}
	}
	return waiting
}

// addFlagged adds a value with the flags that concern it.
func addFlagged(b *observation.Builder, r observation.Row, of func() (list []observation.Flag, invalid bool)) {
	list, invalid := of()
	if invalid && r.State != observation.Missing {
		r.State = observation.Invalid
	}
	b.Add(r)
	for _, f := range list {
		f.Occasion, f.Block = r.Occasion, r.Block
		b.Flag(r.Levels, r.Metric, f)
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
