package figure

import (
	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Waterfall has the spans of one op.
type Waterfall struct {
	From, To op.Time // from the intended instant to the last end
	// Path is the critical path in order of time; empty unless the op was ok.
	Path  []attribution.Interval
	Spans []SpanBar // in order of their begin, those within another after it
}

// SpanBar is a span with the component that took its time.
type SpanBar struct {
	span.Span
	Component string
	Depth     int // how many spans contain it
}

// WaterfallOf returns the spans of an op.
func WaterfallOf(o *op.Op, oneMachine bool) Waterfall {
	w := Waterfall{From: o.Intended, To: o.Intended, Path: attribution.InOrder(o, oneMachine)}
	if o.Ended.Known() {
		w.To = o.Ended
	}
	spans := span.Of(o)
	parents := span.Parents(spans)
	var add func(parent, depth int)
	add = func(parent, depth int) {
		for i, s := range spans {
			if parents[i] == parent {
				w.From, w.To = min(w.From, s.At), max(w.To, s.End())
				w.Spans = append(w.Spans, SpanBar{s, attribution.ComponentOf(o, s.From, s.To, oneMachine), depth})
				add(i, depth+1)
			}
		}
	}
	add(-1, 0)
	return w
}
