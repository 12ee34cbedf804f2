// Package runnerstatus has the messages of a runner to its operator: during the run the file progress.json of its
// bundle, at the end the termination message of its container.
package runnerstatus

import (
	"encoding/json"
	"time"

	"github.com/cnsbench/cnsbench/internal/bounded"
)

// ProgressFile is the name of the progress in the bundle.
const ProgressFile = "progress.json"

// EndFile is where Kubernetes takes a container's termination message from.
const EndFile = "/dev/termination-log"

// EndLimit is how many bytes of a termination message Kubernetes keeps.
const EndLimit = 4096

// Counts are operations by outcome: ok, error, timeout, censored, dropped.
type Counts map[string]int64

// Progress is the state of a run in progress. The runner replaces it about once a second.
type Progress struct {
	RunID   string            `json:"runID"`
	Phase   string            `json:"phase"`             // of package run: "opening", "setting up", "running", …
	Barrier *time.Time        `json:"barrier,omitempty"` // when the barrier opened
	Seed    int64             `json:"seed,omitempty"`
	Ops     Counts            `json:"ops"`
	Actions map[string]Counts `json:"actions,omitempty"`
	At      time.Time         `json:"at"` // wall clock of the runner
}

// End is the result of a run.
type End struct {
	RunID    string            `json:"runID"`
	State    string            `json:"state"` // of package bundle: complete, interrupted, failed
	Reason   string            `json:"reason,omitempty"`
	ExitCode int               `json:"exitCode"`
	Barrier  *time.Time        `json:"barrier,omitempty"` // when the barrier opened; absent: it did not
	Seed     int64             `json:"seed,omitempty"`
	Ops      Counts            `json:"ops,omitempty"`
	Actions  map[string]Counts `json:"actions,omitempty"`
	SLOs     []Verdict         `json:"slos,omitempty"`
	// Clean says that nothing is left of the run. Otherwise the operator cleans up.
	Clean bool `json:"clean"`
}

// Verdict is the verdict on an objective.
type Verdict struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"` // pass, fail, noData, weak, error
	Message string `json:"message,omitempty"`
}

// Encode returns the message in at most EndLimit bytes. To fit, it drops in this order: messages of verdicts, counts of
// actions, the end of the reason, verdicts.
func (e End) Encode() []byte {
	for _, shorten := range []func(*End){
		func(*End) {},
		func(e *End) { e.SLOs = withoutMessages(e.SLOs) },
		func(e *End) { e.Actions = nil },
		func(e *End) { e.Reason = bounded.Text(e.Reason, 1024) },
		func(e *End) { e.SLOs = nil },
		func(e *End) { e.Reason = bounded.Text(e.Reason, 256) },
	} {
		shorten(&e)
		if b, err := json.Marshal(e); err == nil && len(b) <= EndLimit {
			return b
		}
	}
	least := End{RunID: bounded.Text(e.RunID, 64), State: bounded.Text(e.State, 64), ExitCode: e.ExitCode, Clean: e.Clean}
	b, _ := json.Marshal(least) // plain fields always marshal
	return b
}

// DecodeEnd reads a termination message. ok is false for anything else, such as the end of a log.
func DecodeEnd(message string) (e End, ok bool) {
	err := json.Unmarshal([]byte(message), &e)
	return e, err == nil && e.State != ""
}

func withoutMessages(all []Verdict) []Verdict {
	short := make([]Verdict, len(all))
	for i, v := range all {
		short[i] = Verdict{Name: v.Name, Verdict: v.Verdict}
	}
	return short
}
