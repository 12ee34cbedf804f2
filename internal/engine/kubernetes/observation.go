package kubernetes

import (
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// observation is what one op sees of the objects that it follows.
type observation struct {
	feed     *feed
	stamps   stamps
	warnings warnings
	rpcs     *rpcs
	waits    *waits
}

// observe begins an observation without any object. It counts the given CSI calls that
// begin at since or later. pending lists the objects that the op waits for.
func (t *tracker) observe(sink engine.Sink, since op.Time, calls map[string]bool, pending func() []awaited) observation {
	o := observation{feed: t.follow(), stamps: stamps{}, warnings: warnings{}, rpcs: newRPCs(calls, since)}
	o.waits = &waits{sink: sink, feed: o.feed, warnings: o.warnings, pending: pending}
	return o
}

// explain appends the warnings and the failed CSI calls to a text.
func (o *observation) explain(text string) string {
	text = o.warnings.appendTo(text)
	if failures := o.rpcs.failures(); failures != "" {
		text += "; " + failures
	}
	return text
}
