package attribution

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// candidate is a cause with its part of the time of each op, in ns.
type candidate struct {
	Cause
	part []float64
}

// Search ranks the causes of the time of one action's ops. It keeps the first 20 000 of them. It is not safe for
// concurrent use.
type Search struct {
	Context

	starts    []op.Time // of each op
	totals    []float64
	steps     map[stepKey]*waits
	busy      []float64 // of each op, ns of node-side steps while others competed
	who       string
	formatted bool // mkfs was observed
	left      int
}

// Add adds an op. Ops that did not succeed are ignored: they have no path to an end.
func (s *Search) Add(o *op.Op) {
	if o.Outcome != op.OK || !o.Ended.Known() || !o.Intended.Known() {
		return
	}
	if len(s.totals) >= maxOps {
		s.left++
		return
	}
	if s.steps == nil {
		s.steps = map[stepKey]*waits{}
	}
	var machine *Machine
	if s.MachineOf != nil {
		machine = s.MachineOf(o)
	}
	i := len(s.totals)
	s.starts = append(s.starts, o.Intended)
	s.totals, s.busy = append(s.totals, float64(o.Ended-o.Intended)), append(s.busy, 0)
	for _, x := range Intervals(o) {
		if s.OneMachine {
			x.Component = onOneMachine(x.Component)
		}
		k := stepKey{x.Component, x.Step}
		if s.steps[k] == nil {
			s.steps[k] = &waits{stepKey: k}
		}
		w := wait{op: i, from: x.From, to: x.To}
		if machine != nil && s.onMachine(&x) {
			w.busy = machine.Busy(x.From, x.To)
			s.busy[i] += float64(w.busy)
			s.who = cmp.Or(s.who, machine.Who)
		}
		s.steps[k].of = append(s.steps[k].of, w)
		s.formatted = s.formatted || x.Component == Formatting
	}
}

// onMachine reports whether a step needs the CPUs of the op's machine. A call of the driver, or a part of one, that
// takes longer than its ordinary time may wait for anything.
func (s *Search) onMachine(x *Interval) bool {
	switch x.Component {
	case Kubelet, KubeletOrDriver, Processes, Workload, WorkloadOrDriver, Harness, HarnessOrDriver, Engine:
		return true
	case Runner, EndDetection: // on a cluster the runner may be on another machine
		return s.OneMachine
	case Driver, Formatting, Frozen:
		return s.OneMachine && x.Ns() <= ordinaryNs(x.Component)
	}
	return false
}

// Left counts the ops that were left out because there were too many.
func (s *Search) Left() int { return s.left }

// Causes returns at most three causes: those that stand out first, each group in order of the excess.
func (s *Search) Causes() []Cause {
	n := len(s.totals)
	if n == 0 {
		return nil
	}
	busy := candidate{Cause{Component: Busy, Kind: BusyMachine, N: n, Evidence: busyEvidence(s.who)}, s.busy}
	var list []candidate
	for _, w := range s.steps {
		if c, moved := s.cause(w); c.ExcessNs > 0 || moved > 0 {
			busy.ExcessNs += moved
			list = append(list, c)
		}
	}
	busy.MeanNs = mean(s.busy)
	slices.SortFunc(list, byExcess)
	list = slices.DeleteFunc(list[:min(len(list), maxCauses)], func(c candidate) bool { return !(c.ExcessNs > 0) })
	if busy.MeanNs > 0 {
		list = append(list, busy)
	}
	byStart := stats.Order(n, func(i int) int64 { return int64(s.starts[i]) })
	for i := range list {
		s.judge(&list[i], byStart)
	}
	slices.SortStableFunc(list, func(a, b candidate) int {
		if a.StandsOut != b.StandsOut {
			return map[bool]int{true: -1, false: 1}[a.StandsOut]
		}
		return byExcess(a, b)
	})
	var causes []Cause
	for _, c := range list[:min(len(list), maxCauses)] {
		causes = append(causes, c.Cause)
	}
	return causes
}

func byExcess(a, b candidate) int {
	return cmp.Or(cmp.Compare(b.ExcessNs, a.ExcessNs), cmp.Compare(a.Component, b.Component), cmp.Compare(a.Step, b.Step))
}

// cause compares a step with its ordinary time. The excess of a step that needs the CPUs of its machine is that of the
// busy machine as far as others competed for them; moved is its mean.
func (s *Search) cause(w *waits) (c candidate, moved float64) {
	q := w.queue(s.steps[stepKey{Driver, callEnd(w.step)}], s.ClosedLoop)
	c = candidate{Cause{Component: w.component, Step: w.step, Kind: q.kind, OrdinaryNs: ordinaryNs(w.component),
		N: len(s.totals)}, make([]float64, len(s.totals))}
	if q.kind != Slow {
		c.OrdinaryNs = min(c.OrdinaryNs, q.gap)
	}
	n := float64(len(s.totals))
	for _, x := range w.of {
		ns := float64(x.to - x.from)
		c.MeanNs += ns / n
		excess := max(0, ns-float64(c.OrdinaryNs))
		if w.component == Pause || ns == 0 { // a pause was asked for
			continue
		}
		to := 0.0
		if q.kind == Slow {
			to = excess * float64(x.busy) / ns
		}
		moved += to / n
		c.ExcessNs += (excess - to) / n
		c.part[x.op] += excess - to
	}
	c.Evidence = s.evidence(w, &c.Cause, q, s.formatted)
	return c, moved
}

// StandsOut says which cause stands out, with its evidence, or that none does, or why that is not known; empty
// without ops. causes are those of Causes.
func (s *Search) StandsOut(causes []Cause) string {
	n := len(s.totals)
	var text string
	switch {
	case n == 0:
		return ""
	case n < LeastOps:
		return fmt.Sprintf("too few ops to say what stands out (n = %d, want %d)", n,
			LeastOps)
	case len(causes) == 0 || !causes[0].StandsOut:
		text = "none stands out"
	default:
		text = causes[0].Sentence()
	}
	if s.left > 0 {
		text += fmt.Sprintf(" (of the first %d ops; %d more are left out)", n, s.left)
	}
	return text
}

// judge sets the share of a cause with its interval, and whether it stands out. order is that of the ops by their
// starts.
func (s *Search) judge(c *candidate, order []int32) {
	part, whole := make([]float64, len(order)), make([]float64, len(order))
	for i, at := range order {
		part[i], whole[i] = c.part[at], s.totals[at]
	}
	r, ok := stats.ShareOf(part, whole, s.Seed)
	if !ok {
		return
	}
	c.Share = r.Value
	if !r.Bounded() {
		return
	}
	c.Low, c.High = &r.Low, &r.High
	least, excess := LeastShare, c.ExcessNs
	if c.Kind == BusyMachine {
		least, excess = leastBusyShare, c.MeanNs
	}
	c.StandsOut = r.Low >= least && (c.Kind == BusyMachine || int64(excess) >= LeastExcess)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
