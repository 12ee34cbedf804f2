package terminal

import (
	"fmt"
	"io"

	"github.com/cnsbench/cnsbench/internal/analysis/opview"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/op"
)

// WriteOp writes one op with its spans and log lines.
func WriteOp(w io.Writer, v *opview.View, o Options) error {
	if o.Width == 0 {
		o.Width = 96
	}
	p := &printer{width: o.Width, color: o.Color}
	p.opHeader(&v.Op)
	p.opSpans(v)
	p.opLogs(v)
	return p.writeTo(w)
}

func (p *printer) opHeader(o *op.Op) {
	color := green
	if o.Outcome != op.OK {
		color = red
	}
	p.line(p.paint(bold, clean(fmt.Sprintf("op %d", o.ID))) + clean(fmt.Sprintf(" · %s/%d · %s of %s · ", o.Action,
		o.Instance, o.Kind, o.Target)) + p.paint(color, clean(string(o.Outcome))))
	if o.Code != "" || o.Message != "" {
		p.note(o.Code + ": " + o.Message)
	}
	if o.Node != "" {
		p.note("on node " + o.Node)
	}
	t := table{head: []string{"Instant", "at", "after intended", "±"}}
	add := func(name string, at op.Time, err int64) {
		if at.Known() {
			t.row(name, summary.Instant(at), ns(int64(at-o.Intended)), plusMinus(err))
		}
	}
	add("intended", o.Intended, 0)
	add("started", o.Started, 0)
	for _, m := range o.Milestones {
		add(m.Name, m.At, m.Err)
	}
	add("ended", o.Ended, 0)
	p.table(t)
}

func ns(v int64) string { return units.Duration(float64(v)) }

func plusMinus(err int64) string {
	if err == 0 {
		return ""
	}
	return ns(err)
}

func (p *printer) opSpans(v *opview.View) {
	if len(v.Spans) > 0 {
		t := table{head: []string{"Phase", "from", "at", "length", "±"}, left: map[int]bool{1: true}}
		for _, s := range v.Spans {
			name := s.Name
			if s.Volume != "" {
				name += " " + s.Volume
			}
			t.row(name, s.From, summary.Instant(s.At), ns(s.Ns), plusMinus(s.ErrorNs))
		}
		p.table(t)
	}
	if len(v.Components) > 0 {
		t := table{head: []string{"Component", "time", "share"}}
		for _, c := range v.Components {
			t.row(c.Component, units.Duration(c.MeanNs), fmt.Sprintf("%.0f %%", 100*c.Share))
		}
		p.table(t)
	}
}

func (p *printer) opLogs(v *opview.View) {
	if v.Logs == nil {
		p.title("Log")
		p.note("none: " + v.LogsMissing)
		return
	}
	l := v.Logs
	p.title(fmt.Sprintf("Log from %s to %s", summary.Instant(l.From), summary.Instant(l.To)))
	p.note(fmt.Sprintf("kept because: %s; n = %d ops of its action were ok, service time p50 %s, p95 %s", l.Why, l.N,
		ns(l.MedianNs), ns(l.P95Ns)))
	if len(l.Lines) == 0 {
		p.note("no line was written in this time, or no log could be read")
	} else {
		p.note("lines with > name an object of the op; others may be about other ops of the same time")
	}
	for _, x := range l.Lines {
		mark := " "
		if x.Named {
			mark = ">"
		}
		p.wrap(fmt.Sprintf("%s %8s  ", mark, summary.Instant(x.At)), x.Source+": "+x.Line)
	}
	for _, o := range l.Omitted {
		p.wrap("! ", fmt.Sprintf("%s: %d more lines (%s) had no room", o.Source, o.Lines,
			units.Bytes(float64(o.Bytes))))
	}
	for _, n := range v.LogNotes {
		p.wrap("! ", n)
	}
}
