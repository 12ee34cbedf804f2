// Package study repeats a Benchmark: it lists the trials of a design, runs them through an Executor, keeps in a
// directory which of them are done, and gathers the measurements into a table.
//
// A study has occasions, an occasion has blocks, a block has a trial of every cell. Trials run one after another, also
// those of different providers: a process holds a lock on the directory while it runs them.
package study

import (
	"crypto/sha256"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/analysis/cost"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/stats/rank"
)

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

// New lists the cells of a study, and the trials of its first occasion. Errors contain the file.
func New(s *plan.Study, o Options) (*Design, error) {
	d, err := newDesign(s, o)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.File, err)
	}
	return d, nil
}

func newDesign(s *plan.Study, o Options) (*Design, error) {
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
	d := &Design{Name: s.Name, File: s.File, Base: append(sets(s.Spec.Scales[o.Scale].Set), o.Set...),
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

// FirstSet has the settings of the first cell in the first block, without a seed.
func (d *Design) FirstSet() []string {
	_, drawn := d.draw(1, 1)
	return slices.Concat(d.Cells[0].Set, drawn)
}
