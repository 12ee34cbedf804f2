// Package otlp writes the ops of a bundle as OpenTelemetry traces, and figures as metrics, in OTLP's JSON encoding, and
// sends traces to an OTLP/HTTP receiver. An op is a trace; its waits and spans are spans
// of it. The IDs are functions of the run's ID and start and the op's ID, so that an op
// that is sent twice is the same trace. docs/reference/export.md has the attributes.
package otlp

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// batchSpans is the number of spans from which a request is complete.
const batchSpans = 512

// Batch is one request: a line of JSON without its end.
type Batch struct {
	Body   []byte
	Traces int
	Spans  int
}

// Batches yields the traces of a bundle's ops, in the order of the bundle. Memory is bounded by
// one batch.
func Batches(b *bundle.Bundle) iter.Seq2[Batch, error] {
	return func(yield func(Batch, error) bool) {
		x := converter{run: &b.Run}
		for o, err := range b.Ops() {
			if err != nil {
				yield(Batch{}, err)
				return
			}
			x.op(&o)
			if len(x.spans) >= batchSpans && !yield(x.batch()) {
				return
			}
		}
		if len(x.spans) > 0 {
			yield(x.batch())
		}
	}
}

// converter gathers the spans of a batch.
type converter struct {
	run    *bundle.Run
	spans  []spanJSON
	traces int
}

// batch encodes the gathered spans and forgets them.
func (x *converter) batch() (Batch, error) {
	spans, err := json.Marshal(x.spans)
	if err != nil {
		return Batch{}, err
	}
	body, err := TraceRequest(x.run, [][]byte{spans})
	b := Batch{Body: body, Traces: x.traces, Spans: len(x.spans)}
	x.spans, x.traces = x.spans[:0], 0
	return b, err
}

// Spans returns the spans of one op as a JSON list.
func Spans(run *bundle.Run, o *op.Op) ([]byte, error) {
	x := converter{run: run}
	x.op(o)
	return json.Marshal(x.spans)
}

// TraceRequest returns the body of a request to /v1/traces with lists of spans of a run.
func TraceRequest(run *bundle.Run, lists [][]byte) ([]byte, error) {
	return json.Marshal(requestJSON{[]resourceSpans{{Resource: resourceOf(run),
		ScopeSpans: []scopeSpans{{Scope: scopeOf(run), Spans: joined(lists)}}}}})
}

// joined makes one JSON list of several.
func joined(lists [][]byte) json.RawMessage {
	var elements [][]byte
	for _, list := range lists {
		if list = bytes.TrimSuffix(bytes.TrimPrefix(list, []byte("[")), []byte("]")); len(list) > 0 {
			elements = append(elements, list)
		}
	}
	return slices.Concat([]byte("["), bytes.Join(elements, []byte(",")), []byte("]"))
}

func resourceOf(run *bundle.Run) resource {
	as := []attribute{text("service.name", "cnsbench"), text("service.version", run.Versions["cnsbench"]),
		text("service.instance.id", run.ID), text("cnsbench.run.id", run.ID), text("cnsbench.run.name", run.Name),
		text("cnsbench.engine", run.Engine)}
	if run.State != "" {
		as = append(as, text("cnsbench.run.state", string(run.State)))
	}
	return resource{as}
}

func scopeOf(run *bundle.Run) scope { return scope{"cnsbench", run.Versions["cnsbench"]} }

// hash returns the first n bytes of a hash of parts, in hex.
func hash(n int, parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		h.Write(strconv.AppendInt(nil, int64(len(p)), 10)) // a hash never fails
		h.Write([]byte{0})
		h.Write([]byte(p))
	}
	return hex.EncodeToString(h.Sum(nil)[:n])
}

// at returns an instant as wall-clock time: ns since 1970 as text. Differences of instants
// are exact; the wall-clock time of the run's start has the error of that clock.
func (x *converter) at(t op.Time) string {
	return strconv.FormatInt(x.run.Clock.Start.Add(time.Duration(t)).UnixNano(), 10)
}

// op adds the spans of an op.
func (x *converter) op(o *op.Op) {
	// Short run IDs of different machines may be equal; with their start they are not.
	trace := hash(16, "trace", x.run.ID, x.at(0), strconv.FormatInt(o.ID, 10))
	id := func(path string) string { return hash(8, "span", trace, path) }
	add := func(path, parent, name string, from, to op.Time, as ...attribute) {
		s := spanJSON{TraceID: trace, SpanID: id(path), Name: name, Kind: internal, Start: x.at(from),
			End: x.at(max(from, to)), Attributes: as}
		if parent != "" {
			s.Parent = id(parent)
		}
		x.spans = append(x.spans, s)
	}
	x.traces++
	from, to := bounds(o)
	due := from
	if o.Intended.Known() {
		due = min(due, o.Intended)
	}
	add("op", "", o.Action, due, to, attributes(o)...)
	root := &x.spans[len(x.spans)-1]
	root.Status, root.Events = status(o), x.milestones(o)
	if !o.Started.Known() {
		return
	}
	unblocked := min(max(o.Milestone(op.Unblocked), due), from)
	if due < unblocked {
		add("blocked", "op", "blocked", due, unblocked)
	}
	if unblocked < from {
		add("late", "op", "late", unblocked, from)
	}
	add("service", "op", "service", from, to)
	spans := span.Of(o)
	parents := span.Parents(spans)
	path := func(i int) string {
		if i < 0 {
			return "service"
		}
		return "span " + strconv.Itoa(i)
	}
	for i, s := range spans {
		as := []attribute{text("cnsbench.span.from", s.From), text("cnsbench.span.to", s.To),
			integer("cnsbench.span.error_ns", s.Err)}
		if s.Volume != "" {
			as = append(as, text("cnsbench.span.volume", s.Volume))
		}
		add(path(i), path(parents[i]), s.Name, s.At, s.End(), as...)
	}
}

// bounds returns the start and the end of an op: of one that never started twice the
// intended instant; an end that is not known is the start.
func bounds(o *op.Op) (from, to op.Time) {
	from = o.Started
	if !from.Known() {
		from = o.Intended
	}
	if !from.Known() {
		from = max(0, o.Ended)
	}
	return from, max(from, o.Ended)
}

// attributes of an op; what is not known is absent.
func attributes(o *op.Op) []attribute {
	as := []attribute{integer("cnsbench.op.id", o.ID), integer("cnsbench.op.episode", o.Episode),
		text("cnsbench.action", o.Action), integer("cnsbench.op.instance", int64(o.Instance)),
		text("cnsbench.op.kind", string(o.Kind)), text("cnsbench.op.outcome", string(o.Outcome)),
		integer("cnsbench.op.attempts", int64(o.Attempts))}
	for _, t := range []struct{ key, value string }{{"cnsbench.op.target", o.Target}, {"cnsbench.op.object", o.Object},
		{"cnsbench.node", o.Node}, {"cnsbench.op.code", o.Code}} {
		if t.value != "" {
			as = append(as, text(t.key, t.value))
		}
	}
	for _, l := range []struct {
		key  string
		view func() (int64, bool)
	}{{"response", o.Response}, {"service", o.Service}, {"lateness", o.Lateness}} {
		if ns, known := l.view(); known {
			as = append(as, integer("cnsbench.op."+l.key+"_ns", ns))
		}
	}
	if o.Outcome == op.Censored || o.Started.Known() && !o.Ended.Known() {
		as = append(as, boolean("cnsbench.op.censored", true))
	}
	return as
}

func status(o *op.Op) *statusJSON {
	if o.Outcome == op.OK {
		return &statusJSON{Code: statusOK}
	}
	if o.Outcome == op.Censored {
		return nil // unset: how it would have ended is not known
	}
	message := o.Message
	if message == "" {
		message = string(o.Outcome) + " " + o.Code
	}
	return &statusJSON{Code: statusError, Message: message}
}

func (x *converter) milestones(o *op.Op) []eventJSON {
	var list []eventJSON
	for _, m := range o.Milestones {
		if m.At.Known() {
			list = append(list, eventJSON{x.at(m.At), m.Name, []attribute{text("cnsbench.source", m.Source),
				integer("cnsbench.error_ns", m.Err)}})
		}
	}
	return list
}
