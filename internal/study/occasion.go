package study

import (
	"fmt"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Location is the time zone of the occasion.
func (o *Occasion) Location() *time.Location {
	if zone, err := time.LoadLocation(o.Zone); err == nil && o.Zone != "" {
		return zone
	}
	return o.Begun.Location()
}

// NextTrials lists the trials that a further occasion would have.
func (d *Design) NextTrials(o Occasion) []Trial {
	o.Number = d.OccasionCount() + 1
	return d.trialsOf(o, lastRepetition(d.Trials))
}

// AddOccasion begins a further occasion of a study that Begin opened. Its trials follow from the seed of the study and
// its number.
func (d *Dir) AddOccasion(o Occasion) (Occasion, error) {
	if d.Order == nil {
		return o, fmt.Errorf("an earlier version, without random order, started the study in %s; "+
			"start another to add occasions", d.Path)
	}
	if n := d.Unfinished(); n > 0 {
		return o, fmt.Errorf("occasion %d of the study in %s is not finished", d.OccasionCount(), d.Path)
	}
	next := *d.Design
	next.Occasions = slices.Clone(d.Occasions)
	if len(next.Occasions) == 0 {
		next.Occasions = []Occasion{{Number: 1, Begun: d.firstStart()}}
	}
	o.Number = len(next.Occasions) + 1
	next.Occasions = append(next.Occasions, o)
	next.Trials = append(slices.Clip(d.Trials), d.NextTrials(o)...)
	changed := &Dir{Path: d.Path, Design: &next}
	if err := changed.save(); err != nil {
		return o, err
	}
	d.Design = &next
	return o, nil
}

// Unfinished is the number of trials of the last occasion that were not started, or were interrupted. Failed ones are
// finished, so that a provider which always fails does not keep the study from its next occasion.
func (d *Dir) Unfinished() (n int) {
	for _, t := range d.Trials {
		if t.Occasion == d.OccasionCount() && d.Bundle(t) == nil && !d.failed(t) {
			n++
		}
	}
	return n
}

// firstStart is when the first trial started.
func (d *Dir) firstStart() (first time.Time) {
	for _, t := range d.Trials {
		run, err := bundle.ReadRun(d.Of(t))
		if err == nil && (first.IsZero() || run.Clock.Start.Before(first)) {
			first = run.Clock.Start
		}
	}
	return first
}
