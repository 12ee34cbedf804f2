package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// Step is what one trigger of a trace does: an action, and the objects of the trace
// that it involves.
type Step struct {
	Action int // index in Plan.Actions
	// Makes is the object that the op creates, On the object that it acts on; empty:
	// none.
	Makes, On string
}

// recording is a trace whose records are not yet assigned to actions.
type recording struct {
	path    string
	rate    int // index in Plan.Rates
	records []trace.Record
	scale   float64
}

// trace reads the file that a traceRateSpec names.
func (l *loader) trace(path string, spec *v1alpha1.TraceRateSpec, out *Rate) {
	path += ".traceRateSpec"
	if l.in.Open == nil {
		l.fail(path+".source", "cnsbench run hands its runner the file", "trace %q cannot be read here", spec.Source)
		return
	}
	f, err := l.in.Open(spec.Source)
	if err != nil {
		l.fail(path+".source", "the path counts from the Benchmark's file", "%v", err)
		return
	}
	defer func() { _ = f.Close() }() // read only: an error of Close loses no data
	sum := sha256.New()
	whole := io.TeeReader(f, sum)
	records, err := trace.Read(whole)
	if err == nil {
		_, err = io.Copy(io.Discard, whole) // the hash includes bytes after the end of the trace
	}
	if err != nil {
		l.fail(path+".source", "docs/format/trace.md describes the format", "%s: %v", spec.Source, err)
		return
	}
	scale := 1.0
	if spec.TimeScale != nil {
		scale = spec.TimeScale.Value
	}
	out.Schedule = schedule.Trace{} // filled in by replays
	out.Trace = &TraceFile{Name: spec.Source, SHA256: hex.EncodeToString(sum.Sum(nil)), Records: len(records)}
	l.recordings = append(l.recordings, recording{path, len(l.plan.Rates), records, scale})
}

// replays assigns each record of each trace to an action of its rate that can execute
// it.
func (l *loader) replays(order []*info) {
	for _, r := range l.recordings {
		out := &l.plan.Rates[r.rate]
		p := replay{out: out, made: map[string]int{}, there: map[string]*trace.Record{}, gone: map[string]bool{},
			left: map[string]int{}}
		for i, n := range order {
			if n.out.Rate == out.Name {
				p.actions = append(p.actions, candidate{i, n})
			}
		}
		if len(p.actions) == 0 {
			continue // unusedRates warns of it
		}
		due := schedule.Trace{}
		for i := range r.records {
			if at := &r.records[i]; p.record(at) {
				due = append(due, time.Duration(float64(at.Time)*r.scale))
			}
		}
		out.Schedule = due
		l.longTrace(r.path+".source", out, due)
		for _, what := range sortedKeys(p.left) {
			l.warn(r.path+".source", "", "%d of %d records are not replayed: %s", p.left[what], len(r.records), what)
		}
		if len(due) == 0 {
			l.fail(r.path+".source", "an action with this rateName for what the trace does",
				"the actions of the rate do nothing of what is in the trace")
		}
	}
}

// longTrace warns of a trace with operations that are due after the end of the run.
func (l *loader) longTrace(path string, out *Rate, due schedule.Trace) {
	left := 0
	for _, at := range due {
		if l.plan.Runtime > 0 && out.StartAfter+at >= l.plan.Runtime {
			left++
		}
	}
	if left > 0 {
		l.warn(path, "a longer spec.runtime, or a smaller timeScale", "%d of the trace's %d operations are due after the run's end, %v after the barrier", left, len(due), l.plan.Runtime)
	}
}

// replay is the state of the resolution of one trace.
type replay struct {
	out     *Rate
	actions []candidate
	made    map[string]int           // action that creates each existing object
	there   map[string]*trace.Record // objects that existed at the start of the trace
	gone    map[string]bool          // deleted objects
	left    map[string]int           // number of records that are not replayed, by reason
}

// candidate is an action of the rate, with its index in the plan.
type candidate struct {
	index int
	*info
}

// record appends the step for a record. It returns false if the record triggers
// nothing.
func (p *replay) record(r *trace.Record) bool {
	switch {
	case r.Op == trace.End:
		return false
	case r.Time < 0 || r.Op == trace.Exists:
		p.there[r.Key()] = r
		return false
	}
	s, reason := p.step(r)
	if reason != "" {
		p.left[reason]++
		return false
	}
	p.out.Steps = append(p.out.Steps, s)
	return true
}

// step returns the step for a record: the action and its objects. If the record cannot
// be replayed, it returns the reason.
func (p *replay) step(r *trace.Record) (s Step, reason string) {
	if !r.Op.Replayed() {
		return s, fmt.Sprintf("%s has no action of its own", r.Op)
	}
	on := r.Key()
	switch {
	case r.Op == trace.Create:
		on = ""
	case r.Op.Makes(): // the sources of the copy
		on = strings.Join(r.SourceKeys(), " ")
	}
	if p.gone[on] {
		return s, "they act on what was deleted before"
	}
	var ok bool
	if s.Action, ok = p.action(r, on); !ok {
		return s, fmt.Sprintf("no action of the rate does %s of a %s", r.Op, r.Kind)
	}
	if r.Op != trace.Create {
		if s.On = p.existing(on, r); s.On == "" {
			return s, "no action of the rate makes what they act on"
		}
	}
	if r.Op.Makes() {
		s.Makes = r.Key()
		p.made[s.Makes] = s.Action
		delete(p.gone, s.Makes)
	}
	if r.Op.Removes() {
		delete(p.made, s.On)
		p.gone[s.On] = true
	}
	return s, ""
}

// objectKinds maps the kinds of object in a trace to those of the engine.
var objectKinds = map[trace.Kind]engine.ObjectKind{
	trace.Volume: engine.VolumeObject, trace.Snapshots: engine.SnapshotObject, trace.Workload: engine.WorkloadObject,
}

// action chooses the action for a record among the actions of the rate with that kind.
// It prefers an action whose target is the action that created the object or, for a
// create, an action with the record's StorageClass. Otherwise it chooses the first.
func (p *replay) action(r *trace.Record, on string) (index int, ok bool) {
	maker, known := p.made[on]
	for _, c := range p.actions {
		n := c.info
		if string(n.kind) != string(r.Op) || n.does.fits != nil && !n.does.fits(n, r) {
			continue
		}
		if known && n.out.Target != nil && n.out.Target.Action == p.name(maker) || r.Op == trace.Create &&
			r.Class != "" && n.class() == r.Class {
			return c.index, true
		}
		if !ok {
			index, ok = c.index, true
		}
	}
	return index, ok
}

func (p *replay) name(index int) string {
	for _, c := range p.actions {
		if c.index == index {
			return c.out.Name
		}
	}
	return ""
}

// class returns the StorageClass of the first volume that an action creates, or an
// empty string.
func (n *info) class() string {
	if len(n.claims) == 0 {
		return ""
	}
	return className(&n.claims[0])
}

// existing ensures that an object exists when a record acts on it. For an object that
// existed before the trace began, it adds a step before the barrier. It returns the
// name of the object, or an empty string if no action creates it.
func (p *replay) existing(object string, by *trace.Record) string {
	if object == "" { // the trace does not name the source of a copy
		object = "source of " + by.Key()
	}
	if _, ok := p.made[object]; ok {
		return object
	}
	before, s := p.there[object], Step{Makes: object}
	if before == nil {
		before = &trace.Record{Op: trace.Create, Kind: trace.Volume}
		if k, name, ok := strings.Cut(object, "/"); ok && !strings.HasPrefix(object, "source of") {
			before.Kind, before.Object = trace.Kind(k), name
		}
	}
	made := *before
	switch made.Kind {
	case trace.Snapshots:
		made.Op = trace.Snapshot
		if s.On = p.existing(strings.Join(made.SourceKeys(), " "), &made); s.On == "" {
			return ""
		}
	default:
		made.Op = trace.Create
	}
	var ok bool
	if s.Action, ok = p.action(&made, s.On); !ok {
		return ""
	}
	p.out.Before = append(p.out.Before, s)
	p.made[object] = s.Action
	return object
}
