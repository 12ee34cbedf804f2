// Package observation defines the values of trials as a table, independent of where they come from: the bundles of a
// study, an imported file, or single bundles. It does no I/O.
package observation

import (
	"cmp"
	"slices"
	"strings"
)

// State says what is known of a trial's value.
type State uint8

// States of a value.
const (
	Known    State = iota
	AtLeast        // the value is a lower bound
	Infinite       // greater than every number
	Missing        // the trial has no value: it failed, or measured nothing
	Invalid        // the value must not be used: a validity flag of the trial says why
	Few            // a quantile of too few operations: the value must not be used
)

// Value is the value of one metric in one trial.
type Value struct {
	Value float64
	// Occasion and Block are indices of the table's, None if there are none. Repetition is the number of the trial
	// within them.
	Occasion, Block, Repetition int32
	State                       State
}

// None is the index of an absent occasion or block.
const None int32 = -1

// Aggregate is a mean and a standard deviation of values that are not known one by one.
type Aggregate struct {
	Mean float64
	SD   float64 // NaN: unknown
	N    int     // 0: unknown
}

// Metric is a measured quantity with its unit.
type Metric struct {
	Name string
	Unit string
	// Better says which values are better where the source declares it: "higher" or "lower"; empty: not declared.
	Better string
}

// Key is a metric and a combination of levels, as indices of the table's.
type Key struct{ Metric, Cell int }

// Table holds all values of a comparison. It is not safe for concurrent use while a Builder fills it.
type Table struct {
	// Factors are the names of the factors, in order.
	Factors []string
	Metrics []Metric
	// Cells are the combinations of levels, each in the order of Factors, in order of appearance.
	Cells [][]string
	// Occasions and Blocks are labels. OccasionName and BlockName are the names of their columns, "" if there is none.
	Occasions, Blocks       []string
	OccasionName, BlockName string
	// Series are the values of each metric and cell, in order of occasion, block and repetition.
	Series map[Key][]Value
	// Aggregates are instead of Series where a source has only means.
	Aggregates map[Key]Aggregate
	// Flags are the validity flags of the trials that concern the values of a key; nil: there are none.
	Flags map[Key][]Flag
}

// Flag is a validity flag of one trial, or of the state in which the trials of a cell found their storage.
type Flag struct {
	Name     string
	Severity string // warning or invalid
	Evidence string
	// OfCell says that it is not of one trial, but of the whole cell.
	OfCell bool
	// Occasion and Block are the labels of the trial's; empty: there are none.
	Occasion, Block string
}

// Factor returns the index of a factor; -1 if there is none of this name.
func (t *Table) Factor(name string) int { return slices.Index(t.Factors, name) }

// Row is one value with its labels.
type Row struct {
	Levels          []string // one for each factor
	Occasion, Block string
	Repetition      int32 // ignored unless the builder has Numbered
	Metric          Metric
	Value           float64
	State           State
}

// Builder makes a Table from rows.
type Builder struct {
	table Table
	// Numbered says that rows have a repetition. Otherwise they are numbered in order of appearance.
	Numbered                         bool
	cells, metrics, occasions, block map[string]int
	key                              strings.Builder
}

// NewBuilder starts a table with factors. occasion and block are the names of their columns; "" if there is none.
func NewBuilder(factors []string, occasion, block string) *Builder {
	return &Builder{table: Table{Factors: factors, OccasionName: occasion, BlockName: block,
		Series: map[Key][]Value{}, Aggregates: map[Key]Aggregate{}},
		cells: map[string]int{}, metrics: map[string]int{}, occasions: map[string]int{}, block: map[string]int{}}
}

// Add adds the value of one trial.
func (b *Builder) Add(r Row) {
	k := b.Key(r.Levels, r.Metric)
	v := Value{Value: r.Value, Occasion: None, Block: None, Repetition: r.Repetition, State: r.State}
	if b.table.OccasionName != "" {
		v.Occasion = int32(intern(b.occasions, &b.table.Occasions, r.Occasion))
	}
	if b.table.BlockName != "" {
		v.Block = int32(intern(b.block, &b.table.Blocks, r.Block))
	}
	b.table.Series[k] = append(b.table.Series[k], v)
}

// Flag marks the values of a metric at some levels.
func (b *Builder) Flag(levels []string, m Metric, f Flag) {
	k := b.Key(levels, m)
	if b.table.Flags == nil {
		b.table.Flags = map[Key][]Flag{}
	}
	b.table.Flags[k] = append(b.table.Flags[k], f)
}

// AddAggregate sets the mean and the standard deviation of a cell.
func (b *Builder) AddAggregate(levels []string, m Metric, a Aggregate) {
	b.table.Aggregates[b.Key(levels, m)] = a
}

// Key returns the indices of a metric and of levels, adding them if they are new. A metric's unit is that of its
// first row.
func (b *Builder) Key(levels []string, m Metric) Key {
	i, ok := b.metrics[m.Name]
	if !ok {
		i = len(b.table.Metrics)
		b.metrics[m.Name] = i
		b.table.Metrics = append(b.table.Metrics, m)
	}
	b.key.Reset()
	for _, l := range levels {
		b.key.WriteString(l)
		b.key.WriteByte(0)
	}
	c, ok := b.cells[b.key.String()]
	if !ok {
		c = len(b.table.Cells)
		b.cells[b.key.String()] = c
		b.table.Cells = append(b.table.Cells, slices.Clone(levels))
	}
	return Key{Metric: i, Cell: c}
}

// Unit returns the unit of a metric; false if no row had this metric.
func (b *Builder) Unit(metric string) (string, bool) {
	i, ok := b.metrics[metric]
	if !ok {
		return "", false
	}
	return b.table.Metrics[i].Unit, true
}

func intern(index map[string]int, labels *[]string, label string) int {
	i, ok := index[label]
	if !ok {
		i = len(*labels)
		index[label] = i
		*labels = append(*labels, label)
	}
	return i
}

// Table returns the table. The builder must not be used afterwards.
func (b *Builder) Table() *Table {
	for _, values := range b.table.Series {
		if !b.Numbered {
			number(values)
		}
		byTrial := func(x, y Value) int {
			return cmp.Or(cmp.Compare(x.Occasion, y.Occasion), cmp.Compare(x.Block, y.Block),
				cmp.Compare(x.Repetition, y.Repetition))
		}
		if !slices.IsSortedFunc(values, byTrial) {
			slices.SortStableFunc(values, byTrial)
		}
	}
	return &b.table
}

// number counts the values of each occasion and block.
func number(values []Value) {
	next := map[[2]int32]int32{}
	for i := range values {
		group := [2]int32{values[i].Occasion, values[i].Block}
		next[group]++
		values[i].Repetition = next[group]
	}
}
