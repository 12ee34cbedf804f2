// Package parser turns what a workload's tool wrote into numbers: histograms,
// series over time, single figures, and warnings about what cannot be
// trusted. Parsers are pure; what they do not understand stays raw and is
// said so.
package parser

import (
	"io/fs"
	"slices"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Input is what one container of one instance wrote.
type Input struct {
	// Files are its outputs (raw/<instance>/<container> of the bundle).
	Files fs.FS
	// Instance is its name, which messages leave out: the caller adds it.
	Instance string
	// Started is when the container began its work; used to place data on the
	// run's clock when the tool gives no wall-clock time of its own.
	Started op.Time
	// Told: it was told to end, so that what the tool says of that is no finding.
	Told bool
	// AtWall turns the wall clock of the container's machine (Unix
	// nanoseconds) into the run's clock. nil: unknown.
	AtWall func(unixNanos int64) op.Time
}

// Result is what a parser found. The caller adds instance and action.
type Result struct {
	Totals   []metric.Histogram
	Slices   []metric.Histogram
	Series   []metric.Series
	Scalars  []metric.Scalar
	Warnings []Warning
	// Bounds are what limited the stages of object storage that are measured.
	Bounds []Bound
}

// Bound says what limited a stage of object storage, and what an operation cost the
// process that asked for it.
type Bound struct {
	Stage, Bound, Evidence string
	CPUPerOpNs, Ops        int64
}

// Warning says what cannot be trusted or is missing. Code is stable and
// machine-readable, e.g. "gtodReduce"; the validity gates go by it.
type Warning struct {
	Code    string
	Message string
	Invalid bool // the figures must not be used
}

// Func is a parser. An error means that nothing could be read at all; all
// lesser trouble is a Warning.
type Func func(Input) (Result, error)

// Parsers by the name that a library entry gives in its `parser` annotation.
func Parsers() map[string]Func {
	return map[string]Func{"fio": Fio, "object": Object}
}

// Names of the parsers, sorted.
func Names() []string {
	var names []string
	for n := range Parsers() {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}
