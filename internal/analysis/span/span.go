// Package span derives the spans of an op from its milestones: the time between two of its
// instants. Which milestones follow which is declared here, as a partial order.
package span

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// milestonePredecessors declares the partial order of milestones: a span ends at a
// milestone and begins at the last of its predecessors. A milestone without an observed
// predecessor ends no span. Engines differ in order (init containers before or after the
// first write), so a predecessor that came later does not count in that op.
var milestonePredecessors = map[string][]string{
	op.Acked:       {"started"},
	op.Provisioned: {"started", op.Acked, op.Scheduled},
	op.Bound:       {op.Provisioned},
	op.Scheduled:   {"started", op.Acked, op.Bound, op.Gone, op.Detached},
	op.Attached:    {op.Provisioned, op.Bound, op.Scheduled, op.Detached},
	op.Staged:      {op.Attached},
	op.Published:   {op.Staged},
	op.FirstWrite:  {op.Published, op.Initialized, op.Running, op.Replaced, op.Resumed},
	op.FirstRead:   {op.Published, op.Initialized, op.Running, op.Replaced, op.Resumed},
	op.Sandboxed:   {op.Published, op.Attached, op.Scheduled, op.Gone},
	op.Delivered:   {op.Sandboxed, op.Published, op.Attached, op.Scheduled, op.Gone},
	op.Initialized: {op.Delivered, op.Sandboxed, op.Published, op.FirstWrite, op.FirstRead, op.Attached,
		op.Scheduled, op.Gone},
	op.Running: {op.Sandboxed, op.Published, op.FirstWrite, op.FirstRead, op.Scheduled, op.Attached, op.Initialized,
		op.Gone},
	op.Checked:     {"started", op.Published, op.Running},
	"podReady":     {op.Running},
	op.FirstPut:    {op.ObjectReady},
	op.Ready:       {op.FirstPut, op.ObjectReady, op.Running, op.Taken, op.FirstWrite, op.FirstRead},
	op.ObjectReady: {op.Acked, "scripted", op.Gone},
	"objectGone":   {op.Acked},
	"scripted":     {op.Acked},
	"content":      {"started", op.Acked},
	op.Taken:       {"started", op.Acked, "content"},
	op.Controller:  {"started", op.Acked},
	op.Node:        {op.Controller},
	"nodePending":  {op.Controller},
	op.Modified:    {"started", op.Acked},
	"podGone":      {"started", op.Acked},
	"claimGone":    {"started", op.Acked, "podGone"},
	op.Unpublished: {"started", op.Acked, op.Gone, op.Checked},
	op.Unstaged:    {op.Unpublished},
	op.Detached:    {op.Unstaged, "podGone", op.Gone},
	"volumeGone":   {"claimGone", op.Detached},
	"contentGone":  {"started", op.Acked},
	op.Gone:        {op.Unpublished, op.Unstaged, op.Detached},
	op.Signalled:   {"started", op.Acked},
	op.Resumed:     {op.Signalled},
	op.Cordoned:    {"started"},
	op.Evicted:     {op.Cordoned},
	op.Replaced:    {op.Gone, op.Detached, op.Published, op.Attached, op.Scheduled},
}

// beforePodsGone precedes op.Gone of ops that end pods and make them again, in which it
// is the first removal, not the last.
var beforePodsGone = []string{"started", op.Acked, op.Signalled, op.Evicted}

// predecessors of a milestone of an op.
func predecessors(kind op.Kind, base string) []string {
	if kind.Effect() == op.Restarts && base == op.Gone {
		return beforePodsGone
	}
	return milestonePredecessors[base]
}

// rpcOf is the call that ends at a milestone: where it was seen from start to
// end, that is the span, and the declared one would say the same less exactly.
var rpcOf = map[string]string{
	op.Provisioned: "CreateVolume", op.Attached: "ControllerPublishVolume", op.Staged: "NodeStageVolume",
	op.Published: "NodePublishVolume", op.Taken: "CreateSnapshot", op.Controller: "ControllerExpandVolume",
	op.Node: "NodeExpandVolume", op.Modified: "ControllerModifyVolume", op.Unpublished: "NodeUnpublishVolume",
	op.Unstaged: "NodeUnstageVolume", op.Detached: "ControllerUnpublishVolume", op.Gone: "DeleteVolume",
}

// Span is one passage of an op between two of its instants.
type Span struct {
	Name   string // the call, or the milestone at its end
	From   string // "started", or a milestone
	To     string // a milestone
	Volume string // one of an op on several volumes; empty: the whole op, or its only volume
	At     op.Time
	Ns     int64 // not negative
	Err    int64 // ± of both ends together, in ns
	Call   bool  // a call of the CSI driver, or a part of one, from its start to its end
}

// End returns the instant at which the span ends.
func (s Span) End() op.Time { return s.At + op.Time(s.Ns) }

// Of returns the spans of an op in order of their begin: each call from its start to its
// end, by volume, retries apart, and the declared spans of its milestones. Spans of one
// op may overlap: milestones are partially ordered.
func Of(o *op.Op) []Span {
	list := make([]Span, 0, len(o.Milestones))
	var open []int      // starts of calls not yet ended, in o.Milestones
	var called []string // calls that ended
	for i, m := range o.Milestones {
		base, volume := m.Split()
		if strings.HasSuffix(base, ".start") {
			open = append(open, i)
		}
		rpc, ok := strings.CutSuffix(base, ".end")
		if !ok {
			continue
		}
		at := slices.IndexFunc(open, func(k int) bool { return isStart(o.Milestones[k].Name, rpc, volume) })
		if at < 0 {
			continue
		}
		start := &o.Milestones[open[at]]
		open = slices.Delete(open, at, at+1)
		called = append(called, rpc)
		from := start.Name[:len(rpc)+len(".start")]
		list = append(list, Span{Name: rpc, From: from, To: base, Volume: volume, At: start.At,
			Ns: int64(m.At - start.At), Err: m.Err + start.Err, Call: true})
	}
	for _, m := range o.Milestones {
		base, volume := m.Split()
		if len(called) > 0 && slices.Contains(called, rpcOf[base]) {
			continue
		}
		if name, at := predecessor(o, base, volume, m.At); at.Known() {
			list = append(list, Span{Name: base, From: name, To: base, Volume: volume, At: at, Ns: int64(m.At - at),
				Err: m.Err + errorAt(o, at)})
		}
	}
	slices.SortStableFunc(list, func(a, b Span) int { return cmp.Compare(a.At, b.At) })
	return list
}

// isStart reports whether a milestone is the start of a call for a volume.
func isStart(name, rpc, volume string) bool {
	rest, ok := strings.CutPrefix(name, rpc)
	if ok {
		rest, ok = strings.CutPrefix(rest, ".start")
	}
	return ok && (rest == "" && volume == "" || rest != "" && rest[0] == '/' && rest[1:] == volume)
}

// predecessor is the last milestone before one that was seen at end: of the same
// volume, or of the whole op, or of all its volumes.
func predecessor(o *op.Op, base, volume string, end op.Time) (name string, at op.Time) {
	at = op.Never
	for _, p := range predecessors(o.Kind, base) {
		t := o.Started
		if p != "started" {
			t = dataset.Milestone(o, p)
			if volume != "" {
				if one := o.Milestone(p + "/" + volume); one.Known() {
					t = one
				}
			}
		}
		if t.Known() && t > at && t <= end {
			name, at = p, t
		}
	}
	return name, at
}

// errorAt is the ± of the milestone at an instant; 0 for the runner's own.
func errorAt(o *op.Op, at op.Time) int64 {
	for _, m := range o.Milestones {
		if m.At == at {
			return m.Err
		}
	}
	return 0
}

// Parents returns for each span the index of the span that contains it by declaration, or
// -1. A call of the driver belongs to the step in which it is made
// (attribution.Calls): NodePublishVolume to sandboxed; a part of a call (attribution.Parts)
// to the call: mkfs to NodeStageVolume. Spans that merely overlap in time,
// such as those of two volumes, are not nested.
func Parents(spans []Span) []int {
	parents := make([]int, len(spans))
	for i, s := range spans {
		parents[i] = -1
		for j, p := range spans {
			if s.Call && contains(p, s) && (parents[i] < 0 || p.Ns < spans[parents[i]].Ns) {
				parents[i] = j
			}
		}
	}
	return parents
}

// contains reports whether a call is a part of a step of the same volume, or a part of a call.
func contains(step, call Span) bool {
	inner := attribution.Calls(step.Name)
	if step.Call {
		inner = attribution.Parts(step.Name)
	}
	return (step.Volume == "" || step.Volume == call.Volume) &&
		step.At <= call.At && call.End() <= step.End() &&
		slices.Contains(inner, call.Name)
}
