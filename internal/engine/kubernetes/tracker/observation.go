package tracker

import (
	"context"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Observation is what one op sees of the objects that it follows.
type Observation struct {
	Feed       *Feed
	Milestones Milestones
	Warnings   Warnings
	Calls      *CSICalls
	Waits      *Waits
}

// Observe begins an observation without any object. It counts the given CSI calls that begin at since or later.
// pending lists the objects that the op waits for.
func (t *Tracker) Observe(sink engine.Sink, since op.Time, calls map[string]bool,
	pending func() []Pending) Observation {
	o := Observation{Feed: t.Follow(), Milestones: Milestones{}, Warnings: Warnings{}, Calls: newCSICalls(calls, since)}
	o.Waits = &Waits{sink: sink, feed: o.Feed, warnings: o.Warnings, pending: pending}
	return o
}

// Explain appends the warnings and the failed CSI calls to a text.
func (o *Observation) Explain(text string) string {
	text = o.Warnings.AppendTo(text)
	if failures := o.Calls.Failures(); failures != "" {
		text += "; " + failures
	}
	return text
}

// Next waits for the next item: it records a CSI call, and has handle handle an event. The error at the end of ctx
// has the text of pending.
func (o *Observation) Next(ctx context.Context, pending func() string, handle func(watch.Event) error) error {
	v, err := o.Feed.Next(ctx)
	if err != nil {
		return engine.Errorf("Waiting", "%s", pending()).Wrap(err)
	}
	switch v := v.(type) {
	case *csiproxy.Call:
		o.Calls.See(v)
	case watch.Event:
		if err := handle(v); err != nil {
			return err
		}
	}
	o.Waits.Saw(v)
	return nil
}
