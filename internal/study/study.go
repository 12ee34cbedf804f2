// Package study repeats a Benchmark: it lists the trials of a design, runs them through an Executor, keeps in a
// directory which of them are done, and gathers the measurements into a table.
//
// A study has occasions, an occasion has blocks, a block has a trial of every cell. Trials run one after another, also
// those of different providers: a process holds a lock on the directory while it runs them.
package study

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
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

// SourceOf describes a file by its base name and content.
func SourceOf(name string, content []byte) Source {
	return Source{filepath.Base(name), fmt.Sprintf("%x", sha256.Sum256(content))}
}

// SourceFrom is SourceOf for a large file.
func SourceFrom(name string, content io.Reader) (Source, error) {
	sum := sha256.New()
	if _, err := io.Copy(sum, content); err != nil {
		return Source{}, err
	}
	return Source{filepath.Base(name), fmt.Sprintf("%x", sum.Sum(nil))}, nil
}

// New lists the cells of a study, and the trials of its first occasion.
func New(s *plan.Study, o Options) (*Design, error) {
	spec, err := edition(s.Spec, o)
	if err != nil {
		return nil, err
	}
	order := slices.Clone(s.Order)
	for _, key := range sortedKeys(spec.Factors) {
		if !slices.Contains(order, key) {
			order = append(order, key)
		}
	}
	d := &Design{Name: s.Name, Base: append(sets(s.Spec.Scales[o.Scale].Set), o.Set...),
		Blocks: int(max(spec.Blocks, 1)), Planned: int(max(spec.Occasions, 1)), Precondition: preconditionOf(&spec)}
	d.Responses, d.Metrics = responsesOf(&spec)
	if spec.Cost != nil {
		if _, err := cost.Parse(spec.Cost.Raw); err != nil {
			return nil, fmt.Errorf("spec.cost: %w", err)
		}
		d.Prices = spec.Cost.Raw
	}
	if d.Cells, err = d.cells(&spec, order); err != nil {
		return nil, err
	}
	switch {
	case slices.Contains(order, spec.ComparedFactor):
		d.Compared = short(spec.ComparedFactor, order)
	case spec.ComparedFactor == variantFactor && len(spec.Variants) > 0:
		d.Compared = variantFactor
	}
	if spec.Blocks == 0 && spec.ComparedFactor != "" {
		if d.Blocks, err = d.leastBlocks(&spec); err != nil {
			return nil, err
		}
	}
	d.Order = &Order{Kind: orderRandom, Seed: o.Seed, Drawn: true}
	if spec.Seed != nil {
		d.Order = &Order{Kind: orderRandom, Seed: *spec.Seed}
	}
	d.Trials = d.trialsOf(Occasion{Number: 1}, 0)
	return d, nil
}

// leastBlocks is the number of blocks of an occasion with which the levels of the compared factor can differ
// significantly.
func (d *Design) leastBlocks(spec *v1alpha1.StudySpec) (int, error) {
	f, ok := spec.Factors[spec.ComparedFactor]
	levels := len(f.Values)
	if d.Compared == variantFactor {
		levels = len(spec.Variants)
	} else if !ok || f.Distribution != nil {
		return 0, fmt.Errorf("comparedFactor %q is no factor with a list of values", spec.ComparedFactor)
	}
	n := rank.SmallestN(true, max(2, levels))
	return (n + d.Planned - 1) / d.Planned, nil
}

// responsesOf lists the responses of a study, and what is declared of them.
func responsesOf(spec *v1alpha1.StudySpec) (responses []string, metrics []Metric) {
	responses = spec.Responses
	for _, m := range spec.Metrics {
		if !slices.Contains(responses, m.Response) {
			responses = append(slices.Clip(responses), m.Response)
		}
		one := Metric{Response: m.Response, Direction: m.Direction}
		if m.MarginPercent != nil {
			one.Margin = m.MarginPercent.Value / 100
		}
		metrics = append(metrics, one)
	}
	return responses, metrics
}

// OccasionCount is the number of occasions that have begun.
func (d *Design) OccasionCount() int { return max(1, len(d.Occasions)) }

// FirstSet has the settings of the first cell in the first block, without a seed.
func (d *Design) FirstSet() []string {
	_, drawn := d.draw(1, 1)
	return slices.Concat(d.Cells[0].Set, drawn)
}
