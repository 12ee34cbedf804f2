package reproduction

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/trial"
	"github.com/cnsbench/cnsbench/internal/bundle"
)

// Format is the version of the JSON of a Result. Within a version members are added, never renamed or removed.
const Format = 1

// Labels of the two sides.
const (
	Then = "then"
	Now  = "now"
)

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
	// Plan is nil without a later run.
	Plan      *Plan      `json:"plan,omitempty"`
	Schedules []Schedule `json:"schedules"`
	Responses []Response `json:"responses"`
	Flags     []Mark     `json:"flags"`
	Verdicts  []Mark     `json:"objectives"`
	// Comparison has the verdicts, with several later runs; of two single runs the quantiles within them.
	Comparison *compare.Result `json:"comparison,omitempty"`
	// Sentences are the answer in words.
	Sentences []string `json:"sentences"`
}

// Run is one of the runs that are compared.
type Run struct {
	Bundle    string    `json:"bundle"`
	RunID     string    `json:"runID"`
	StartedAt time.Time `json:"startedAt"`
	Version   string    `json:"version"` // of cnsbench
}

// Plan compares the resolved plans of the first run of each side.
type Plan struct {
	Same bool `json:"same"`
	// Then and Now are the SHA-256 of plan.json in canonical JSON; empty: the bundle has none.
	Then string `json:"thenSHA256"`
	Now  string `json:"nowSHA256"`
	// Differences are the first members that differ.
	Differences []Difference `json:"differences"`
}

// Mark is a validity flag or an objective with its state on each side; empty: it is not there. With several runs on a
// side the states are of all runs, without duplicates.
type Mark struct {
	Name string   `json:"name"`
	Then []string `json:"then"`
	Now  []string `json:"now"`
}

// Schedule compares the scheduled instants of an action whose rate has a schedule, relative to its first one.
type Schedule struct {
	Action string `json:"action"`
	// Then and Now count the scheduled operations. Equal counts the leading ones with equal instants.
	Then  int  `json:"then"`
	Now   int  `json:"now"`
	Equal int  `json:"equal"`
	Same  bool `json:"same"` // both have some, and all that both have are equal
}

// Response is one figure of the runs.
type Response struct {
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// Then and Now have a value for each run that has one; null: infinite, because of operations that never ended or
	// never started.
	Then []*float64 `json:"then"`
	Now  []*float64 `json:"now"`
	// Bounds says that some values are lower bounds.
	Bounds bool `json:"lowerBounds,omitempty"`
	// Ratio is now/then, of the medians.
	Ratio *float64 `json:"ratio"`
	// Outside says that the only earlier value is outside of the range of the n later ones, which by chance happens with
	// probability 2/(n+1) if nothing changed; null: there is not one earlier and several later values, or some are lower
	// bounds.
	Outside *bool `json:"outsideRange,omitempty"`
}

// run is a bundle that was read.
type run struct {
	bundle *bundle.Bundle
	data   *dataset.Data
	values []trial.Value
}
