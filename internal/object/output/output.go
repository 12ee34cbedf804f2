// Package output writes what a run of an object workload came to: into the
// bundle, as COSBench's CSV files, and for people.
package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Recorder is the loadgen.Observer that writes a run into a bundle.
type Recorder struct {
	Writer *bundle.Writer
	Start  time.Time // of the run, for the clock in the CSV files
	// Tell receives lines for the terminal; nil: no output.
	Tell func(line string)

	host   int              // the host of these figures
	stages int              // that have begun
	sheet  *sheet           // of this stage; nil: none is written
	held   map[string]*told // the last second of each work's instance, which is not written yet
}

// told sums up the reported seconds of a work: its rates times their ns, in loadgen's order.
type told struct {
	action   string
	from, to op.Time
	sums     []metric.Scalar
}

// fragment is what is too short to be a second of its own: what a work does after
// its last whole one is part of that.
const fragment = op.Time(time.Second / 2)

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
			r.Writer.Started(op.InstanceStart{Instance: Instance(s.Name, w.Name, r.host), Container: "workers",
				Intended: at, At: at})
		}
	}
}

// next begins another stage.
func (r *Recorder) next(s *model.Stage) {
	r.stages++
	r.sheet = newSheet(stageID(r.stages, Action(s.Name, s.Name))+".csv", s)
	if r.Tell != nil {
		r.Tell(fmt.Sprintf("stage %s", s.Name))
	}
}

// Second writes the series: what ended in each second, ramps too.
func (r *Recorder) Second(stage string, w *model.Work, from, to op.Time, cells loadgen.Cells) {
	r.csvRow(w, from, to, cells)
	r.second(stage, w, from, to, cells, loadgen.UsageNow())
}

func (r *Recorder) second(stage string, w *model.Work, from, to op.Time, cells loadgen.Cells, u loadgen.Usage) {
	r.Writer.Sample(op.Sample{Instance: r.driver(), At: to, CPUNanos: int64(u.CPU), RSSBytes: u.RSS})
	instance, rates := Instance(stage, w.Name, r.host), loadgen.Rates(w, from, to, cells)
	if len(rates) == 0 {
		return // in no time
	}
	for i := range rates {
		rates[i].Value *= float64(to - from)
	}
	last := r.held[instance]
	if last == nil || to-from >= fragment || last.to != from {
		r.release(instance)
		if r.held == nil {
			r.held = map[string]*told{}
		}
		r.held[instance] = &told{action: Action(stage, w.Name), from: from, to: to, sums: rates}
		return
	}
	last.to = to
	for i := range rates {
		last.sums[i].Value += rates[i].Value
	}
}

// release writes the second that is held of an instance.
func (r *Recorder) release(instance string) {
	last := r.held[instance]
	if last == nil {
		return
	}
	delete(r.held, instance)
	for _, x := range last.sums {
		r.Writer.Series(bundle.Series{
			Labels: bundle.Labels{Instance: instance, Action: last.action},
			Series: metric.Series{Metric: x.Metric, Unit: x.Unit, Step: int64(last.to - last.from),
				Points: []metric.Point{{At: last.from, Value: x.Value / float64(last.to-last.from)}}},
		})
	}
}

// csvRow adds to COSBench's file of the stage.
func (r *Recorder) csvRow(w *model.Work, from, to op.Time, cells loadgen.Cells) {
	if err := r.sheet.add(w, from, to, cells); err != nil {
		r.Writer.Log(to, "object", err.Error())
	}
	r.csvRows(to, false)
}

// csvRows writes those rows of it that can be; in the end all.
func (r *Recorder) csvRows(at op.Time, end bool) {
	if r.sheet == nil {
		return
	}
	rows, err := r.sheet.take(r.Start, end)
	if err == nil && len(rows) > 0 {
		err = r.Writer.Raw("cosbench", "csv", r.sheet.file, csvText(rows...))
	}
	if err != nil {
		r.Writer.Log(at, "object", err.Error())
	}
}

// Interval writes the histograms of responses of an interval.
func (r *Recorder) Interval(stage string, w *model.Work, from, to op.Time, cells loadgen.Cells) {
	for _, h := range loadgen.Responses(w, from, to, cells) {
		r.histogram(stage, w, h, false)
	}
}

func (r *Recorder) histogram(stage string, w *model.Work, h metric.Histogram, total bool) {
	r.Writer.Histogram(bundle.HistogramSlice{
		Labels:    bundle.Labels{Instance: Instance(stage, w.Name, r.host), Action: Action(stage, w.Name)},
		Histogram: h,
		Total:     total,
	})
}

// StageEnded writes the totals.
func (r *Recorder) StageEnded(s *loadgen.StageResult) {
	r.csvRows(s.Ended, true)
	for i := range s.Works {
		w := &s.Works[i]
		r.release(Instance(s.Name, w.Work.Name, r.host))
		m, err := w.Metrics()
		if err != nil {
			r.Writer.Log(w.Ended, "object", err.Error())
			continue
		}
		for _, h := range m.Histograms {
			r.histogram(s.Name, w.Work, h, true)
		}
		for _, x := range m.Scalars {
			r.Writer.Scalar(bundle.Scalar{
				Labels: bundle.Labels{Instance: Instance(s.Name, w.Work.Name, r.host),
					Action: Action(s.Name, w.Work.Name)},
				Scalar: x,
			})
		}
		r.Writer.Ended(op.InstanceEnd{Instance: Instance(s.Name, w.Work.Name, r.host), At: w.Ended, OK: w.Err == nil,
			Containers: []op.ContainerEnd{{Name: "workers", Message: message(w.Err)}}})
	}
	if d, _, ok := s.CPUPerOp(); ok {
		r.Writer.Scalar(bundle.Scalar{
			Labels: bundle.Labels{Instance: r.driver(), Action: s.Name},
			Scalar: metric.Scalar{Metric: s.Name + ".cpuPerOp", Unit: metric.Nanoseconds, Value: float64(d)},
		})
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
