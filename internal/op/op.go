// Package op defines the record of an operation: when it was due, when it started, which milestones it passed
// and how it ended.
//
// The package imports no other package of CNSBench. The runner writes ops, engines add milestones, the bundle
// stores ops, and the analysis reads them. Durations between milestones are computed and never recorded.
package op

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Time is a time in a run, in nanoseconds since the run's start on the runner's monotonic clock. It can be
// negative: an agent's timestamp, converted to the runner's clock, can lie before the start.
type Time int64

// Never is the Time of an event that did not happen or was not observed: the start of a dropped op, the end
// of an op whose end was not observed. It is null in JSON.
const Never Time = math.MinInt64

// Known reports whether t is not Never.
func (t Time) Known() bool { return t != Never }

// MarshalJSON writes nanoseconds, or null for Never.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == Never {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, int64(t), 10), nil
}

// UnmarshalJSON parses the output of MarshalJSON.
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

// Outcome is the result of an op.
type Outcome string

// The outcomes. Only OK has an exact latency. For Censored and Timeout the latency is a lower bound; Dropped
// counts as infinite in quantiles.
const (
	OK       Outcome = "ok"       // succeeded
	Error    Outcome = "error"    // the platform refused or failed
	Timeout  Outcome = "timeout"  // its own deadline passed
	Censored Outcome = "censored" // the run ended first; Ended is when the observation stopped
	Dropped  Outcome = "dropped"  // never started: the rate was saturated, had no target, or the run ended
)

// Names of milestones that several engines have in common. RPCs add "<RPC>.start" and "<RPC>.end", e.g.
// "CreateVolume.end"; an op on several volumes appends "/<claim>".
const (
	Acked       = "acked"       // the platform accepted the request
	Provisioned = "provisioned" // the volume exists
	Bound       = "bound"       // the claim is bound to it
	Scheduled   = "scheduled"   // a node was chosen for the pod
	Attached    = "attached"    // ControllerPublishVolume done
	Staged      = "staged"      // NodeStageVolume done
	Published   = "published"   // NodePublishVolume done
	Sandboxed   = "sandboxed"   // the pod has its network and its volumes, and may start containers
	Delivered   = "delivered"   // the agent's own init container is done
	Initialized = "initialized" // init containers done
	Running     = "running"     // containers started (as processes, or waiting at their barrier)
	Ready       = "ready"       // usable: pod ready, snapshot readyToUse
	FirstWrite  = "firstWrite"  // a write to an unlinked file on the volume was synced
	FirstPut    = "firstPut"    // an object was put into the bucket
	FirstRead   = "firstRead"   // a byte was read from the volume
	Taken       = "taken"       // the snapshot is cut
	Controller  = "controller"  // ControllerExpandVolume done
	Node        = "node"        // NodeExpandVolume done
	Modified    = "modified"    // ControllerModifyVolume done
	Checked     = "checked"     // all blocks were read and judged
	Unpublished = "unpublished" // NodeUnpublishVolume done
	Unstaged    = "unstaged"    // NodeUnstageVolume done
	Detached    = "detached"    // ControllerUnpublishVolume done
	Gone        = "gone"        // the object no longer exists
	// Backoff is a wait before a call is repeated, with its own ".start" and ".end".
	Backoff     = "backoff"
	Signalled   = "signalled"   // the signal was sent, or the deletion accepted
	Replaced    = "replaced"    // the replacement of what was killed or evicted exists
	Resumed     = "resumed"     // SIGCONT was sent after SIGSTOP
	Cordoned    = "cordoned"    // the node is unschedulable
	Evicted     = "evicted"     // the last eviction was accepted
	ObjectReady = "objectReady" // the object's controller has made what the object's spec requests
	// the wait for the op's object, or for a slot under maxInFlight, ended after the op was intended
	Unblocked = "unblocked"
)

// Milestone is a point in time within an op.
type Milestone struct {
	Name string `json:"name"`
	At   Time   `json:"at"`
	// Err is the ± error of At in nanoseconds: 0 for the runner's own clock, half the round-trip time for an
	// agent's.
	Err int64 `json:"err"`
	// Source is the observer: "runner", "csi", "agent" or "watch".
	Source string `json:"source"`
}

// Split returns the name without its volume, and the volume of an op on several: "ready" and "a" of "ready/a".
func (m *Milestone) Split() (base, volume string) {
	if i := strings.IndexByte(m.Name, '/'); i >= 0 {
		return m.Name[:i], m.Name[i+1:]
	}
	return m.Name, ""
}

// Is reports whether base is the milestone's name without the volume.
func (m *Milestone) Is(base string) bool {
	n := len(base)
	return len(m.Name) >= n && m.Name[:n] == base && (len(m.Name) == n || m.Name[n] == '/')
}

// Op is one execution of an action.
type Op struct {
	ID       int64  `json:"id"`       // unique in the run, in order of dispatch
	Episode  int64  `json:"episode"`  // the trigger that caused it; ops of one trigger share it
	Action   string `json:"action"`   // the action's name in the Benchmark
	Instance int    `json:"instance"` // index of the op within its action
	Kind     Kind   `json:"kind"`
	Target   string `json:"target"` // the object that it acts on: a volume, a snapshot, a workload
	Node     string `json:"node"`
	Intended Time   `json:"intended"` // due time of the schedule
	Started  Time   `json:"started"`
	Ended    Time   `json:"ended"`
	// Milestones are in order of At.
	Milestones []Milestone `json:"milestones"`
	Attempts   int         `json:"attempts"` // requests sent for its main step, including retries of lower layers
	Outcome    Outcome     `json:"outcome"`
	Code       string      `json:"code"` // machine-readable cause, e.g. "ResourceExhausted"
	Message    string      `json:"message"`
	Object     string      `json:"object"` // the object that it made or removed
}

// Milestone returns the time of the milestone with that name, or Never if it was not observed.
func (o *Op) Milestone(name string) Time {
	for _, m := range o.Milestones {
		if m.Name == name {
			return m.At
		}
	}
	return Never
}

// Response returns the response time, from Intended to Ended, in nanoseconds. It is the latency that a user
// with a schedule observes. It returns false if either time is unknown.
func (o *Op) Response() (int64, bool) { return between(o.Intended, o.Ended) }

// Service returns the service time, from Started to Ended, in nanoseconds: the latency of the platform alone.
// It returns false if either time is unknown.
func (o *Op) Service() (int64, bool) { return between(o.Started, o.Ended) }

// Lateness returns how far the runner was behind the schedule, in nanoseconds: from Intended, or from
// Unblocked if that is later, to Started. The wait for the op's object or for a slot is not the runner's
// lateness. It returns false if Intended or Started is unknown.
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

// String formats the op for logs and test failures.
func (o *Op) String() string {
	return fmt.Sprintf("op %d %s/%d %s %s", o.ID, o.Action, o.Instance, o.Kind, o.Outcome)
}
