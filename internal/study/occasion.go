package study

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Occasion is a time at which blocks are run, such as a day. What differs between occasions is part of the uncertainty.
type Occasion struct {
	Number int       `json:"number"` // from 1
	Begun  time.Time `json:"begun"`
	// Zone is the local time zone: its IANA name, or an abbreviation.
	Zone string `json:"zone,omitempty"`
	// Blocks is the number of blocks if it is not the study's.
	Blocks int `json:"blocks,omitempty"`
	// Cluster is the name of the study that the occasion was merged from.
	Cluster string `json:"cluster,omitempty"`
}

// Location is the time zone of the occasion.
func (o *Occasion) Location() *time.Location {
	if zone, err := time.LoadLocation(o.Zone); err == nil && o.Zone != "" {
		return zone
	}
	return o.Begun.Location()
}

// occasion returns the i-th occasion, from 0.
func (d *Design) occasion(i int) Occasion {
	if i < len(d.Occasions) {
		return d.Occasions[i]
	}
	return Occasion{Number: 1}
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

// lock makes this process the only one that runs trials of the study in a directory, until unlock or its end.
func lock(path string) (unlock func() error, err error) {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(path, lockFile), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = fmt.Errorf("study in %s: %w", path, ErrInUse)
		}
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
}
