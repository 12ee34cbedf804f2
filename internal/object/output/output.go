// Package output writes what a run of an object workload came to into the bundle: as metrics, and as COSBench's CSV
// files.
package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Recorder writes a run into a bundle: COSBench's files for all hosts together, and the figures of each host as
// instances of its own. It is the loadgen.Observer of a run of this process, which is the only host then, and the
// coordinator.Observer of a run of several.
type Recorder struct {
	Writer *bundle.Writer
	Start  time.Time // of the run, for the clock in the CSV files
	// Tell receives lines for the terminal; nil: no output.
	Tell func(line string)
	// Hosts is the number of other hosts that do the work; 0: this process does.
	Hosts int

	hosts  []*host
	stages int    // that have begun
	sheet  *sheet // of this stage; nil: none is written
}

// host is one of the processes that do the work.
type host struct {
	*Recorder
	number int
	works  map[string]*recorded // by instance
}

// recorded is what is not yet written of the seconds of a work.
type recorded struct {
	slices loadgen.Slices
	last   *reported // the last second; nil: none
}

// reported sums up the reported seconds of a work: its rates times their ns, in loadgen's order.
type reported struct {
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

// Host is the observer of the i-th host.
func (r *Recorder) Host(i int) coordinator.HostObserver { return r.host(i) }

func (r *Recorder) host(i int) *host {
	for len(r.hosts) <= i {
		r.hosts = append(r.hosts, &host{r, len(r.hosts), map[string]*recorded{}})
	}
	return r.hosts[i]
}

// StageBegan begins the files of another stage; in this process its works begin too.
func (r *Recorder) StageBegan(s *model.Stage, at op.Time) {
	r.stages++
	r.sheet = newSheet(stageID(r.stages, Action(s.Name, s.Name))+".csv", s, max(1, r.Hosts))
	if r.Tell != nil {
		r.Tell(fmt.Sprintf("stage %s", s.Name))
	}
	if r.Hosts == 0 {
		r.host(0).Began(s, at, at, 0)
	}
}

// Second is what ended in about a second of a work of this process.
func (r *Recorder) Second(stage string, w *model.Work, from, to op.Time, cells loadgen.Cells) {
	r.host(0).Second(stage, w, from, to, cells, loadgen.UsageNow())
}

// StageEnded ends the files of a stage, writes the totals of this process, and reports failures.
func (r *Recorder) StageEnded(s *loadgen.StageResult) {
	r.csvRows(s.Ended, true)
	if r.Hosts == 0 {
		r.host(0).totals(s)
	}
	for i := range s.Works {
		for _, line := range s.Works[i].Routes {
			r.Writer.Log(s.Ended, "object", fmt.Sprintf("stage %s, work %s: %s", s.Name, s.Works[i].Work.Name, line))
		}
	}
	lines, err := problems(s)
	for _, e := range []error{s.Err, err} {
		if e != nil {
			r.Writer.Log(s.Ended, "object", fmt.Sprintf("stage %s: %v", s.Name, e))
		}
	}
	for _, line := range lines { // not into the bundle: what a server writes may contain a credential
		if r.Tell != nil {
			r.Tell(line)
		}
	}
}

// csvRows writes those rows of COSBench's file of the stage that can be; in the end all.
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

// labels are those of a work.
func (h *host) labels(stage, work string) bundle.Labels {
	return bundle.Labels{Instance: Instance(stage, work, h.number), Action: Action(stage, work)}
}

// driver is the process, as an instance of the bundle.
func (h *host) driver() string { return fmt.Sprintf("driver-%d", h.number) }

// Began notes the start of each work, ± err ns.
func (h *host) Began(s *model.Stage, intended, at op.Time, err int64) {
	h.sheet.begin(h.number, s.Works)
	for _, w := range s.Works {
		if w.Kind != model.Delay {
			h.Writer.Started(op.InstanceStart{Instance: Instance(s.Name, w.Name, h.number), Container: "workers",
				Intended: intended, At: at, Err: err})
		}
	}
}

// Second writes what ended in a second of a work, ramps too: the rows of COSBench's file, the series, and the
// distributions of an interval that it ends.
func (h *host) Second(stage string, w *model.Work, from, to op.Time, cells loadgen.Cells, u loadgen.Usage) {
	if err := h.sheet.add(h.number, w, from, to, cells); err != nil {
		h.Writer.Log(to, "object", err.Error())
	}
	h.csvRows(to, false)
	h.Writer.Sample(op.Sample{Instance: h.driver(), At: to, CPUNanos: int64(u.CPU), RSSBytes: u.RSS})
	labels := h.labels(stage, w.Name)
	work := h.works[labels.Instance]
	if work == nil {
		work = &recorded{}
		h.works[labels.Instance] = work
	}
	list, err := work.slices.Add(w, from, to, cells)
	if err != nil {
		h.Writer.Log(to, "object", err.Error())
	}
	h.histograms(labels, list, false)
	h.series(labels, work, from, to, loadgen.Rates(w, from, to, cells))
}

// series keeps the rates of a second until the next, to which it may not come alone.
func (h *host) series(labels bundle.Labels, work *recorded, from, to op.Time, rates []metric.Scalar) {
	if len(rates) == 0 {
		return // in no time
	}
	for i := range rates {
		rates[i].Value *= float64(to - from)
	}
	last := work.last
	if last == nil || to-from >= fragment || last.to != from {
		h.release(labels, work)
		work.last = &reported{from: from, to: to, sums: rates}
		return
	}
	last.to = to
	for i := range rates {
		last.sums[i].Value += rates[i].Value
	}
}

// release writes the second that is held.
func (h *host) release(labels bundle.Labels, work *recorded) {
	last := work.last
	if last == nil {
		return
	}
	work.last = nil
	for _, x := range last.sums {
		h.Writer.Series(bundle.Series{
			Labels: labels,
			Series: metric.Series{Metric: x.Metric, Unit: x.Unit, Step: int64(last.to - last.from),
				Points: []metric.Point{{At: last.from, Value: x.Value / float64(last.to-last.from)}}},
		})
	}
}

func (h *host) histograms(labels bundle.Labels, list []metric.Histogram, total bool) {
	for _, x := range list {
		h.Writer.Histogram(bundle.HistogramSlice{Labels: labels, Histogram: x, Total: total})
	}
}

// Idle ends the wait of COSBench's rows for this host.
func (h *host) Idle() { h.sheet.end(h.number) }

// Ended writes the totals of a stage, and what is missing of a lost host.
func (h *host) Ended(s *loadgen.HostResult) {
	h.totals(&s.StageResult)
	if s.Err != nil {
		h.Writer.Log(s.Ended, "object", fmt.Sprintf("stage %s: %v", s.Name, s.Err))
	}
	for _, m := range s.Missing {
		h.Writer.Log(s.Ended, "object", fmt.Sprintf("stage %s, host %s: %s", s.Name, s.Host, m))
	}
}

// totals writes the figures of a stage.
func (h *host) totals(s *loadgen.StageResult) {
	for i := range s.Works {
		w := &s.Works[i]
		labels := h.labels(s.Name, w.Work.Name)
		if work := h.works[labels.Instance]; work != nil {
			h.release(labels, work)
			h.histograms(labels, work.slices.End(w.Work), false)
			delete(h.works, labels.Instance)
		}
		m, err := w.Metrics()
		if err != nil {
			h.Writer.Log(w.Ended, "object", err.Error())
			continue
		}
		h.histograms(labels, m.Histograms, true)
		for _, x := range m.Scalars {
			h.Writer.Scalar(bundle.Scalar{Labels: labels, Scalar: x})
		}
		h.Writer.Ended(op.InstanceEnd{Instance: labels.Instance, At: w.Ended, OK: w.Err == nil,
			Containers: []op.ContainerEnd{{Name: "workers", Message: message(w.Err)}}})
	}
	if s.TokenRequests > 0 {
		h.Writer.Scalar(bundle.Scalar{
			Labels: bundle.Labels{Instance: h.driver(), Action: s.Name},
			Scalar: metric.Scalar{Metric: s.Name + loadgen.TokenRequests, Unit: metric.Count,
				Value: float64(s.TokenRequests)},
		})
	}
	if d, _, ok := s.CPUPerOp(); ok {
		h.Writer.Scalar(bundle.Scalar{
			Labels: bundle.Labels{Instance: h.driver(), Action: s.Name},
			Scalar: metric.Scalar{Metric: s.Name + ".cpuPerOp", Unit: metric.Nanoseconds, Value: float64(d)},
		})
	}
}

func message(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
