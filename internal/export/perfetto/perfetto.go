// Package perfetto writes a bundle as Chrome trace events (JSON), which ui.perfetto.dev and
// chrome://tracing read. docs/reference/export.md describes the tracks.
//
// Ops are streamed: memory grows with the ops in progress at once, not with their number.
package perfetto

import (
	"fmt"
	"io"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/export/timeline"
	"github.com/cnsbench/cnsbench/internal/op"
)

// maxTracks is the number of targets of an action up to which each has its own track.
const maxTracks = 64

// about is what the trace says about the run. Wall-clock time is that of instant 0.
type about struct {
	RunID   string `json:"runID"`
	Name    string `json:"name"`
	Engine  string `json:"engine"`
	State   string `json:"state"`
	Started string `json:"started"`
	// ZeroNs is the instant of the run that the trace has as time 0: negative if something was
	// recorded before the run's start.
	ZeroNs  int64  `json:"zero_ns"`
	Version string `json:"cnsbench,omitempty"`
}

// export is one bundle on its way to a trace.
type export struct {
	data   *dataset.Data
	survey *survey
	to     *writer
	tracks *tracks
}

// Write writes the trace of a bundle. The error is that of reading the bundle or of w.
func Write(w io.Writer, b *bundle.Bundle) error {
	d, err := dataset.Read(b)
	if err != nil {
		return fmt.Errorf("read %s: %w", b.Dir, err)
	}
	s, err := look(d)
	if err != nil {
		return fmt.Errorf("read %s: %w", b.Dir, err)
	}
	r := &b.Run
	to := newWriter(w, s.first, about{RunID: r.ID, Name: r.Name, Engine: r.Engine, State: string(r.State),
		Started: r.Clock.Start.UTC().Format("2006-01-02T15:04:05.999999999Z"), ZeroNs: int64(s.first),
		Version: r.Versions["cnsbench"]})
	x := &export{data: d, survey: s, to: to, tracks: newTracks(to)}
	x.run()
	if err := x.workloads(); err != nil {
		return fmt.Errorf("read %s: %w", b.Dir, err)
	}
	x.stalls()
	if err := x.ops(); err != nil {
		return fmt.Errorf("read %s: %w", b.Dir, err)
	}
	return to.close()
}

// run writes the run itself and its barrier.
func (x *export) run() {
	p := x.tracks.process("run " + x.data.Bundle.Run.Name)
	g := p.group("run")
	whole := slice{name: x.data.Bundle.Run.Name, cat: "run", to: x.survey.end}
	if at := x.data.Barrier(); at.Known() && 0 <= at && at <= x.survey.end {
		whole.addInstant(slice{name: "barrier", cat: "run", from: at, to: at, instant: true})
	}
	whole.write(x.to, p.pid, g.row(g.lane(whole.from, whole.to), 0))
}

// ops writes all ops.
func (x *export) ops() error {
	for o, err := range x.data.Bundle.Ops() {
		if err != nil {
			return err
		}
		x.op(&o)
		if x.to.err != nil {
			return x.to.err
		}
	}
	return nil
}

func (x *export) op(o *op.Op) {
	p := x.tracks.process("action " + o.Action)
	if !o.Started.Known() {
		at := o.Intended
		if !at.Known() {
			at = max(0, o.Ended)
		}
		never := slice{name: o.Action, cat: catOp, from: at, to: at, args: argsOf(o), instant: true}
		never.write(x.to, p.pid, p.group("never started").only())
		return
	}
	name := o.Target
	if name == "" || x.survey.targets[o.Action] == nil {
		name = o.Action
	}
	g := p.group(name)
	r := drawn(o, x.survey.end)
	l := g.lane(r.extent())
	r.op.write(x.to, p.pid, g.row(l, 0))
	for i, row := range r.more {
		for k := range row {
			row[k].write(x.to, p.pid, g.row(l, i+1))
		}
	}
}

// workloads writes the instances and what was measured of them over time.
func (x *export) workloads() error {
	for _, i := range x.data.Instances {
		x.instance(&i)
	}
	lines, err := timeline.Of(x.data, x.data.Bundle.Samples())
	for _, l := range lines {
		action := l.Action
		if action == "" {
			action = dataset.ActionOf(l.Instance)
		}
		x.counter(x.tracks.process("workload "+action), &l)
	}
	return err
}

// instance writes an instance from its first start to its end, with its phases.
func (x *export) instance(i *bundle.Instance) {
	from := op.Never
	for _, s := range i.Starts {
		if s.At.Known() && (!from.Known() || s.At < from) {
			from = s.At
		}
	}
	if !from.Known() {
		return
	}
	s := slice{name: i.Name, cat: catWorkload, from: from, to: max(from, x.survey.end)}
	if i.End != nil && i.End.At.Known() {
		s.to = max(from, i.End.At)
		s.args = map[string]any{"ok": i.End.OK}
	}
	action := dataset.ActionOf(i.Name)
	for k := range x.data.Phases(action) {
		if a, b, ok := x.data.PhaseSpan(i.Name, k+1); ok {
			c := slice{name: fmt.Sprintf("phase %d", k+1), cat: catWorkload, from: a, to: min(b, s.to)}
			if c.from <= c.to && s.fits(&c) {
				s.children = append(s.children, c)
			}
		}
	}
	p := x.tracks.process("workload " + action)
	g := p.group(i.Name)
	s.write(x.to, p.pid, g.row(g.lane(s.from, s.to), 0))
}

// counter writes a line as a counter. Where the line has no point the counter is 0.
func (x *export) counter(p *process, l *timeline.Line) {
	name := l.Instance + " " + l.Metric
	if l.Source == timeline.Sampled {
		name += " (sampled)"
	}
	if l.Phase > 0 {
		name += fmt.Sprintf(" phase %d", l.Phase)
	}
	unit := l.Unit
	if unit == "" {
		unit = "value"
	}
	set := func(at op.Time, v float64) {
		x.to.write(event{Ph: phCounter, Pid: p.pid, At: at, Name: name, Args: map[string]float64{unit: v}})
	}
	for i, at := range l.Points {
		set(at.At, at.Value)
		last := i+1 == len(l.Points)
		if at.Step > 0 && (last || l.Points[i+1].At > at.End()) {
			set(at.End(), 0)
		}
	}
}

// stallArgs are the arguments of a stall.
type stallArgs struct {
	Direction string `json:"direction"`
	Source    string `json:"source"`
	LengthNs  int64  `json:"length_ns"`
	ErrorNs   int64  `json:"error_ns"`
	Unended   bool   `json:"unended,omitempty"` // it was never seen to end
	During    string `json:"during"`            // the ops that it coincides with
}

// stalls writes the stalls on the tracks of their volumes.
func (x *export) stalls() {
	for _, s := range x.survey.periods.Stalls(x.survey.windows) {
		p := x.tracks.process("workload " + dataset.ActionOf(s.Instance))
		name := s.Volume
		if name == "" {
			name = s.Instance + " I/O"
		}
		g := p.group(name)
		c := slice{name: "stall", cat: catStall, from: s.From, to: s.To, args: &stallArgs{s.Direction, s.Source,
			s.LengthNs, s.ErrorNs, !s.To.Known(), s.Named()}}
		if s.Source == "workload" { // its time slice is known, its place in that is not
			c.name = "stall within"
		}
		if !s.To.Known() {
			c.to = max(s.From, x.survey.end)
		}
		c.write(x.to, p.pid, g.row(g.lane(c.from, c.to), 0))
	}
	x.survey.windows = nil
}
