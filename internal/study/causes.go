package study

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// CellCauses says what took the time of the operations of one action in the trials of a cell. It describes these
// trials: whether the time of a component differs between cells is tested by compare.
type CellCauses struct {
	Action string  `json:"action"`
	Levels []Level `json:"levels"`
	// Trials with successful operations of the action; TooFew of them have too few to say what stands out.
	Trials int `json:"trials"`
	TooFew int `json:"tooFew"`
	// Components have the time, the longest first.
	Components []ComponentTime `json:"components"`
	// Causes are what stands out in a trial, the one that does in most trials first.
	Causes   []CellCause `json:"causes"`
	Sentence string      `json:"sentence"`
}

// ComponentTime is the time that a component takes of an operation: the median of the trials' means, and of its shares.
type ComponentTime struct {
	Component string  `json:"component"`
	MeanNs    float64 `json:"meanNs"`
	Share     float64 `json:"share"`
}

// CellCause is a component that stands out in StandsOut trials, in First of them before all others.
type CellCause struct {
	Component string           `json:"component"`
	Kind      attribution.Kind `json:"kind"`
	StandsOut int              `json:"standsOut"`
	First     int              `json:"first"`
	// Share of the time that is excess: median and range of the trials in which it stands out.
	Share    float64 `json:"share"`
	ShareMin float64 `json:"shareMin"`
	ShareMax float64 `json:"shareMax"`
	// Evidence is that of Trial, the first in which it stands out.
	Evidence string `json:"evidence"`
	Trial    string `json:"trial"`
}

// Causes reads every complete trial. They are in order of action and cell, along the factors; an A/A arm is left out.
func (d *Dir) Causes() ([]CellCauses, error) {
	type key struct {
		action string
		cell   int
	}
	of := map[key][]trialCauses{}
	var order []string // of actions
	for _, trial := range d.byRepetition() {
		b := d.Bundle(trial)
		if b == nil || d.Cells[trial.Cell].AAOf != nil {
			continue
		}
		data, err := dataset.Read(b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Of(trial), err)
		}
		actions, err := summary.Actions(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.Of(trial), err)
		}
		for _, a := range actions {
			if len(a.Attribution) == 0 {
				continue
			}
			if !slices.Contains(order, a.Name) {
				order = append(order, a.Name)
			}
			k := key{a.Name, trial.Cell}
			of[k] = append(of[k], trialCauses{trial.Name, a.Attribution, a.Causes,
				a.Outcomes[op.OK] < int64(attribution.LeastOps)})
		}
	}
	var list []CellCauses
	for _, action := range order {
		for i, c := range d.Cells {
			if trials := of[key{action, i}]; len(trials) > 0 {
				list = append(list, cellCauses(action, c.Levels, trials))
			}
		}
	}
	return list, nil
}

// trialCauses are those of one action in one trial.
type trialCauses struct {
	trial  string
	shares []attribution.Share
	causes []attribution.Cause
	few    bool // too few ops for an interval
}

// cellCauses joins the trials of a cell.
func cellCauses(action string, levels []Level, trials []trialCauses) CellCauses {
	c := CellCauses{Action: action, Levels: levels, Trials: len(trials), Components: components(trials),
		Causes: []CellCause{}}
	shares := map[string][]float64{}
	for _, t := range trials {
		if t.few {
			c.TooFew++
		}
		seen := map[string]bool{} // a component may stand out by several steps: the first counts
		for rank, x := range t.causes {
			if !x.StandsOut || seen[x.Component] {
				continue
			}
			seen[x.Component] = true
			i := slices.IndexFunc(c.Causes, func(k CellCause) bool { return k.Component == x.Component })
			if i < 0 {
				i = len(c.Causes)
				c.Causes = append(c.Causes, CellCause{Component: x.Component, Kind: x.Kind, Evidence: x.Evidence,
					Trial: t.trial})
			}
			c.Causes[i].StandsOut++
			if rank == 0 {
				c.Causes[i].First++
			}
			shares[x.Component] = append(shares[x.Component], x.Share)
		}
	}
	for i := range c.Causes {
		x := &c.Causes[i]
		of := shares[x.Component]
		x.Share, x.ShareMin, x.ShareMax = stats.Median(of), slices.Min(of), slices.Max(of)
	}
	slices.SortStableFunc(c.Causes, func(a, b CellCause) int {
		return cmp.Or(cmp.Compare(b.First, a.First), cmp.Compare(b.StandsOut, a.StandsOut))
	})
	c.Sentence = c.sentence()
	return c
}

// components are the medians of the trials; a component that a trial does not have took no time there.
func components(trials []trialCauses) []ComponentTime {
	means, shares := map[string][]float64{}, map[string][]float64{}
	for i, t := range trials {
		for _, s := range t.shares {
			if means[s.Component] == nil {
				means[s.Component], shares[s.Component] = make([]float64, len(trials)), make([]float64, len(trials))
			}
			means[s.Component][i], shares[s.Component][i] = s.MeanNs, s.Share
		}
	}
	var list []ComponentTime
	for _, name := range slices.Sorted(maps.Keys(means)) {
		list = append(list, ComponentTime{name, stats.Median(means[name]), stats.Median(shares[name])})
	}
	slices.SortStableFunc(list, func(a, b ComponentTime) int { return cmp.Compare(b.MeanNs, a.MeanNs) })
	return list
}

// mostComponents is how many components a text names.
const mostComponents = 3

// Times are the times of the components in words: "CSI driver 15.6 ms (81 %), volume (first I/O) 1.65 ms (9 %)".
func (c *CellCauses) Times() string {
	var parts []string
	for _, x := range c.Components[:min(len(c.Components), mostComponents)] {
		parts = append(parts, fmt.Sprintf("%s %s (%.0f %%)", x.Component, units.Duration(x.MeanNs), 100*x.Share))
	}
	return strings.Join(parts, ", ")
}

// sentence says what stands out.
func (c *CellCauses) sentence() string {
	text := fmt.Sprintf("none stands out in %s", ofTrials(c.Trials-c.TooFew, c.Trials))
	if len(c.Causes) > 0 {
		x := &c.Causes[0]
		component, share := x.Component, "beyond its ordinary time"
		if x.Kind == attribution.BusyMachine {
			component, share = "a busy machine", "during"
		}
		text = fmt.Sprintf("%s stands out in %s, first in %d: %s %.0f %% of the time", component,
			ofTrials(x.StandsOut, c.Trials), x.First, share, 100*x.Share)
		if x.StandsOut > 1 {
			text += fmt.Sprintf(" (%.0f to %.0f)", 100*x.ShareMin, 100*x.ShareMax)
		}
		text += "; " + x.Evidence + " (" + x.Trial + ")"
	}
	switch {
	case c.TooFew == c.Trials:
		return fmt.Sprintf("too few operations to say what stands out: want %d in a trial", attribution.LeastOps)
	case c.TooFew > 0:
		text += fmt.Sprintf("; too few operations in %d", c.TooFew)
	}
	return text
}

func ofTrials(n, of int) string {
	if of == 1 {
		return "the one trial"
	}
	return fmt.Sprintf("%d of %d trials", n, of)
}
