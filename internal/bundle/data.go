package bundle

import (
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Labels say which workload instance a metric is of.
type Labels struct {
	Instance string `json:"instance"`
	Action   string `json:"action"`
	Phase    int    `json:"phase,omitempty"` // of the workload, from 0
}

// HistogramSlice is the distribution of one metric of one instance over
// [From, To), or over its whole measured time when Total is set. Totals are
// not the sum of slices where Basis differs.
type HistogramSlice struct {
	Labels
	metric.Histogram
	Total bool `json:"total"`
}

// Series is a metric of one instance over time. Several Series of the same
// instance and metric continue each other. Non-finite values are left out of the
// bundle.
type Series struct {
	Labels
	metric.Series
}

// Scalar is one figure of one instance over its whole measured time.
type Scalar struct {
	Labels
	metric.Scalar
}

// LogLine is a line of the run's log.
type LogLine struct {
	At     op.Time `json:"at"`
	Source string  `json:"source"` // "driver", "fio-0/fio", …
	Line   string  `json:"line"`
}

// CanaryBatch is a sequence of canary I/Os on one volume, in order of their intended time.
type CanaryBatch struct {
	Instance string
	Volume   string
	IOs      []op.CanaryIO
}

// Instance has the starts and the end of one workload instance.
type Instance struct {
	Name   string             `json:"name"`
	Starts []op.InstanceStart `json:"starts"` // by container, in order of arrival
	End    *op.InstanceEnd    `json:"end"`    // nil: no end was recorded
}

// RawFile is an unmodified file that a tool wrote.
type RawFile struct {
	Instance  string
	Container string
	File      string // path inside the container, without the leading slash
	Path      string // path in the bundle directory
	Bytes     int64
}

// View selects a latency of an op.
type View int

// The views.
const (
	Response View = iota // ended − intended: from the scheduled start
	Service              // ended − started: the platform alone
	Lateness             // started − intended: the delay of the harness
)

// Filter selects ops; an empty field selects all.
type Filter struct {
	Actions []string
	Kinds   []op.Kind
	From    op.Time // intended at or after; the zero value means no bound
	To      op.Time // intended before; the zero value means no bound
}

// Latencies are the values of one view of the selected ops, in record order, in ns. For Lateness every
// started op is in OK.
type Latencies struct {
	OK      []int64 // of ops with outcome ok
	Bounds  []int64 // lower bounds: ops timed out or censored
	Errors  int64   // ops that failed
	Dropped int64   // ops never started: +∞ in quantiles
	Unknown int64   // other ops without this view
}

// Columns is a block of ops, column by column, in record order. The slices have one entry per op; Action,
// Kind and Outcome index into Names.
type Columns struct {
	Names    []string
	ID       []int64
	Intended []op.Time
	Started  []op.Time // Never where unknown
	Ended    []op.Time // Never where unknown
	Action   []int32
	Kind     []int32
	Outcome  []int32
}

// Len returns the number of ops in the block.
func (c *Columns) Len() int { return len(c.ID) }
