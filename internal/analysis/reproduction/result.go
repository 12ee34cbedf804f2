package reproduction

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Format is the version of the JSON of a Result. Within a version members are added, never renamed or removed.
const Format = 2

// Labels of the two sides.
const (
	Then = "then"
	Now  = "now"
)

// ErrIncomplete says that a run cannot be compared.
var ErrIncomplete = errors.New("the run did not complete: its figures cannot be compared")

// Result compares earlier runs of a Benchmark with later ones.
type Result struct {
	Format   int              `json:"format"`
	Analysis summary.Analysis `json:"analysis"`
	Then     []Run            `json:"then"`
	Now      []Run            `json:"now"`
	// Facts compares the first earlier run with the first later one.
	Facts Comparison `json:"facts"`
	// Changed are further differences among the runs of one side: with them its runs are not repetitions.
	Changed []Difference `json:"changedWithin"`
	// Comparison is the answer of cnsbench compare, with the sides as levels; nil without a later run.
	Comparison *compare.Result `json:"comparison,omitempty"`
	// Sentences are the answer about facts in words.
	Sentences []string `json:"sentences"`
}

// Run is one of the runs that are compared.
type Run struct {
	Bundle    string    `json:"bundle"`
	RunID     string    `json:"runID"`
	StartedAt time.Time `json:"startedAt"`
	Version   string    `json:"version"` // of cnsbench
}

// Compare compares the facts of runs; each side has at least one.
func Compare(then, now []*bundle.Bundle) (*Result, error) {
	r := newResult(then, now)
	var err error
	if r.Facts, err = compareBundles(then[0], now[0]); err != nil {
		return nil, err
	}
	for _, side := range [][]*bundle.Bundle{then, now} {
		if err := r.changedWithin(side); err != nil {
			return nil, err
		}
	}
	r.Sentences = append(r.Sentences, r.factSentence())
	if len(r.Changed) > 0 {
		var names []string
		for _, d := range r.Changed {
			names = append(names, d.Fact)
		}
		r.Sentences = append(r.Sentences, "Facts changed between runs of one side, so these are not repetitions: "+
			strings.Join(names, ", ")+".")
	}
	if len(then) == 1 && len(now) == 1 {
		r.Sentences = append(r.Sentences, "One run against one run cannot show that results differ: intervals are those "+
			"within the two runs. More runs: --runs 6, and further earlier bundles after the first.")
	}
	return r, nil
}

func newResult(then, now []*bundle.Bundle) *Result {
	r := &Result{Format: Format, Analysis: summary.ThisAnalysis(), Then: []Run{}, Now: []Run{}, Changed: []Difference{}}
	for i, side := range [][]*bundle.Bundle{then, now} {
		to := []*[]Run{&r.Then, &r.Now}[i]
		for _, b := range side {
			*to = append(*to, Run{b.Dir, b.Run.ID, b.Run.Clock.Start, b.Run.Versions["cnsbench"]})
		}
	}
	return r
}

// changedWithin adds the facts that changed between the runs of one side.
func (r *Result) changedWithin(side []*bundle.Bundle) error {
	for _, b := range side[1:] {
		c, err := compareBundles(side[0], b)
		if err != nil {
			return err
		}
		for _, d := range c.Differences {
			same := func(x Difference) bool { return x.Fact == d.Fact }
			if !slices.ContainsFunc(r.Changed, same) {
				r.Changed = append(r.Changed, d)
			}
		}
	}
	return nil
}

func (r *Result) factSentence() string {
	n := len(r.Facts.Differences)
	if n == 0 {
		return fmt.Sprintf("No recorded fact differs: %d were compared.", r.Facts.Compared)
	}
	of := r.Facts.Compared
	for _, d := range r.Facts.Differences { // Compared counts those that both have
		if d.Then == nil || d.Now == nil {
			of++
		}
	}
	return fmt.Sprintf("%d of %d compared facts differ.", n, of)
}
