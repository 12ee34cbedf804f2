package cli

import (
	"fmt"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/units"
	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/run"
)

// liveWindow is the time that rates on a terminal are taken over.
const liveWindow = op.Time(5 * time.Second)

// liveFigures are what a terminal shows of a run in progress: counts, rates and service times of each action, and the
// I/O of the workloads. They are for watching: the report computes its own. The zero value is ready.
type liveFigures struct {
	order       []string // actions, in the order in which their first ops ended
	actions     map[string]*liveAction
	counters    map[string]op.Sample // the last of each instance
	read, write int64                // bytes of all instances since the start
	canary      int64                // the longest I/O of canaries since the last tick, in ns
	ticks       []liveTick           // of the last liveWindow, and the one before them
}

type liveAction struct {
	ended, failed int64
	service       *hist.Histogram // of ops that succeeded
}

// liveTick holds the counts of an instant.
type liveTick struct {
	at          op.Time
	ended       map[string]int64
	read, write int64
	canary      int64
}

// ended counts an op.
func (f *liveFigures) ended(o *op.Op) {
	a := f.actions[o.Action]
	if a == nil {
		if f.actions == nil {
			f.actions = map[string]*liveAction{}
		}
		a = &liveAction{service: hist.New()}
		f.actions[o.Action], f.order = a, append(f.order, o.Action)
	}
	a.ended++
	if d, ok := o.Service(); ok && o.Outcome == op.OK {
		_ = a.service.Record(d) // fails only beyond 2^63 values
	} else {
		a.failed++
	}
}

// sample counts what an instance's processes read and wrote. Counters of a replaced instance begin again.
func (f *liveFigures) sample(s op.Sample) {
	before := f.counters[s.Instance]
	if f.counters == nil {
		f.counters = map[string]op.Sample{}
	}
	f.counters[s.Instance] = s
	f.read += max(0, s.ReadBytes-before.ReadBytes)
	f.write += max(0, s.WriteBytes-before.WriteBytes)
}

// lines are the figures of now, as aligned lines.
func (f *liveFigures) lines(now op.Time) []string {
	tick := liveTick{at: now, ended: map[string]int64{}, read: f.read, write: f.write, canary: f.canary}
	f.canary = 0
	for name, a := range f.actions {
		tick.ended[name] = a.ended
	}
	f.ticks = append(f.ticks, tick)
	for len(f.ticks) > 2 && f.ticks[1].at <= now-liveWindow {
		f.ticks = f.ticks[1:]
	}
	first := &f.ticks[0]
	seconds := time.Duration(now - first.at).Seconds()
	if seconds <= 0 {
		return nil
	}
	width := len("I/O")
	for _, name := range f.order {
		width = max(width, len(name))
	}
	var lines []string
	for _, name := range f.order {
		a := f.actions[name]
		line := fmt.Sprintf("  %-*s  %6d ok", width, name, a.ended-a.failed)
		if a.failed > 0 {
			line += fmt.Sprintf(", %d not", a.failed)
		}
		line += fmt.Sprintf("  %s/s", units.Count(float64(a.ended-first.ended[name])/seconds))
		if p50, ok := a.service.Quantile(0.5); ok {
			line += fmt.Sprintf("  median %s, max %s", units.Duration(float64(p50)), units.Duration(float64(a.service.Max())))
		}
		lines = append(lines, line)
	}
	if f.read+f.write > 0 {
		line := fmt.Sprintf("  %-*s  read %s, write %s", width, "I/O", units.Bandwidth(float64(f.read-first.read)/seconds),
			units.Bandwidth(float64(f.write-first.write)/seconds))
		longest := int64(0)
		for _, t := range f.ticks {
			longest = max(longest, t.canary)
		}
		if longest > 0 {
			line += fmt.Sprintf("; canary max %s", units.Duration(float64(longest)))
		}
		lines = append(lines, line)
	}
	return lines
}

// displayed passes the samples and canary I/Os of a run to the display, too. The other records pass through.
type displayed struct {
	run.Recorder
	progress *progress
}

// Sample implements run.Recorder.
func (s *displayed) Sample(x op.Sample) {
	s.Recorder.Sample(x)
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	s.progress.figures.sample(x)
}

// Canary implements run.Recorder.
func (s *displayed) Canary(instance, volume string, ios []op.CanaryIO) {
	s.Recorder.Canary(instance, volume, ios)
	longest := int64(0)
	for i := range ios {
		if ios[i].Ended.Known() {
			longest = max(longest, int64(ios[i].Ended-ios[i].Intended))
		}
	}
	s.progress.mu.Lock()
	defer s.progress.mu.Unlock()
	s.progress.figures.canary = max(s.progress.figures.canary, longest)
}
