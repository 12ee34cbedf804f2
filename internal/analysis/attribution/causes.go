package attribution

import (
	"cmp"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Kind is how a step comes to take longer than its ordinary time.
type Kind string

// The kinds.
const (
	Slow        Kind = "slow"        // each takes long; nothing shows that they wait for each other
	RateLimited Kind = "rateLimited" // waits end at even intervals while others wait
	OneAtATime  Kind = "oneAtATime"  // calls never overlap while others wait for one
	BusyMachine Kind = "busyMachine" // other processes compete for the machine's CPUs
)

// Busy is the component of a BusyMachine.
const Busy = "other processes on the machine"

// The rule by which a cause stands out, and the bounds of a Search.
const (
	// LeastShare is what the lower end of the 95 % interval of the share must reach; of a busy machine
	// leastBusyShare.
	LeastShare     = 0.25
	leastBusyShare = 0.5
	// LeastExcess is the least mean time per op that is looked at, in ns.
	LeastExcess = int64(50 * time.Millisecond)
	// LeastOps is the least number of ops for an interval.
	LeastOps = stats.MinSteps
	// maxCauses are listed of an action; maxOps of an action are kept.
	maxCauses = 3
	maxOps    = 20000
)

// Cause is a step of the ops of an action that takes longer than its ordinary time, or a busy machine.
type Cause struct {
	Component string `json:"component"`
	Step      string `json:"step,omitempty"` // the milestone at its end
	Kind      Kind   `json:"kind"`
	// MeanNs is the step's mean time per op, OrdinaryNs its ordinary time, ExcessNs the mean time per op beyond it.
	MeanNs     float64 `json:"meanNs"`
	OrdinaryNs int64   `json:"ordinaryNs"`
	ExcessNs   float64 `json:"excessNs"`
	// Share of the time of the ops that the excess is; of a busy machine, that was spent while others competed for
	// it. Low and High are the 95 % interval by the moving-block bootstrap over the ops in order of their start; nil
	// with fewer than LeastOps.
	Share float64  `json:"share"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
	N     int      `json:"n"` // ops
	// StandsOut: Low reaches LeastShare, or of a busy machine one half, and the excess 50 ms.
	StandsOut bool   `json:"standsOut"`
	Evidence  string `json:"evidence"`
}

// candidate is a cause with its part of the time of each op, in ns.
type candidate struct {
	Cause
	part []float64
}

// Machine is where an op takes place.
type Machine struct {
	// Busy returns the ns within an interval in which others competed for its CPUs.
	Busy func(from, to op.Time) int64
	// Who names them: "stress 1.9 of 2 CPUs"; empty: unknown.
	Who string
}

// Context is what is known of a run beside its ops. The zero value is: nothing.
type Context struct {
	OneMachine bool
	// ClosedLoop: an op starts when another has ended.
	ClosedLoop bool
	// MachineOf returns the machine of an op; nil where it is not known.
	MachineOf func(*op.Op) *Machine
	// Flags has the flags of controllers that limit rates, by program: "--kube-api-qps=5"; one text for each
	// process with other flags. A nil map: unknown.
	Flags map[string][]string
	// Seed of the intervals: the same seed gives the same.
	Seed uint64
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

type stepKey struct{ component, step string }

// waits are the times that ops spent in one step.
type waits struct {
	stepKey
	of []wait
}

type wait struct {
	op       int
	from, to op.Time
	busy     int64
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
	case Kubelet, KubeletOrDriver, Processes, Workload, WorkloadOrDriver, Engine:
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
	for i := range list {
		s.judge(&list[i])
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
	c.Evidence = s.evidence(w, &c.Cause, q)
	return c, moved
}

// judge sets the share of a cause with its interval, and whether it stands out.
func (s *Search) judge(c *candidate) {
	order := make([]int, len(s.starts))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(s.starts[a], s.starts[b]) })
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
