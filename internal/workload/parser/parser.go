// Package parser converts the output of a workload's tool to metrics and warnings. Parsers
// have no side effects. Output that they cannot read stays in the bundle as it is.
package parser

import (
	"io/fs"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Input is the output of one container of one instance.
type Input struct {
	// Files are its outputs (raw/<instance>/<container> of the bundle).
	Files fs.FS
	// Instance is its name; the caller adds it to messages.
	Instance string
	// Started is when the container began its work. It places data on the run's clock
	// where the tool has no wall-clock time.
	Started op.Time
	// Terminated: the runner ended it, so that the tool's message about it is expected.
	Terminated bool
	// AtWall converts the wall clock of the container's machine (Unix ns) to the run's
	// clock; nil: unknown.
	AtWall func(unixNanos int64) op.Time
	// Earlier are the outputs of the containers that this one replaced, in the order of their starts; of an image of
	// a volume, those of all containers that wrote to the volume.
	Earlier []Outputs
	// Made is when an image of a volume was made; nil: the files are not those of an image.
	Made *Interval
}

// Outputs are the outputs of an earlier container.
type Outputs struct {
	Files  fs.FS
	AtWall func(unixNanos int64) op.Time // as Input.AtWall
}

// Interval has an instant that is not known exactly: not before From, not after To.
type Interval struct{ From, To op.Time }

// Result of a parser. The caller adds instance and action.
type Result struct {
	Totals   []metric.Histogram
	Slices   []metric.Histogram
	Series   []metric.Series
	Scalars  []metric.Scalar
	Warnings []Warning
	// Bounds are the limits of the measured stages of object storage.
	Bounds []metric.Limit
	// Outages are those of endpoints of object storage, by stage.
	Outages map[string][]metric.Outage
}

// Warning describes doubtful or missing figures. Code is stable, e.g. "gtodReduce"; it is
// the name of a validity flag.
type Warning struct {
	Code    string
	Message string
	Invalid bool // the figures must not be used
}

// Parser is a built-in parser with its metrics. It declares those whose names do not depend on the output.
type Parser struct {
	Parse   Func
	Metrics []metric.Declaration
}

// Func is a parser. An error means that nothing was read; other problems are Warnings.
type Func func(Input) (Result, error)
