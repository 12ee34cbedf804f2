package bundle

import (
	"encoding/json"
	"time"

	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Version is the version of the bundle's format. It changes when an older reader would misread a bundle;
// readers accept older versions.
const Version = 1

// State is the state of a run.
type State string

// The states. Only a closed bundle has one other than Running; a bundle in state Running without a writer was
// killed.
const (
	Running     State = "running"
	Complete    State = "complete"
	Interrupted State = "interrupted" // by the user: cleaned up and closed
	Failed      State = "failed"      // Reason says why
)

// Objects is the Engine of a stand-alone object storage run.
const Objects = "object"

// ObjectsOnly reports whether the run had no operations and no objectives.
func (r *Run) ObjectsOnly() bool { return r.Engine == Objects }

// OneMachine reports whether the runner, the workloads and the drivers shared one
// machine. Bundles record no more of this than the engine's name.
func (r *Run) OneMachine() bool { return r.Engine == "local" }

// OnCluster reports whether the run was on a Kubernetes cluster.
func (r *Run) OnCluster() bool { return r.Engine == "kubernetes" }

// Run is run.json: the input, the environment and the outcome of a run. The caller removes secrets from Spec,
// Source and Plan.
type Run struct {
	Format int    `json:"format"` // Version, set by Create
	ID     string `json:"runID"`
	Name   string `json:"name"`
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Identity marks the objects that a run on a cluster made, for the clean-up.
	Identity owned.Identity `json:"identity,omitzero"`
	// Left is what a run on its machine had not removed at its end, without data.
	Left []op.LedgerEntry `json:"left,omitempty"`

	Spec     json.RawMessage   `json:"spec,omitempty"` // the Benchmark with defaults
	Source   Source            `json:"source"`
	Plan     json.RawMessage   `json:"plan,omitempty"` // resolved facts of the plan: variables, budget, warnings
	Seed     uint64            `json:"seed"`
	Versions map[string]string `json:"versions,omitempty"` // "cnsbench", "go", "agent", …
	Engine   string            `json:"engine"`
	Clock    ClockInfo         `json:"clock"`

	BarrierAt op.Time `json:"barrierAt"` // Never: no barrier opened
	EndedAt   op.Time `json:"endedAt"`   // Never: still running, or killed

	// Sampling says what was read of workloads' processes; nil in older bundles, which have the level basic.
	Sampling *Sampling `json:"sampling,omitempty"`

	Rates    []RateStats `json:"rates,omitempty"`
	Verdicts []Verdict   `json:"verdicts,omitempty"`
	Validity []Flag      `json:"validity,omitempty"`
	ExitCode int         `json:"exitCode"`
	// Distributions are counted outside cnsbench over the whole run.
	Distributions []op.Distribution `json:"distributions,omitempty"`
	// Bounds are the bottlenecks of the stages of object storage.
	Bounds []Bound `json:"bounds,omitempty"`
	// Outages are the times in which endpoints of object storage did not serve.
	Outages []Outage `json:"outages,omitempty"`
	// Outputs says what was sent to other systems.
	Outputs []OutputStats `json:"outputs,omitempty"`
}

// Sampling is what a run reads of workloads' processes at each interval.
type Sampling struct {
	Level      op.SampleLevel `json:"level"` // at the start
	IntervalNs int64          `json:"interval"`
	// MaxOverhead is the greatest share of a CPU that sampling may take; 0: no limit.
	MaxOverhead float64        `json:"maxOverhead,omitempty"`
	Steps       []SamplingStep `json:"steps,omitempty"`
}

// SamplingStep is a change to a lower level, since sampling took more than MaxOverhead.
type SamplingStep struct {
	At       op.Time        `json:"at"`
	Level    op.SampleLevel `json:"level"`    // from then on
	Overhead float64        `json:"overhead"` // the share of a CPU before
}

// Bound is the limit of a stage of object storage.
type Bound struct {
	Instance string `json:"instance,omitempty"` // of a Benchmark; empty: all processes of the run
	metric.Limit
}

// Outage is a time in which an endpoint of object storage did not serve a stage.
type Outage struct {
	Instance string `json:"instance,omitempty"` // of a Benchmark; empty: all processes of the run
	Stage    string `json:"stage"`
	metric.Outage
}

// OutputStats counts the documents for one output.
type OutputStats struct {
	Name      string `json:"name"`
	Delivered int64  `json:"delivered"`
	Refused   int64  `json:"refused"` // rejected by the receiver
	Retried   int64  `json:"retried"` // repeated attempts
	Pending   int64  `json:"pending"` // not delivered yet
	Error     string `json:"error,omitempty"`
}

// Source is the Benchmark file as given, the files that it names, and the library workloads that its actions
// created.
type Source struct {
	File      string     `json:"file"`
	Text      string     `json:"text"`
	Traces    []Trace    `json:"traces,omitempty"`
	Workloads []Workload `json:"workloads,omitempty"`
}

// Workload identifies an entry of a library.
type Workload struct {
	Name   string `json:"name"`
	Origin string `json:"origin"` // description of the library
	SHA256 string `json:"sha256"` // of its name, defaults and parts, in hex
}

// Trace identifies the file that a rate replayed.
type Trace struct {
	Rate    string `json:"rate"`
	File    string `json:"file"`   // as the Benchmark has it
	SHA256  string `json:"sha256"` // of the file as stored, possibly compressed, in hex
	Records int    `json:"records"`
}

// ClockInfo describes the clock of every op.Time of the bundle.
type ClockInfo struct {
	Start      time.Time `json:"start"`      // wall-clock time of zero, informational
	Source     string    `json:"source"`     // e.g. "CLOCK_MONOTONIC (tsc)"
	Resolution int64     `json:"resolution"` // ns: smallest observed step
}

// RateStats counts the triggers of a rate and their results.
type RateStats struct {
	Name      string  `json:"name"`
	Triggers  int64   `json:"triggers"` // offered by the schedule
	Started   int64   `json:"started"`  // ops started
	Dropped   int64   `json:"dropped"`  // ops never started
	Late      int64   `json:"late"`     // ops started later than the harness's own limit
	Offered   float64 `json:"offeredPerSecond"`
	Achieved  float64 `json:"achievedPerSecond"`
	LateP99Ns int64   `json:"lateP99"`
	// Condition is set of a rate that triggered when an expression became true.
	Condition *Condition `json:"condition,omitempty"`
}

// Condition is what was seen of a rate's condition.
type Condition struct {
	When        string `json:"when"`
	Reset       string `json:"reset,omitempty"`
	Evaluations int64  `json:"evaluations"`
	Unknown     int64  `json:"unknown"` // evaluations that what was measured did not decide
	// Firings are in order, at most the first 1000.
	Firings []Firing `json:"firings,omitempty"`
}

// Firing is one trigger of a rate with a condition.
type Firing struct {
	Since    op.Time `json:"since"`    // of the sample by which the condition began to hold
	At       op.Time `json:"at"`       // when its operations were scheduled
	Observed string  `json:"observed"` // the values then, for people
}

// Status of an SLO. Only Pass passes.
type Status string

// The statuses.
const (
	Pass   Status = "pass"
	Fail   Status = "fail"
	NoData Status = "noData"
	Weak   Status = "weak"
	Error  Status = "error"
)

// Verdict is the result of one SLO.
type Verdict struct {
	Name     string `json:"name"`
	Expr     string `json:"expr"`
	Status   Status `json:"status"`
	Observed string `json:"observed,omitempty"` // the deciding figures
	Message  string `json:"message,omitempty"`
}

// Flag marks figures that cannot be trusted, with the evidence.
type Flag struct {
	Name     string `json:"name"`
	Severity string `json:"severity"` // "info", "warning", "invalid"
	Evidence string `json:"evidence"`
	// Sources are the INSTANCE or INSTANCE/CONTAINER that the flag concerns, if any; older bundles do not
	// have them.
	Sources []string `json:"sources,omitempty"`
	// Metrics are those of the workloads of Sources that the flag concerns, such as "read"; none: all their figures.
	Metrics []string `json:"metrics,omitempty"`
}
