package loadgen

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
)

// Figures are those of one operation of a work, over its measured window.
type Figures struct {
	Op     int
	Name   string
	OK     int64 // succeeded
	Failed int64
	// Lost were due and never started, or had not ended when the work did.
	Lost     int64
	Bytes    int64 // moved by those that were OK
	Attempts int64
	Window   time.Duration
	Cell     *Cell // of those that were OK
	Failures []Failure
	Checks   []CheckFigures
	Steps    []StepFigures
}

// StepFigures are those of one kind of request of an operation in parts, in the measured window.
type StepFigures struct {
	Step       client.Step
	OK, Failed int64
	Cell       *Cell // of those that were OK
}

// Failure is a way in which operations failed.
type Failure struct {
	Label  string
	N      int64
	Detail string
}

// Figures by operation, in the order of the mix.
func (w *WorkResult) Figures() ([]Figures, error) {
	all := make([]Figures, len(w.Work.Ops))
	for i := range all {
		all[i] = Figures{Op: i, Name: w.Work.Ops[i].Name, Window: time.Duration(w.To - w.From), Cell: newCell()}
	}
	cells, err := w.Cells.whole()
	if err != nil {
		return nil, err
	}
	for k, c := range cells {
		if k.Ramp || !k.Whole() {
			continue
		}
		f := &all[k.Op]
		f.Attempts += c.Attempts
		switch {
		case k.Lost:
			f.Lost += c.N
		case k.OK:
			f.OK += c.N
			f.Bytes += c.Bytes
			if err := f.Cell.merge(c); err != nil {
				return nil, err
			}
		default:
			f.Failed += c.N
		}
		if !k.OK {
			f.Failures = append(f.Failures, Failure{k.Label, c.N, c.Detail})
		}
	}
	if err := w.steps(all); err != nil {
		return nil, err
	}
	for i := range all {
		if all[i].Checks, err = w.checksOf(i); err != nil {
			return nil, err
		}
		slices.SortFunc(all[i].Failures, func(a, b Failure) int {
			return cmp.Or(cmp.Compare(b.N, a.N),
				cmp.Compare(a.Label, b.Label))
		})
	}
	return all, nil
}

// steps adds the figures of the requests of operations in parts, in order of name.
func (w *WorkResult) steps(all []Figures) error {
	for _, k := range sortedKeys(w.Cells) {
		if k.Step == "" || k.Ramp || k.Lost {
			continue
		}
		f := &all[k.Op]
		i := slices.IndexFunc(f.Steps, func(s StepFigures) bool { return s.Step == k.Step })
		if i < 0 {
			i, f.Steps = len(f.Steps), append(f.Steps, StepFigures{Step: k.Step, Cell: newCell()})
		}
		s, c := &f.Steps[i], w.Cells[k]
		if !k.OK {
			s.Failed += c.N
			continue
		}
		s.OK += c.N
		if err := s.Cell.merge(c); err != nil {
			return err
		}
	}
	return nil
}

// crowded is by what part the throughput of a closed loop without a ramp is
// likely too high, at most 1: each worker begins an operation at the window's very
// start, so that it has about (1+CV²)/2 more in it than the window is mean times
// long (D. R. Cox, Renewal Theory, 1962, ch. 4), which is taken as 1. It is 0 where
// the loop was open, had a ramp, or ended by operations or bytes, for then the
// window ends with the last of them.
func (w *WorkResult) crowded() float64 {
	if w.Work.Kind != model.Normal || w.Work.Rate != nil || w.Work.RampUp > 0 || w.To >= w.Ended {
		return 0
	}
	_, all := w.Lost()
	more := int64(w.Work.Workers)
	if all <= 2*more {
		return 1
	}
	return float64(more) / float64(all-more)
}

// NoRamp is by how much the throughput of a loop without a ramp is likely too high; false below 1 %.
func (w *WorkResult) NoRamp() (evidence string, ok bool) {
	share := w.crowded()
	return fmt.Sprintf("its %d workers all began when its window did, so that its operations a second may be some "+
		"%.2g %% too high; give it a ramp-up, or a longer runtime", w.Work.Workers, 100*share), share >= 0.01
}

// Lost are the operations of the window that were due and never begun, or had
// not ended when the work did; all are those that were due in it.
func (w *WorkResult) Lost() (lost, all int64) {
	for k, c := range w.Cells {
		if k.Ramp || !k.Whole() {
			continue
		}
		all += c.N
		if k.Lost {
			lost += c.N
		}
	}
	return lost, all
}

// NoSuccess finds a work, or an operation of its mix, that had operations in its window but no success; false: each
// succeeded at least once. invalid: the work has no figures except of failures.
func (w *WorkResult) NoSuccess() (evidence string, invalid, ok bool) {
	all, good := make([]int64, len(w.Work.Ops)), make([]int64, len(w.Work.Ops))
	total, succeeded, worst, many := int64(0), int64(0), "", int64(0)
	cells, err := w.Cells.whole()
	if err != nil {
		cells = w.Cells // the counts are the same
	}
	for k, c := range cells {
		if k.Ramp || !k.Whole() {
			continue
		}
		all[k.Op] += c.N
		total += c.N
		if k.OK {
			good[k.Op] += c.N
			succeeded += c.N
		} else if c.N > many || c.N == many && k.Label < worst {
			worst, many = k.Label, c.N
		}
	}
	if total > 0 && succeeded == 0 {
		return fmt.Sprintf("none of %d operations succeeded; most often: %s", total, worst), true, true
	}
	var none []string
	for i, n := range all {
		if n > 0 && good[i] == 0 {
			none = append(none, fmt.Sprintf("none of %d %s", n, w.Work.Ops[i].Name))
		}
	}
	return strings.Join(none, ", ") + " succeeded", false, none != nil
}

// PerSecond of the operations that were OK.
func (f *Figures) PerSecond() float64 { return perSecond(float64(f.OK), f.Window) }

// Bandwidth in bytes a second, of the operations that were OK.
func (f *Figures) Bandwidth() float64 { return perSecond(float64(f.Bytes), f.Window) }

func perSecond(n float64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return n / d.Seconds()
}

// SuccessRatio is the share of due operations that succeeded: lost ones count as failed; false if none was due.
func (f *Figures) SuccessRatio() (float64, bool) {
	due := f.OK + f.Failed + f.Lost
	if due == 0 {
		return 0, false
	}
	return float64(f.OK) / float64(due), true
}

// Response is a quantile over the successful operations and the lost ones, which count as infinite; ok is false
// without any.
func (f *Figures) Response(q float64) (ns int64, infinite, ok bool) {
	n := f.Cell.Response.N()
	if n+f.Lost == 0 {
		return 0, false, false
	}
	rank := hist.Rank(q, n+f.Lost)
	if rank > n {
		return 0, true, true
	}
	ns, ok = f.Cell.Response.Quantile(float64(rank) / float64(n))
	return ns, false, ok
}
