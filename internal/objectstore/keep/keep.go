// Package keep writes what a run of an object workload came to: into the
// bundle, as COSBench's CSV files, and for people.
package keep

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/objectstore/load"
	"github.com/cnsbench/cnsbench/internal/objectstore/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/record"
)

// Recorder writes a run into a bundle while it goes on. It is load's Observer.
type Recorder struct {
	Writer *record.Writer
	Start  time.Time // of the run, for the clock in the CSV files
	// Tell is given lines for people; nil: nobody.
	Tell func(line string)

	host   int            // whose figures these are
	stages int            // that have begun
	rows   map[string]int // by work, of this stage's CSV files
}

// Instance is the name of a work in the bundle, as the host of that number (from
// 0) carries it out; without other hosts this program is the only one.
func Instance(stage, work string, host int) string {
	return fmt.Sprintf("%s-%d", Action(stage, work), host)
}

// Action is the name of a work in the bundle.
func Action(stage, work string) string {
	name := stage
	if work != stage {
		name += "." + work
	}
	return strings.Map(func(r rune) rune {
		if r == '/' || r == ' ' || r < ' ' {
			return '_'
		}
		return r
	}, name)
}

// driver is the process of a host, as an instance of the bundle.
func (r *Recorder) driver() string { return fmt.Sprintf("driver-%d", r.host) }

// StageBegan notes the start of each work.
func (r *Recorder) StageBegan(s *model.Stage, at op.Time) {
	r.next(s)
	for _, w := range s.Works {
		if w.Kind != model.Delay {
			r.Writer.Started(op.InstanceStart{Instance: Instance(s.Name, w.Name, r.host), Container: "workers", Intended: at, At: at})
		}
	}
}

// next begins another stage.
func (r *Recorder) next(s *model.Stage) {
	r.stages++
	r.rows = map[string]int{}
	if r.Tell != nil {
		r.Tell(fmt.Sprintf("stage %s", s.Name))
	}
}

// Second writes the series: what ended in each second, ramps too.
func (r *Recorder) Second(stage string, w *model.Work, from, to op.Time, cells load.Cells) {
	r.csvRow(stage, w, from, to, cells)
	r.second(stage, w, from, to, cells, load.UsageNow())
}

func (r *Recorder) second(stage string, w *model.Work, from, to op.Time, cells load.Cells, u load.Usage) {
	r.Writer.Sample(op.Sample{Instance: r.driver(), At: to, CPUNanos: int64(u.CPU), RSSBytes: u.RSS})
	span := time.Duration(to - from).Seconds()
	if span <= 0 {
		return
	}
	type sums struct{ ok, failed, bytes int64 }
	of := make([]sums, len(w.Ops))
	for k, c := range cells {
		if k.Check != "" {
			continue
		}
		s := &of[k.Op]
		switch {
		case k.OK:
			s.ok, s.bytes = s.ok+c.N, s.bytes+c.Bytes
		default:
			s.failed += c.N
		}
	}
	for i, s := range of {
		for _, m := range []struct {
			name, unit string
			value      int64
		}{{".iops", "1/s", s.ok}, {".bandwidth", "B/s", s.bytes}, {".failed", "1/s", s.failed}} {
			r.Writer.Series(record.Series{Instance: Instance(stage, w.Name, r.host), Action: Action(stage, w.Name), Metric: w.Ops[i].Name + m.name, Unit: m.unit,
				Step: int64(to - from), Points: []record.Point{{At: from, Value: float64(m.value) / span}}})
		}
	}
}

// csvRow appends to COSBench's file of the stage; further works of a stage have
// files of their own.
func (r *Recorder) csvRow(stage string, w *model.Work, from, to op.Time, cells load.Cells) {
	second := load.WorkResult{Work: w, From: from, To: to, Cells: cells}
	figures, err := second.Figures()
	if err != nil {
		r.Writer.Log(to, "object", err.Error())
		return
	}
	r.rows[w.Name]++
	rows := [][]string{stageRow(figures, r.Start.Add(time.Duration(to)), r.rows[w.Name])}
	if r.rows[w.Name] == 1 {
		rows = append(stageHeader(w), rows...)
	}
	if err := r.Writer.Raw("cosbench", "csv", fmt.Sprintf("s%d-%s.csv", r.stages, Action(stage, w.Name)), csvText(rows...)); err != nil {
		r.Writer.Log(to, "object", err.Error())
	}
}

// Interval writes the histograms of responses of an interval.
func (r *Recorder) Interval(stage string, w *model.Work, from, to op.Time, cells load.Cells) {
	for _, k := range keys(cells) {
		if c := cells[k]; k.OK && !k.Ramp && k.Check == "" && c.Response.N() > 0 {
			r.histogram(stage, w, w.Ops[k.Op].Name, "response", c.Response, from, to, false)
		}
	}
}

func (r *Recorder) histogram(stage string, w *model.Work, metric, basis string, h *hist.Histogram, from, to op.Time, total bool) {
	r.Writer.Histogram(record.HistogramSlice{Instance: Instance(stage, w.Name, r.host), Action: Action(stage, w.Name), Metric: metric, Unit: "ns", Basis: basis,
		From: from, To: to, Total: total, Hist: h})
}

// keys in an order that does not change.
func keys(cells load.Cells) []load.Key {
	list := make([]load.Key, 0, len(cells))
	for k := range cells {
		list = append(list, k)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.Op != b.Op {
			return a.Op < b.Op
		}
		return a.Label < b.Label || a.Label == b.Label && !a.Ramp && b.Ramp
	})
	return list
}

// StageEnded writes the totals.
func (r *Recorder) StageEnded(s *load.StageResult) {
	for i := range s.Works {
		w := &s.Works[i]
		figures, err := w.Figures()
		if err != nil {
			r.Writer.Log(w.Ended, "object", err.Error())
			continue
		}
		for _, f := range figures {
			r.totals(s.Name, w, &f)
		}
		for _, k := range keys(w.Cells) {
			if c := w.Cells[k]; !k.OK && !k.Ramp && k.Check == "" && c.Response.N() > 0 {
				r.histogram(s.Name, w.Work, w.Work.Ops[k.Op].Name+"!"+k.Label, "response", c.Response, w.From, w.To, true)
			}
		}
		r.Writer.Ended(op.InstanceEnd{Instance: Instance(s.Name, w.Work.Name, r.host), At: w.Ended, OK: w.Err == nil,
			Containers: []op.ContainerEnd{{Name: "workers", Message: message(w.Err)}}})
	}
	if d, _, ok := s.CPUPerOp(); ok {
		r.Writer.Scalar(record.Scalar{Instance: r.driver(), Action: s.Name, Metric: s.Name + ".cpuPerOp", Unit: "ns", Value: float64(d)})
	}
	if s.Err != nil {
		r.Writer.Log(s.Ended, "object", fmt.Sprintf("stage %s: %v", s.Name, s.Err))
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// totals of one operation: the response under its own name, for it is what is
// shown first, the phases beside it.
func (r *Recorder) totals(stage string, w *load.WorkResult, f *load.Figures) {
	c := f.Cell
	for _, h := range []struct {
		suffix, basis string
		h             *hist.Histogram
	}{{"", "response", c.Response}, {".service", "service", c.Service}, {".connect", "connect", c.Connect}, {".firstByte", "firstByte", c.First},
		{".drain", "drain", c.Drain}, {".late", "late", c.Late}} {
		if h.h.N() > 0 {
			r.histogram(stage, w.Work, f.Name+h.suffix, h.basis, h.h, w.From, w.To, true)
		}
	}
	scalar := func(suffix, unit string, v float64) {
		r.Writer.Scalar(record.Scalar{Instance: Instance(stage, w.Work.Name, r.host), Action: Action(stage, w.Work.Name), Metric: f.Name + suffix, Unit: unit, Value: v})
	}
	scalar(".iops", "1/s", f.PerSecond())
	scalar(".bandwidth", "B/s", f.Bandwidth())
	scalar(".ok", "", float64(f.OK))
	scalar(".failed", "", float64(f.Failed))
	scalar(".lost", "", float64(f.Lost))
	scalar(".bytes", "B", float64(f.Bytes))
	scalar(".attempts", "", float64(f.Attempts))
	if ratio, ok := f.SuccessRatio(); ok {
		scalar(".successRatio", "", ratio)
	}
	for i := range f.Checks {
		c := &f.Checks[i]
		name := "." + string(c.Check)
		scalar(name+".checks", "", float64(c.Done))
		scalar(name+".violations", "", float64(c.Violated()))
		scalar(name+".unanswered", "", float64(c.Unanswered))
		scalar(name+".skipped", "", float64(c.Skipped))
		for _, v := range c.Violations {
			scalar(name+"."+v.Kind, "", float64(v.N))
			scalar(name+"."+v.Kind+".lasting", "", float64(v.Lasting))
			if v.Until.N() > 0 {
				r.histogram(stage, w.Work, f.Name+name+"."+v.Kind, "consistent", v.Until, w.Began, w.Ended, true)
			}
		}
	}
}
