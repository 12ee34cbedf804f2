// Package op has the one record that CNSBench is about: an operation, when it
// was due, when it began, the instants it passed through and how it ended.
//
// It is a leaf: the loop writes ops, engines add milestones, the bundle stores
// them, the analysis reads them. Spans are differences of milestones and are
// never recorded.
package op

import (
	"fmt"
	"math"
	"strconv"
)

// Time is an instant of a run in nanoseconds since the run's start, on the
// runner's monotonic clock. It can be negative: an agent's stamp joined to
// the runner's clock may lie before the start.
type Time int64

// Never is the Time of what did not happen: the start of a dropped op, the
// end of one that was never seen to end. It is null in JSON.
const Never Time = math.MinInt64

// Known says whether t is an instant at all.
func (t Time) Known() bool { return t != Never }

// MarshalJSON writes nanoseconds, or null for Never.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == Never {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(t), 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*t = Never
		return nil
	}
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("a time is nanoseconds or null: %w", err)
	}
	*t = Time(v)
	return nil
}

// Outcome is how an op ended.
type Outcome string

// The outcomes. Only OK has a latency that may be read as such; Censored and
// Timeout are lower bounds of one, Dropped counts as infinite in quantiles.
const (
	OK       Outcome = "ok"       // done
	Error    Outcome = "error"    // the platform refused or failed
	Timeout  Outcome = "timeout"  // its own deadline passed
	Censored Outcome = "censored" // the run ended first; Ended is when we stopped looking
	Dropped  Outcome = "dropped"  // never started: the rate was saturated, had no target, or the run ended
)

// Names of milestones that more than one engine has. RPCs add their own as
// "<RPC>.start" and "<RPC>.end", e.g. "CreateVolume.end"; an op on several
// volumes adds "/<claim>".
const (
	Acked       = "acked"       // the platform accepted the request
	Provisioned = "provisioned" // the volume exists
	Bound       = "bound"       // the claim is bound to it
	Scheduled   = "scheduled"   // a node was chosen for the pod
	Attached    = "attached"    // ControllerPublishVolume done
	Staged      = "staged"      // NodeStageVolume done
	Published   = "published"   // NodePublishVolume done
	Sandboxed   = "sandboxed"   // the pod has its network and its volumes, and may start containers
	Initialized = "initialized" // init containers done
	Running     = "running"     // containers started (as processes, or waiting at their barrier)
	Ready       = "ready"       // usable: pod ready, snapshot readyToUse
	FirstWrite  = "firstWrite"  // an invisible write reached the volume
	FirstRead   = "firstRead"   // a byte was read from the volume
	Taken       = "taken"       // the snapshot is cut
	Controller  = "controller"  // ControllerExpandVolume done
	Node        = "node"        // NodeExpandVolume done
	Modified    = "modified"    // ControllerModifyVolume done
	Unpublished = "unpublished" // NodeUnpublishVolume done
	Unstaged    = "unstaged"    // NodeUnstageVolume done
	Detached    = "detached"    // ControllerUnpublishVolume done
	Gone        = "gone"        // the object exists no more
	Signalled   = "signalled"   // the signal was delivered, or the deletion accepted
	Replaced    = "replaced"    // what was killed or evicted exists again
	Resumed     = "resumed"     // what was stopped by SIGSTOP was told to go on
	Cordoned    = "cordoned"    // the node takes no more pods
	Evicted     = "evicted"     // the last eviction was accepted
	ObjectReady = "objectReady" // the controller of an object has made what was asked for
	// what it acts on, or a place under maxInFlight, was there at last, after it was intended
	Unblocked = "unblocked"
)

// Milestone is an instant inside an op.
type Milestone struct {
	Name string `json:"name"`
	At   Time   `json:"at"`
	// Err is the ± error of At in nanoseconds: 0 for the runner's own clock,
	// half the round trip for an agent's.
	Err int64 `json:"err"`
	// Source says who saw it: "runner", "csi", "agent", "watch".
	Source string `json:"source"`
}

// Op is one execution of an action.
type Op struct {
	ID       int64  `json:"id"`       // unique in the run, in order of dispatch
	Episode  int64  `json:"episode"`  // the trigger that caused it; ops of one trigger share it
	Action   string `json:"action"`   // name in the file
	Instance int    `json:"instance"` // index of the op within its action
	Kind     Kind   `json:"kind"`
	Target   string `json:"target"` // what it is done to: a volume, a snapshot, a workload
	Node     string `json:"node"`
	Intended Time   `json:"intended"` // when the schedule wanted it
	Started  Time   `json:"started"`
	Ended    Time   `json:"ended"`
	// Milestones in order of At.
	Milestones []Milestone `json:"milestones"`
	Attempts   int         `json:"attempts"` // requests sent for its main step; retries beneath us are in it
	Outcome    Outcome     `json:"outcome"`
	Code       string      `json:"code"` // machine-readable cause, e.g. "ResourceExhausted"
	Message    string      `json:"message"`
	Object     string      `json:"object"` // what it made or removed
}

// Milestone returns the instant with that name; Never if it was not seen.
func (o *Op) Milestone(name string) Time {
	for _, m := range o.Milestones {
		if m.Name == name {
			return m.At
		}
	}
	return Never
}

// Response is the latency that a user with a schedule meets: from the
// intended time. It is false where the op has no end.
func (o *Op) Response() (int64, bool) { return between(o.Intended, o.Ended) }

// Service is the latency of the platform alone: from the start.
func (o *Op) Service() (int64, bool) { return between(o.Started, o.Ended) }

// Lateness is how far the harness itself was behind its schedule: the wait for
// what the op acts on, or for a place, (Unblocked) is not its own.
func (o *Op) Lateness() (int64, bool) {
	if !o.Intended.Known() {
		return 0, false
	}
	return between(max(o.Intended, o.Milestone(Unblocked)), o.Started)
}

func between(a, b Time) (int64, bool) {
	if !a.Known() || !b.Known() {
		return 0, false
	}
	return int64(b - a), true
}

// String is for logs and test failures.
func (o *Op) String() string {
	return fmt.Sprintf("op %d %s/%d %s %s", o.ID, o.Action, o.Instance, o.Kind, o.Outcome)
}
