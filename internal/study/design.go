package study

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// Level is one value of one factor.
type Level struct {
	Factor string `json:"factor"` // short name
	Value  string `json:"value"`
}

// Cell is one combination of levels.
type Cell struct {
	Levels []Level  `json:"levels"`
	Set    []string `json:"set"` // KEY=VALUE, as --set takes it
	// Without are the actions that its Benchmark does not have.
	Without []string `json:"without,omitempty"`
	// AAOf is the index of the cell that this one runs once more under another label; nil: it is no A/A arm.
	AAOf *int `json:"aaOf,omitempty"`
}

// Name is the name of a cell: "parallelism=10 storageClass=null"; "all" without factors.
func (c Cell) Name() string { return nameOf(c.Levels) }

func nameOf(levels []Level) string {
	var parts []string
	for _, l := range levels {
		parts = append(parts, l.Factor+"="+l.Value)
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, " ")
}

// Trial is one run of a cell.
type Trial struct {
	Name string `json:"name"` // of its directory
	Cell int    `json:"cell"` // index of the design's
	// Repetition is the number of its block in the whole study, from 1.
	Repetition int `json:"repetition"`
	Occasion   int `json:"occasion,omitempty"` // from 1
	Block      int `json:"block,omitempty"`    // within the occasion, from 1
	// Draws are the values of the factors that are distributions. All trials of a block have the same.
	Draws []Level  `json:"draws,omitempty"`
	Set   []string `json:"set"`
}

// Design is a resolved study: its cells, and its trials in the order of execution.
type Design struct {
	Name string `json:"name"`
	File string `json:"-"` // of a new one, for messages
	// Base has the values of every trial. Those of its cell override them.
	Base  []string `json:"base"`
	Cells []Cell   `json:"cells"`
	// Trials are those of the occasions that have begun.
	Trials []Trial `json:"trials"`
	// Order is the order of Trials; nil: that of the cells.
	Order     *Order   `json:"order,omitempty"`
	Responses []string `json:"responses"`
	// Factors are the names of the factors that make cells, in order.
	Factors []string `json:"factors"`
	// Compared is the one of Factors whose levels are to be compared, if the study says so.
	Compared string `json:"comparedFactor,omitempty"`
	// Sources and Flags shape the trials, too. They must be the same when a study continues.
	Sources []Source `json:"sources,omitempty"`
	Flags   []string `json:"flags,omitempty"`

	// Blocks of an occasion, unless it has a number of its own.
	Blocks int `json:"blocks,omitempty"`
	// Planned is the planned number of occasions.
	Planned int `json:"plannedOccasions,omitempty"`
	// Occasions have begun, in order. Studies of earlier versions list none and have one.
	Occasions []Occasion `json:"occasions,omitempty"`
	// Distributions are the factors that make no cells.
	Distributions []Distribution `json:"distributions,omitempty"`
	// Metrics are the responses with a declared margin or direction.
	Metrics      []Metric      `json:"metrics,omitempty"`
	Precondition *Precondition `json:"precondition,omitempty"`
	// Search makes the trials the steps of a search of the highest rate; nil: a study of given cells.
	Search *Search `json:"search,omitempty"`
	// Prices are those that the study declares, in the form of package cost.
	Prices json.RawMessage `json:"prices,omitempty"`
	// Command continues the study. It does not shape the trials.
	Command *Command `json:"command,omitempty"`
	// Merged are the directories that study merge made this one of; such a study cannot continue.
	Merged []string `json:"merged,omitempty"`
}

// Distribution is a factor that is a distribution.
type Distribution struct {
	Factor       string                 `json:"factor"` // short name
	Key          string                 `json:"key"`    // as in --set
	Distribution *v1alpha1.Distribution `json:"distribution"`
}

// Metric is what is declared of a response.
type Metric struct {
	Response string `json:"response"`
	// Margin is the least difference that matters, as a share; 0: none is declared.
	Margin    float64 `json:"margin,omitempty"`
	Direction string  `json:"direction,omitempty"` // higher, lower: better
}

// Command has the arguments of the command that began a study, for one that continues it.
type Command struct {
	Files []string `json:"files"` // absolute paths, or suite:NAME
	Args  []string `json:"args"`  // flags: --NAME=VALUE
	Dir   string   `json:"dir"`   // working directory
}

// Source is a file, or an entry of a library, that shapes trials.
type Source struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Precondition is what is run before the blocks of each occasion.
type Precondition struct {
	// Own says that the rounds run a Benchmark of their own, not the study's.
	Own bool `json:"own,omitempty"`
	// Rounds of each cell; with Response the least number.
	Rounds int `json:"rounds"`
	// Response must be steady; empty: there is no such rule.
	Response string `json:"response,omitempty"`
	AtMost   int    `json:"atMost,omitempty"`
}

// Search finds the highest rate of an action at which a condition holds. It is a study whose cells are rates: each step
// is a trial, a run with fresh volumes and its own bundle, and the results of the steps decide which one comes next.
// The same bundles lead to the same steps, so that a repeated command continues where an earlier one ended.
type Search struct {
	Action    string `json:"action"`
	Rate      string `json:"rate"`     // name of the action's rate, which the steps change
	Schedule  string `json:"schedule"` // constantRateSpec or poissonRateSpec
	Condition string `json:"condition"`
	// From is the first rate, Least and Most bound the rates, in triggers per second. Resolution is the width of the
	// final bracket, as a share of its lower end.
	From       float64 `json:"from"`
	Least      float64 `json:"least"`
	Most       float64 `json:"most"`
	Resolution float64 `json:"resolution"`
	// Window is the time from the start of the rate to the end of a step. A step of a low rate is longer, up to
	// search.Longest times, so that it has Needs operations.
	Window time.Duration `json:"windowNs"`
	Needs  int64         `json:"needs"`
	// StartAfter is the start of the rate, from the barrier.
	StartAfter time.Duration `json:"startAfterNs,omitempty"`
	// Places is the number of operations in flight at which further ones wait; 0: none waits.
	Places int `json:"places,omitempty"`
}

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

// OccasionCount is the number of occasions that have begun.
func (d *Design) OccasionCount() int { return max(1, len(d.Occasions)) }

// The schedules that a search can change.
const (
	Constant = "constantRateSpec"
	Poisson  = "poissonRateSpec"
)

// occasion returns the i-th occasion, from 0.
func (d *Design) occasion(i int) Occasion {
	if i < len(d.Occasions) {
		return d.Occasions[i]
	}
	return Occasion{Number: 1}
}
