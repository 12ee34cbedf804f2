// Package metric defines the measured values of a workload: their names, units and
// kinds. A value is a Histogram, a Series or a Scalar. Its name is that of an
// operation, such as "read", or an operation with a suffix, such as "read.iops".
package metric

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Units.
const (
	Nanoseconds    = "ns"
	Bytes          = "B"
	Count          = "1"
	PerSecond      = "1/s"
	BytesPerSecond = "B/s"
)

// Operations of block and file I/O. CanaryRead and CanaryWrite are the canary's.
const (
	Read        = "read"
	Write       = "write"
	Trim        = "trim"
	Sync        = "sync"
	CanaryRead  = "canaryRead"
	CanaryWrite = "canaryWrite"
)

// Suffixes of the names of scalars and series.
const (
	IOPS        = ".iops"      // operations per second, in PerSecond
	Bandwidth   = ".bandwidth" // in BytesPerSecond
	IOs         = ".ios"       // number of I/Os that a tool counted
	Completed   = ".ok"        // number of operations that succeeded
	Failed      = ".failed"    // number; as a series, in PerSecond
	Lost        = ".lost"      // number that were due and never done; as a series, in PerSecond
	Transferred = ".bytes"     // in Bytes
)

// Service is the suffix of a histogram that counts from the start of an operation,
// beside one that counts from when it was due.
const Service = ".service"

// atEndpoint stands between the name of an operation and an endpoint.
const atEndpoint = "@"

// OfEndpoint returns the operation at one of several endpoints of object storage: read@HOST:PORT.
func OfEndpoint(operation, endpoint string) string { return operation + atEndpoint + endpoint }

// EndpointOf is the inverse of OfEndpoint; false if the metric is not one of an endpoint.
func EndpointOf(name string) (operation, endpoint string, ok bool) {
	return strings.Cut(name, atEndpoint)
}

// Canary returns the metric of the canary's writes or of its reads.
func Canary(write bool) string {
	if write {
		return CanaryWrite
	}
	return CanaryRead
}

// IsIO reports whether a latency is that of single I/Os, also of one job of several ("job.read"). Others, such as a
// transaction, contain I/O and waits.
func IsIO(name string) bool {
	switch name[strings.LastIndexByte(name, '.')+1:] {
	case Read, Write, Trim, Sync, CanaryRead, CanaryWrite:
		return true
	}
	return false
}

// RateOf returns the operation whose rate or bandwidth is called name; false if it
// is another metric.
func RateOf(name string) (operation string, ok bool) {
	if operation, ok = strings.CutSuffix(name, IOPS); ok {
		return operation, true
	}
	return strings.CutSuffix(name, Bandwidth)
}

// Kind says what a metric measures, and with that how its values are combined.
type Kind string

// The kinds. A metric of kind Histogram is a distribution, others are scalars and series.
const (
	Rate         Kind = "rate"      // an amount per second: the sum over instances, the mean over time
	Quantity     Kind = "quantity"  // an amount: the sum over instances and over time
	Level        Kind = "level"     // a state, share or time: the mean over instances and over time
	Least        Kind = "least"     // a minimum: the least of all instances and times
	Greatest     Kind = "greatest"  // a maximum: the greatest of all instances and times
	Statistic    Kind = "statistic" // such as a percentile, of which no rule combines several: the worst instance
	Distribution Kind = "histogram" // of latencies
)

// ScalarKinds are the kinds of scalars and series.
var ScalarKinds = []Kind{Rate, Quantity, Level, Least, Greatest, Statistic}

// Direction says which values of a metric are better; empty: not declared.
type Direction string

// The directions.
const (
	Higher Direction = "higher"
	Lower  Direction = "lower"
)

// Traits are what a parser declares of a metric besides its unit; the zero value: nothing.
type Traits struct {
	Kind   Kind      `json:"kind,omitempty"`
	Better Direction `json:"better,omitempty"`
	// Rank is the place among the principal figures of a tool, from 1; 0: it is none.
	Rank int `json:"rank,omitempty"`
}

// KindOfName returns the kind of a rate, a bandwidth or a count of operations; empty: the name is none of these.
func KindOfName(name string) Kind {
	switch name[max(0, strings.LastIndexByte(name, '.')):] {
	case IOPS, Bandwidth:
		return Rate
	case IOs, Completed, Failed, Lost, Transferred:
		return Quantity
	}
	return ""
}

// KindOf returns the kind of a metric that declares none, by its unit.
func KindOf(unit string) Kind {
	switch unit {
	case PerSecond, BytesPerSecond:
		return Rate
	case Count, Bytes:
		return Quantity
	}
	return Level
}

// Declaration is a metric that a parser can report.
type Declaration struct {
	Name, Unit string
	Traits
	Meaning string // for the documentation
}

// Principal returns the declaration as that of a principal figure of its tool.
func (d Declaration) Principal(rank int) Declaration {
	d.Rank = rank
	return d
}

// Scalar returns a value of the metric over the whole measured time.
func (d Declaration) Scalar(v float64) Scalar {
	return Scalar{Metric: d.Name, Unit: d.Unit, Traits: d.Traits, Value: v}
}

// Series returns an empty series of the metric.
func (d Declaration) Series(step int64) Series {
	return Series{Metric: d.Name, Unit: d.Unit, Traits: d.Traits, Step: step}
}

// Histogram is the distribution of one metric over [From, To).
type Histogram struct {
	Metric string `json:"metric"` // "read", "write", "trim", …
	Unit   string `json:"unit"`   // Nanoseconds
	// Basis is what the tool timed: for fio "lat" (submission and completion)
	// or "clat" (completion only).
	Basis string          `json:"basis,omitempty"`
	From  op.Time         `json:"from"`
	To    op.Time         `json:"to"`
	Hist  *hist.Histogram `json:"hist"`
}

// Series is a metric over time.
type Series struct {
	Metric string `json:"metric"` // e.g. "read.iops"
	Unit   string `json:"unit"`
	Traits
	Step   int64   `json:"step"` // ns: each point holds over [At, At+Step); 0: an instant
	Points []Point `json:"points"`
}

// Late reports whether an interval of a tool is longer than its step by so much that a rate over it does not say when
// within it the operations were: by more than a quarter. Both are in ns.
func Late(long, step int64) bool { return long-step > step/4 }

// Point is one value of a series.
type Point struct {
	At    op.Time `json:"at"`
	Value float64 `json:"value"`
}

// Scalar is one figure over the whole measured time.
type Scalar struct {
	Metric string `json:"metric"` // e.g. "read.iops"
	Unit   string `json:"unit"`
	Traits
	Value float64 `json:"value"`
	// From and To are when it was measured; both are 0 where that is unknown.
	From op.Time `json:"from,omitempty"`
	To   op.Time `json:"to,omitempty"`
}

// Limit is what limited a stage of object storage, and what an operation cost the client.
type Limit struct {
	Stage      string `json:"stage"`
	Bound      string `json:"bound"` // "client-bound", "server-bound", "unclear"
	Evidence   string `json:"evidence"`
	CPUPerOpNs int64  `json:"cpuPerOpNs"` // mean of Ops operations
	Ops        int64  `json:"ops"`
}

// Outage is a time in which an endpoint of object storage did not serve.
type Outage struct {
	Endpoint string  `json:"endpoint"` // HOST:PORT
	From     op.Time `json:"from"`     // start of the first operation that was not served
	To       op.Time `json:"to"`       // end of the first one that was served again
	// Ops are the operations that were tried and not served, since the outage began.
	Ops int64 `json:"ops"`
	// Open: it had not ended when the stage did, at To.
	Open bool `json:"open,omitempty"`
}

// FromNs and ToNs are the times in nanoseconds, for templates.
func (o Outage) FromNs() int64 { return int64(o.From) }

// ToNs is To in nanoseconds.
func (o Outage) ToNs() int64 { return int64(o.To) }
