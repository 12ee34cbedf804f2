package cli

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/coordinator"
	oload "github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/object/output"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// objectProgress shows an object workload in progress, and passes all on to the recorder. It is the loadgen.Observer of
// a run of this process and the coordinator.Observer of a run of several hosts.
type objectProgress struct {
	*output.Recorder
	liveLine
	clock    op.Clock
	workload *model.Workload

	stage         *model.Stage // nil: none has begun
	began         op.Time      // of its works; of the stage, until their first second
	working       bool         // there was a first second
	ended, failed int64        // operations of the stage
	seconds       map[hostWork]second
}

// hostWork is a work on one host.
type hostWork struct {
	work string
	host int
}

// second is what ended in the last second of a hostWork.
type second struct {
	perSecond, bytes float64
	response         *hist.Histogram
}

// newObjectProgress starts the display on the standard error.
func newObjectProgress(s *streams, r *output.Recorder, w *model.Workload, clock op.Clock) *objectProgress {
	p := &objectProgress{Recorder: r, clock: clock, workload: w}
	p.start(s.err, p.lines)
	r.Tell = func(line string) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.line(line)
	}
	return p
}

// StageBegan implements loadgen.Observer and coordinator.Observer.
func (p *objectProgress) StageBegan(s *model.Stage, at op.Time) {
	p.mu.Lock()
	p.stage, p.began, p.working, p.ended, p.failed, p.seconds = s, at, false, 0, 0, map[hostWork]second{}
	p.mu.Unlock()
	p.Recorder.StageBegan(s, at)
}

// Second implements loadgen.Observer.
func (p *objectProgress) Second(stage string, w *model.Work, from, to op.Time, cells oload.Cells) {
	p.add(0, w, from, to, cells)
	p.Recorder.Second(stage, w, from, to, cells)
}

// Host implements coordinator.Observer.
func (p *objectProgress) Host(i int) coordinator.HostObserver {
	return &hostProgress{p.Recorder.Host(i), p, i}
}

// hostProgress is the observer of one host.
type hostProgress struct {
	coordinator.HostObserver
	shown *objectProgress
	host  int
}

// Second implements coordinator.HostObserver.
func (h *hostProgress) Second(stage string, w *model.Work, from, to op.Time, cells oload.Cells, u oload.Usage) {
	h.shown.add(h.host, w, from, to, cells)
	h.HostObserver.Second(stage, w, from, to, cells, u)
}

// add takes in what ended in a second of a host.
func (p *objectProgress) add(host int, w *model.Work, from, to op.Time, cells oload.Cells) {
	now := second{response: hist.New()}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.working {
		p.began, p.working = from, true
	}
	for k, c := range cells {
		switch {
		case !k.Whole() || k.Lost:
			continue
		case !k.OK:
			p.failed += c.N
		}
		p.ended += c.N
		if k.OK && to > from {
			now.perSecond += float64(c.N) / time.Duration(to-from).Seconds()
			now.bytes += float64(c.Bytes) / time.Duration(to-from).Seconds()
			_ = now.response.Merge(c.Response) // fails only beyond 2^63 values
		}
	}
	p.seconds[hostWork{w.Name, host}] = now
}

// lines is the live line, if there is one.
func (p *objectProgress) lines() []string {
	if line := p.status(); line != "" {
		return []string{line}
	}
	return nil
}

// status is the live line: the stage, how much of it is done, the last second, and failures.
func (p *objectProgress) status() string {
	if p.stage == nil {
		return ""
	}
	now := p.clock.Now()
	var b strings.Builder
	fmt.Fprintf(&b, "%8s  %s", fmt.Sprintf("%.1fs", time.Duration(now).Seconds()), p.stage.Name)
	i := slices.IndexFunc(p.workload.Stages, func(s model.Stage) bool { return s.Name == p.stage.Name })
	if n := len(p.workload.Stages); i >= 0 && n > 1 {
		fmt.Fprintf(&b, " (%d of %d)", i+1, n)
	}
	if !p.working {
		return b.String() + " begins"
	}
	last := second{response: hist.New()}
	for _, s := range p.seconds {
		last.perSecond, last.bytes = last.perSecond+s.perSecond, last.bytes+s.bytes
		_ = last.response.Merge(s.response)
	}
	b.WriteString(" " + p.extent(now, last.perSecond))
	fmt.Fprintf(&b, "%s ops/s", units.Count(last.perSecond))
	if last.bytes > 0 {
		b.WriteString(", " + units.Bandwidth(last.bytes))
	}
	if p50, ok := last.response.Quantile(0.5); ok {
		fmt.Fprintf(&b, ", p50 %s", units.Duration(float64(p50)))
		if p99, ok := last.response.Quantile(0.99); ok && last.response.N() >= stats.MinN(0.99) {
			fmt.Fprintf(&b, ", p99 %s", units.Duration(float64(p99)))
		} else {
			fmt.Fprintf(&b, ", max %s", units.Duration(float64(last.response.Max())))
		}
	}
	fmt.Fprintf(&b, "  %d ended", p.ended)
	if p.failed > 0 {
		fmt.Fprintf(&b, ", %d failed", p.failed)
	}
	return b.String()
}

// extent is how much of the stage is done: by its time, else by its operations; empty if it has no known end.
func (p *objectProgress) extent(now op.Time, perSecond float64) string {
	whole, ops := extentOf(p.stage)
	switch over := time.Duration(now - p.began); {
	case whole > 0:
		return p.done(over, whole) + "  "
	case ops > 0:
		text := fmt.Sprintf("%d of %d ops", p.ended, ops)
		if perSecond > 0 {
			text += fmt.Sprintf(", about %v left",
				time.Duration(float64(max(0, ops-p.ended))/perSecond*float64(time.Second)).Round(time.Second))
		}
		return text + "  "
	}
	return " "
}

// extentOf returns the length of a stage whose works all end by time, or else the operations of one whose works all end
// by their number.
func extentOf(s *model.Stage) (whole time.Duration, ops int64) {
	timed, counted := true, true
	for i := range s.Works {
		w := &s.Works[i]
		if w.Kind == model.Delay {
			continue
		}
		_, _, end := w.Windows()
		whole, timed = max(whole, end), timed && end > 0
		switch {
		case w.Special():
			for k := range w.Workers {
				ops += w.Ops[0].Items(w.FirstWorker+k, w.AllWorkers())
			}
		default:
			ops, counted = ops+w.TotalOps, counted && w.TotalOps > 0
		}
	}
	switch {
	case timed:
		return whole, 0
	case counted:
		return 0, ops
	}
	return 0, 0
}
