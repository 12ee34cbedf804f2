package tenant

import (
	"github.com/cnsbench/cnsbench/internal/analysis/interference"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Tenant has the figures of one tenant. Times are in ns.
type Tenant struct {
	Name      string `json:"name"`
	Aggressor bool   `json:"aggressor"`
	// Place says where its volumes are in relation to the aggressor's: SamePool, OtherPool, or "" of the aggressor
	// itself and where that is unknown.
	Place string   `json:"place"`
	Pools []string `json:"pools"`
	// MeasuredNs is the time in which I/O that has a target was measured; of a tenant without targets any I/O.
	MeasuredNs int64 `json:"measuredNs"`
	// ViolationsNs is the part of it in which any target was missed; nil without targets.
	ViolationsNs *int64   `json:"violationsNs"`
	Targets      []Target `json:"targets"`
	Steps        []Step   `json:"steps"`
	Limits       []Limit  `json:"limits"`
}

// The places.
const (
	SamePool  = "same pool"
	OtherPool = "another pool"
)

// Target is one target, with the time in which it was missed by any instance.
type Target struct {
	Metric string `json:"metric"`
	// Of P99Ns and IOPSFloor one is set.
	P99Ns        int64 `json:"p99Ns,omitempty"`
	IOPSFloor    int64 `json:"iopsFloor,omitempty"`
	MeasuredNs   int64 `json:"measuredNs"`
	ViolationsNs int64 `json:"violationsNs"`
	// FewNs is the part of ViolationsNs in intervals with fewer than 100 I/Os, in which one I/O decides on P99Ns.
	FewNs int64 `json:"fewNs,omitempty"`
}

// Step is a part of the run: base, before the aggressor's first load; its loads; and the time after its end.
type Step struct {
	Name         string  `json:"name"`
	From         op.Time `json:"from"`
	To           op.Time `json:"to"`
	MeasuredNs   int64   `json:"measuredNs"`
	ViolationsNs *int64  `json:"violationsNs"`
	// Intervals is the number of recorded intervals of all instances and kinds of I/O.
	Intervals int      `json:"intervals"`
	Metrics   []Metric `json:"metrics"`
}

// Metric is one kind of I/O in a step. An interval belongs to the step in which its middle is.
type Metric struct {
	Metric string `json:"metric"`
	N      int64  `json:"n"` // I/Os
	// PerSecond is the mean rate of an instance; nil of the canary, whose rate is fixed.
	PerSecond *float64 `json:"perSecond"`
	// Latency and Rate compare with the base: a quantile of the latency, and the median of the intervals' rates. nil in
	// the base, and with too few values or fewer than ten intervals on a side.
	Latency *interference.Ratio `json:"latency"`
	Rate    *interference.Ratio `json:"rate"`
}

// Limit is a limit beside the greatest mean rate of an instance in a step.
type Limit struct {
	Metric string `json:"metric"` // "write.iops", "read.bandwidth", …
	Unit   string `json:"unit"`   // "1/s" or "B/s"
	// EnforcedBy is "cgroup" or "driver".
	EnforcedBy string  `json:"enforcedBy"`
	Limit      float64 `json:"limit"`
	// Measured is nil if no step has three seconds of I/O. Instance, Step and Seconds say where it was measured.
	Measured *float64 `json:"measured"`
	Instance string   `json:"instance,omitempty"`
	Step     string   `json:"step,omitempty"`
	Seconds  int      `json:"seconds"`
}

// Names of the steps without a load.
const (
	Base  = "base"
	After = "after"
)
