package perfetto

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Categories of events.
const (
	catOp        = "op"
	catLatency   = "latency" // the parts of a response time
	catMilestone = "milestone"
	catStall     = "stall"
	catWorkload  = "workload"
)

// opArgs are the arguments of an op. Instants are in ns since the run's start, absent where
// unknown.
type opArgs struct {
	Op         int64      `json:"op"`
	Episode    int64      `json:"episode"`
	Instance   int        `json:"instance"`
	Kind       op.Kind    `json:"kind"`
	Target     string     `json:"target,omitempty"`
	Object     string     `json:"object,omitempty"`
	Node       string     `json:"node,omitempty"`
	Outcome    op.Outcome `json:"outcome"`
	Code       string     `json:"code,omitempty"`
	Message    string     `json:"message,omitempty"`
	Attempts   int        `json:"attempts"`
	Intended   *int64     `json:"intended_ns,omitempty"`
	Started    *int64     `json:"started_ns,omitempty"`
	Ended      *int64     `json:"ended_ns,omitempty"`
	ResponseNs *int64     `json:"response_ns,omitempty"`
	ServiceNs  *int64     `json:"service_ns,omitempty"`
	LatenessNs *int64     `json:"lateness_ns,omitempty"`
	// Censored: the op had not ended when the run ended; its slice ends there, and its
	// times are lower bounds.
	Censored bool `json:"censored,omitempty"`
}

func argsOf(o *op.Op) *opArgs {
	a := &opArgs{Op: o.ID, Episode: o.Episode, Instance: o.Instance, Kind: o.Kind, Target: o.Target, Object: o.Object,
		Node: o.Node, Outcome: o.Outcome, Code: o.Code, Message: o.Message, Attempts: o.Attempts,
		Intended: instant(o.Intended), Started: instant(o.Started), Ended: instant(o.Ended),
		Censored: censored(o)}
	known := func(ns int64, ok bool) *int64 {
		if !ok {
			return nil
		}
		return &ns
	}
	a.ResponseNs, a.ServiceNs, a.LatenessNs = known(o.Response()), known(o.Service()), known(o.Lateness())
	return a
}

func instant(t op.Time) *int64 {
	if !t.Known() {
		return nil
	}
	v := int64(t)
	return &v
}

// censored reports whether the end of an op that was started is not known.
func censored(o *op.Op) bool {
	return o.Outcome == op.Censored || o.Started.Known() && !o.Ended.Known()
}

// drawn returns the rows of an op that was started. end is the run's.
func drawn(o *op.Op, end op.Time) *rows {
	from, to := o.Started, max(o.Started, o.Ended)
	if censored(o) {
		to = max(to, end)
	}
	due := from
	if o.Intended.Known() {
		due = min(o.Intended, from)
	}
	r := &rows{op: slice{name: o.Action, cat: catOp, from: due, to: to, args: argsOf(o)}}
	unblocked := min(max(o.Milestone(op.Unblocked), due), from)
	for _, wait := range []slice{
		{name: "blocked", cat: catLatency, from: due, to: unblocked},
		{name: "late", cat: catLatency, from: unblocked, to: from},
	} {
		if wait.from < wait.to {
			r.op.children = append(r.op.children, wait)
		}
	}
	service := slice{name: "service", cat: catLatency, from: from, to: to}
	r.more = place(o, &service)
	r.op.children = append(r.op.children, service)
	r.addMilestones(o)
	return r
}

// milestoneArgs are the arguments of a milestone.
type milestoneArgs struct {
	Source  string `json:"source,omitempty"`
	ErrorNs int64  `json:"error_ns,omitempty"`
}

// addMilestones adds the milestones as instants, without the edges of calls that are slices.
func (r *rows) addMilestones(o *op.Op) {
	ends := map[string]int{} // calls that ended, by name and volume
	for _, m := range o.Milestones {
		if base, volume, _ := strings.Cut(m.Name, "/"); strings.HasSuffix(base, ".end") {
			ends[strings.TrimSuffix(base, ".end")+"/"+volume]++
		}
	}
	starts := map[string]int{}
	for _, m := range o.Milestones {
		base, volume, _ := strings.Cut(m.Name, "/")
		if call, ok := strings.CutSuffix(base, ".start"); ok {
			if starts[call+"/"+volume]++; starts[call+"/"+volume] <= ends[call+"/"+volume] {
				continue
			}
		}
		if call, ok := strings.CutSuffix(base, ".end"); ok && starts[call+"/"+volume] > 0 {
			continue
		}
		if !m.At.Known() {
			continue
		}
		i := slice{name: m.Name, cat: catMilestone, from: m.At, to: m.At, instant: true,
			args: &milestoneArgs{m.Source, m.Err}}
		if r.op.from <= m.At && m.At <= r.op.to {
			r.op.addInstant(i)
			continue
		}
		r.outside(i)
	}
}

// outside adds a milestone that other clocks put before or after the op to the first further
// row, where it is in no slice of the op.
func (r *rows) outside(i slice) {
	if len(r.more) == 0 {
		r.more = append(r.more, nil)
	}
	row := slice{children: r.more[0]}
	row.addInstant(i)
	r.more[0] = row.children
}
