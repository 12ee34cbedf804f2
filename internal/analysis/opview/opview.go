// Package opview gathers what a bundle knows of single ops: their spans, which component took their time, and the log
// lines around them.
package opview

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/oplog"
)

// View is one op. Times count from the start of the run, durations are nanoseconds.
type View struct {
	Op    op.Op  `json:"op"`
	Spans []Span `json:"spans"` // in order of their begin; they may overlap
	// Components are which component took how much of the response time; empty unless the op was ok.
	Components []attribution.Share `json:"components"`
	// Logs are the lines around the op, nil without any: LogsMissing says why.
	Logs        *oplog.Record `json:"logs"`
	LogsMissing string        `json:"logsMissing,omitempty"`
	// LogNotes are of the whole run: which logs could not be read, and why.
	LogNotes []string `json:"logNotes,omitempty"`
}

// Span is a part of an op; see package span.
type Span struct {
	Name    string  `json:"name"`
	From    string  `json:"from"`
	To      string  `json:"to"`
	Volume  string  `json:"volume,omitempty"`
	At      op.Time `json:"at"`
	Ns      int64   `json:"ns"`
	ErrorNs int64   `json:"errorNs"`
}

// ErrNotFound is wrapped by the error for an op that the bundle does not have.
var ErrNotFound = errors.New("op not found")

// Make returns the view of an op, by its id or as ACTION/INSTANCE.
func Make(b *bundle.Bundle, name string) (*View, error) {
	o, err := find(b, name)
	if err != nil {
		return nil, err
	}
	logs, err := b.OpLogs()
	if err != nil {
		return nil, err
	}
	return Of(b.Run.OneMachine(), o, &logs), nil
}

// Of returns the view of an op with the logs of its bundle.
func Of(oneMachine bool, o op.Op, logs *bundle.OpLogs) *View {
	v := &View{Op: o, Spans: []Span{}, LogNotes: logs.About.Notes}
	if v.Op.Milestones == nil {
		v.Op.Milestones = []op.Milestone{}
	}
	for _, s := range span.Of(&o) {
		v.Spans = append(v.Spans, Span{s.Name, s.From, s.To, s.Volume, s.At, s.Ns, s.Err})
	}
	t := attribution.Tally{OneMachine: oneMachine}
	t.Add(&o)
	v.Components = t.Shares()
	if v.Components == nil {
		v.Components = []attribution.Share{}
	}
	if r, ok := logs.Of(o.ID); ok {
		v.Logs = &r
	} else {
		v.LogsMissing = missing(&o, logs)
	}
	return v
}

// missing says why there are no lines around an op.
func missing(o *op.Op, logs *bundle.OpLogs) string {
	switch {
	case !logs.Collected:
		return "the bundle has no log lines around single ops: it is of an earlier version, or its run was ended at once"
	case o.Outcome == op.Dropped:
		return "the op never started"
	case o.Outcome != op.OK:
		return fmt.Sprintf("%d of %d failed ops have their log lines: of equal failures the first ones",
			logs.About.FailedKept, logs.About.Failed)
	}
	return fmt.Sprintf("only failed and slow ops have their log lines (%d of %d slow ones), and the slowest three of "+
		"each action", logs.About.SlowKept, logs.About.Slow)
}

func find(b *bundle.Bundle, name string) (op.Op, error) {
	id, err := strconv.ParseInt(name, 10, 64)
	byID := err == nil
	at := strings.LastIndexByte(name, '/')
	instance := -1
	if !byID && at > 0 {
		instance, err = strconv.Atoi(name[at+1:])
	}
	if err != nil || !byID && instance < 0 {
		return op.Op{}, fmt.Errorf("invalid op %q: want its id, such as 17, or ACTION/INSTANCE, such as snapshots/3", name)
	}
	n, last := 0, int64(0)
	for o, err := range b.Ops() {
		if err != nil {
			return op.Op{}, err
		}
		if byID && o.ID == id || !byID && o.Action == name[:at] && o.Instance == instance {
			return o, nil
		}
		n, last = n+1, max(last, o.ID)
	}
	return op.Op{}, fmt.Errorf("%w: %s: the bundle has %d ops, up to id %d, and instances count from 0; "+
		"show --events lists them", ErrNotFound, name, n, last)
}
