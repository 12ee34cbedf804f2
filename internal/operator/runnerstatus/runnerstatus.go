// Package runnerstatus is what a runner tells its operator: while it runs, the file
// progress.json of its bundle; when it ends, the termination message of its
// container. It is a leaf, so that the runner need not know the operator.
package runnerstatus

import (
	"encoding/json"
	"time"
	"unicode/utf8"
)

// ProgressFile is the name of the progress in the bundle.
const ProgressFile = "progress.json"

// EndFile is where Kubernetes takes a container's termination message from.
const EndFile = "/dev/termination-log"

// EndLimit is how many bytes of a termination message Kubernetes keeps.
const EndLimit = 4096

// Counts are operations by outcome: ok, error, timeout, censored, dropped.
type Counts map[string]int64

// Progress is where a run stands: replaced as a whole, about once a second.
type Progress struct {
	RunID   string            `json:"runID"`
	Phase   string            `json:"phase"`             // of package run: "opening", "setting up", "running", …
	Barrier *time.Time        `json:"barrier,omitempty"` // when the barrier opened
	Seed    int64             `json:"seed,omitempty"`
	Ops     Counts            `json:"ops"`
	Actions map[string]Counts `json:"actions,omitempty"`
	At      time.Time         `json:"at"` // wall clock of the runner, for people
}

// End is how a run ended.
type End struct {
	RunID    string            `json:"runID"`
	State    string            `json:"state"` // of package record: complete, interrupted, failed
	Reason   string            `json:"reason,omitempty"`
	ExitCode int               `json:"exitCode"`
	Barrier  *time.Time        `json:"barrier,omitempty"` // when the barrier opened; absent: it did not
	Seed     int64             `json:"seed,omitempty"`
	Ops      Counts            `json:"ops,omitempty"`
	Actions  map[string]Counts `json:"actions,omitempty"`
	SLOs     []Verdict         `json:"slos,omitempty"`
	// Clean says that nothing is left of what the run made. Without it the
	// operator cleans up once more.
	Clean bool `json:"clean"`
}

// Verdict is how an objective was judged.
type Verdict struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"` // pass, fail, noData, weak, error
	Message string `json:"message,omitempty"`
}

// Encode gives the message in at most EndLimit bytes. What does not fit goes in
// the order of its weight: messages of verdicts, counts of actions, the end of
// the reason, verdicts. The bundle has it all.
func (e End) Encode() []byte {
	for _, shorten := range []func(*End){
		func(*End) {},
		func(e *End) { e.SLOs = withoutMessages(e.SLOs) },
		func(e *End) { e.Actions = nil },
		func(e *End) { e.Reason = cut(e.Reason, 1024) },
		func(e *End) { e.SLOs = nil },
		func(e *End) { e.Reason = cut(e.Reason, 256) },
	} {
		shorten(&e)
		if b, err := json.Marshal(e); err == nil && len(b) <= EndLimit {
			return b
		}
	}
	b, _ := json.Marshal(End{RunID: cut(e.RunID, 64), State: cut(e.State, 64), ExitCode: e.ExitCode, Clean: e.Clean}) // plain fields always marshal
	return b
}

// DecodeEnd reads a termination message. ok is false for anything else, such as
// the last lines of a log that stand in for it.
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

// cut shortens text to n bytes and a mark, at a rune's border.
func cut(text string, n int) string {
	if len(text) <= n {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n] + "…"
}
