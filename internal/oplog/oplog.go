// Package oplog selects the ops of a run whose log lines are kept, and collects the lines in the window around each,
// bounded and without secrets. It reads no logs itself.
package oplog

import (
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Margin is how long before the start and after the end of an op its window reaches: logs are written a little later
// than what they report, and the clocks of nodes differ.
const Margin = time.Second

// Limits of what is kept.
const (
	// MaxOps bounds the selected ops, of which at most maxFailed have failed.
	MaxOps    = 64
	maxFailed = 40
	// maxSame bounds the failed ops of one action with the same outcome and code.
	maxSame = 5
	// fewest is how many of the slowest ops of an action are selected by any rule.
	fewest = 3

	// maxLine bounds a line as kept, maxRaw as searched for secrets, maxSource the name of a source.
	maxLine, maxRaw, maxSource = 4 << 10, 16 << 10, 256
	// maxPerOp bounds the kept bytes of an op; a line counts its length plus lineOverhead.
	maxPerOp, lineOverhead = 64 << 10, 64
	// shortestName is the shortest name by which a line is found to be about an op.
	shortestName = 3
)

// Reason is why an op was selected.
type Reason string

// The reasons. An op is slow if its service time is above the 95th percentile and more than twice the median of the
// ops of its action that were ok.
const (
	Failed   Reason = "error"
	TimedOut Reason = "timeout"
	Censored Reason = "censored"
	Slow     Reason = "slow"
	Slowest  Reason = "slowest" // not slow, but one of the slowest three of its action
)

// Record has the log lines around one op.
type Record struct {
	ID   int64   `json:"id"` // of the op
	Why  Reason  `json:"why"`
	From op.Time `json:"from"` // the window: started − Margin
	To   op.Time `json:"to"`   // ended + Margin
	// N, MedianNs and P95Ns are of the service times of the action's ops that were ok.
	N        int64 `json:"n"`
	MedianNs int64 `json:"medianNs"`
	P95Ns    int64 `json:"p95Ns"`
	// Lines are in order of time. Those that are not Named may be about another op of the same time.
	Lines []Line `json:"lines"`
	// Omitted counts lines of the window that are not kept.
	Omitted []Omission `json:"omitted,omitempty"`

	names []string // of the objects that the op acts on and makes
}

// Line is one log line.
type Line struct {
	// At is when it was written, by the wall clock of the machine that wrote it, or when it arrived at the runner.
	At     op.Time `json:"at"`
	Source string  `json:"source"` // "driver NAME", "INSTANCE/CONTAINER", "NAMESPACE/POD/CONTAINER", …
	Line   string  `json:"line"`
	// Named: the line has the name of an object that the op acts on or makes.
	Named bool `json:"named,omitempty"`
}

// Omission counts the lines of a source that had no room: of those that are not Named the ones farthest from the op
// in time, then the earliest ones.
type Omission struct {
	Source string `json:"source"`
	Lines  int64  `json:"lines"`
	Bytes  int64  `json:"bytes"`
}

// About describes a collection as a whole.
type About struct {
	// Failed counts the ops that failed, timed out or did not end; Slow those that were slow. Both are of the whole
	// run.
	Failed int64 `json:"failed"`
	Slow   int64 `json:"slow"`
	// FailedKept and SlowKept count those of them that were selected.
	FailedKept int64 `json:"failedKept"`
	SlowKept   int64 `json:"slowKept"`
	// Notes say which logs could not be read, and why.
	Notes []string `json:"notes,omitempty"`
}

// Window is a part of a run, both ends included.
type Window struct{ From, To op.Time }

// Has reports whether an instant is in the window.
func (w Window) Has(at op.Time) bool { return w.From <= at && at <= w.To }
