package bundle

import (
	"encoding/json"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Version is the version of the bundle's format. It grows when a reader of
// the former version would misread a bundle; readers accept older ones.
const Version = 1

// State is how far a run has come.
type State string

// The states. Only a closed bundle has one other than Running; one found
// Running with nobody writing it was killed.
const (
	Running     State = "running"
	Complete    State = "complete"
	Interrupted State = "interrupted" // by the user: cleaned up, closed
	Failed      State = "failed"      // Reason says why
)

// Objects is the Engine of a run that is a workload of object storage on its own.
const Objects = "object"

// ObjectsOnly says that the run had no operations and no objectives.
func (r *Run) ObjectsOnly() bool { return r.Engine == Objects }

// OneMachine reports whether the runner, the workloads and the drivers shared one
// machine. Bundles record no more of this than the engine's name.
func (r *Run) OneMachine() bool { return r.Engine == "local" }

// Run is run.json: what was asked, with what, and what came of it. Secrets
// must not enter: the caller removes them from Spec, Source and Plan.
type Run struct {
	Format int    `json:"format"` // Version, set by Create
	ID     string `json:"runID"`
	Name   string `json:"name"`
	State  State  `json:"state"`
	Reason string `json:"reason,omitempty"`
	// Identity is what the things that the run made carry, for a clean-up to
	// recognize them.
	Identity owned.Identity `json:"identity,omitzero"`

	Spec     json.RawMessage   `json:"spec,omitempty"` // the Benchmark with defaults
	Source   Source            `json:"source"`
	Plan     json.RawMessage   `json:"plan,omitempty"` // facts the plan resolved: variables, budget, warnings
	Seed     uint64            `json:"seed"`
	Versions map[string]string `json:"versions,omitempty"` // "cnsbench", "go", "agent", …
	Engine   string            `json:"engine"`
	Clock    ClockInfo         `json:"clock"`

	BarrierAt op.Time `json:"barrierAt"` // Never: no barrier opened
	EndedAt   op.Time `json:"endedAt"`   // Never: still running, or killed

	Rates    []RateStats `json:"rates,omitempty"`
	Verdicts []Verdict   `json:"verdicts,omitempty"`
	Validity []Flag      `json:"validity,omitempty"`
	ExitCode int         `json:"exitCode"`
	// Distributions are what others counted of the whole run.
	Distributions []op.Distribution `json:"distributions,omitempty"`
	// Bounds are what limited the stages of object storage.
	Bounds []Bound `json:"bounds,omitempty"`
	// Outputs says what other systems were sent of all this.
	Outputs []OutputStats `json:"outputs,omitempty"`
}

// Bound says what limited a stage of object storage, and what an operation cost the
// process that asked for it.
type Bound struct {
	Instance   string `json:"instance,omitempty"` // of a Benchmark; empty: all processes of the run
	Stage      string `json:"stage"`
	Bound      string `json:"bound"` // "client-bound", "server-bound", "unclear"
	Evidence   string `json:"evidence"`
	CPUPerOpNs int64  `json:"cpuPerOpNs"` // mean of Ops operations
	Ops        int64  `json:"ops"`
}

// OutputStats says what became of the documents for one output.
type OutputStats struct {
	Name      string `json:"name"`
	Delivered int64  `json:"delivered"`
	Refused   int64  `json:"refused"` // the receiver will not take them
	Retried   int64  `json:"retried"` // attempts that had to be repeated
	Pending   int64  `json:"pending"` // not delivered yet
	Error     string `json:"error,omitempty"`
}

// Source is the file as it was given, which files it names were read, and which
// workloads of a library its actions created.
type Source struct {
	File      string     `json:"file"`
	Text      string     `json:"text"`
	Traces    []Trace    `json:"traces,omitempty"`
	Workloads []Workload `json:"workloads,omitempty"`
}

// Workload says which entry of which library it was.
type Workload struct {
	Name   string `json:"name"`
	Origin string `json:"origin"` // for people
	SHA256 string `json:"sha256"` // of its name, defaults and parts, in hex
}

// Trace says which file it was that a rate replayed.
type Trace struct {
	Rate    string `json:"rate"`
	File    string `json:"file"`   // as the Benchmark has it
	SHA256  string `json:"sha256"` // of the file as it is, compressed or not, in hex
	Records int    `json:"records"`
}

// ClockInfo names the clock that every op.Time of the bundle counts on.
type ClockInfo struct {
	Start      time.Time `json:"start"`      // wall-clock time of zero, for people only
	Source     string    `json:"source"`     // e.g. "CLOCK_MONOTONIC (tsc)"
	Resolution int64     `json:"resolution"` // ns: smallest step seen
}

// RateStats says what a rate offered and what became of it.
type RateStats struct {
	Name      string  `json:"name"`
	Triggers  int64   `json:"triggers"` // offered by the schedule
	Started   int64   `json:"started"`  // ops started
	Dropped   int64   `json:"dropped"`  // ops never started
	Late      int64   `json:"late"`     // ops started after their intended time by more than the harness's own bound
	Offered   float64 `json:"offeredPerSecond"`
	Achieved  float64 `json:"achievedPerSecond"`
	LateP99Ns int64   `json:"lateP99"`
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

// Verdict is the judgement of one SLO.
type Verdict struct {
	Name     string `json:"name"`
	Expr     string `json:"expr"`
	Status   Status `json:"status"`
	Observed string `json:"observed,omitempty"` // the figures that decided, for people
	Message  string `json:"message,omitempty"`
}

// Flag marks figures that cannot be trusted, with the evidence.
type Flag struct {
	Name     string `json:"name"`
	Severity string `json:"severity"` // "info", "warning", "invalid"
	Evidence string `json:"evidence"`
	// Sources are the INSTANCE or INSTANCE/CONTAINER that it was found in, where it is
	// about instances; bundles of before do not have them.
	Sources []string `json:"sources,omitempty"`
}
