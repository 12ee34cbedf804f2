// Package study repeats a Benchmark: it lists the trials of a design, runs them through an Executor, keeps in a
// directory which of them are done, and gathers the measurements into a table.
package study

import (
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan"
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
}

// Name is the name of a cell: "parallelism=10 storageClass=null"; "all" without factors.
func (c Cell) Name() string {
	var parts []string
	for _, l := range c.Levels {
		parts = append(parts, l.Factor+"="+l.Value)
	}
	if len(parts) == 0 {
		return "all"
	}
	return strings.Join(parts, " ")
}

// Trial is one run of a cell.
type Trial struct {
	Name       string   `json:"name"` // of its directory
	Cell       int      `json:"cell"` // index of the design's
	Repetition int      `json:"repetition"`
	Set        []string `json:"set"`
}

// Design is a resolved study: its cells, and its trials in the order of execution.
type Design struct {
	Name string `json:"name"`
	// Base has the values of every trial. Those of its cell override them.
	Base   []string `json:"base"`
	Cells  []Cell   `json:"cells"`
	Trials []Trial  `json:"trials"`
	// Order is the order of Trials; nil: that of the cells.
	Order     *Order   `json:"order,omitempty"`
	Responses []string `json:"responses"`
	// Factors are the names of the factors, in order.
	Factors []string `json:"factors"`
	// Sources and Flags shape the trials, too. They must be the same when a study continues.
	Sources []Source `json:"sources,omitempty"`
	Flags   []string `json:"flags,omitempty"`
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

// Options select a scale of a study and override its values.
type Options struct {
	Scale       string
	Repetitions int32                     // 0: the study's
	Factors     map[string][]v1alpha1.Var // values of factors, or further factors
	Set         []string                  // KEY=VALUE for every trial
	// Seed is that of the order of trials, for a study without a seed.
	Seed int64
}

// New lists the cells and the trials of a study.
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
	d := &Design{Name: s.Name, Responses: spec.Responses}
	d.Cells = cells(spec, order)
	d.Base = append(sets(s.Spec.Scales[o.Scale].Set), o.Set...)
	if len(spec.Variants) > 0 {
		d.Factors = append(d.Factors, variantFactor)
	}
	for _, key := range order {
		d.Factors = append(d.Factors, short(key, order))
	}
	d.Order = &Order{Kind: orderRandom, Seed: o.Seed, Drawn: true}
	if spec.Seed != nil {
		d.Order = &Order{Kind: orderRandom, Seed: *spec.Seed}
	}
	d.Trials = shuffled(d.Cells, int(max(spec.Repetitions, 1)), d.Order.Seed)
	if spec.Seed != nil {
		for i := range d.Trials {
			t := &d.Trials[i]
			t.Set = append(t.Set, fmt.Sprintf("spec.seed=%d", seedOf(*spec.Seed, t.Repetition)))
		}
	}
	return d, nil
}

const variantFactor = "variant"

// edition is the spec with a scale and the options applied.
func edition(spec v1alpha1.StudySpec, o Options) (v1alpha1.StudySpec, error) {
	factors := map[string][]v1alpha1.Var{}
	replace := func(from map[string][]v1alpha1.Var) {
		for k, v := range from {
			factors[k] = v
		}
	}
	replace(spec.Factors)
	if o.Scale != "" && o.Scale != "full" {
		scale, ok := spec.Scales[o.Scale]
		if !ok {
			return spec, fmt.Errorf("the study has no scale %q; it has %s", o.Scale,
				strings.Join(append(sortedKeys(spec.Scales), "full"), ", "))
		}
		replace(scale.Factors)
		if scale.Repetitions > 0 {
			spec.Repetitions = scale.Repetitions
		}
	}
	replace(o.Factors)
	spec.Factors = factors
	if o.Repetitions > 0 {
		spec.Repetitions = o.Repetitions
	}
	return spec, nil
}

func sets(m map[string]v1alpha1.Var) []string {
	var list []string
	for _, k := range sortedKeys(m) {
		list = append(list, set(k, string(m[k])))
	}
	return list
}

// set is one value as --set takes it. It quotes null, which would unset the field.
func set(key, value string) string {
	if strings.HasPrefix(key, "spec.") && (value == "null" || value == "~") {
		value = `"` + value + `"`
	}
	return key + "=" + value
}

// cells crosses the factors; the last one varies fastest.
func cells(spec v1alpha1.StudySpec, order []string) []Cell {
	list := []Cell{{}}
	if len(spec.Variants) > 0 {
		list = nil
		for _, v := range spec.Variants {
			list = append(list, Cell{Levels: []Level{{variantFactor, string(v.Name)}}, Set: sets(v.Set)})
		}
	}
	for _, key := range order {
		var crossed []Cell
		for _, c := range list {
			for _, v := range spec.Factors[key] {
				crossed = append(crossed, Cell{
					Levels: append(slices.Clone(c.Levels), Level{short(key, order), string(v)}),
					Set:    append(slices.Clone(c.Set), set(key, string(v))),
				})
			}
		}
		list = crossed
	}
	return list
}

// short is the last part of a key, if no other key ends in it.
func short(key string, all []string) string {
	last := func(k string) string { return k[strings.LastIndexByte(k, '.')+1:] }
	for _, other := range all {
		if other != key && last(other) == last(key) {
			return key
		}
	}
	return last(key)
}

// trialName is the name of a trial's directory: "003_parallelism=10_r1" is the third in the order.
func trialName(i, of int, c Cell, repetition int) string {
	plain := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', strings.ContainsRune("=.-", r):
			return r
		}
		return '_'
	}, c.Name())
	return fmt.Sprintf("%0*d_%.80s_r%d", len(fmt.Sprint(of)), i+1, plain, repetition)
}

// seedOf gives each repetition its own seed, the same for all cells.
func seedOf(seed int64, repetition int) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d/%d", seed, repetition)
	return h.Sum64() >> 1 // fits an int64
}
