package summary

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/analysis/validity"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
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
	op.Initialized: {op.Sandboxed, op.Published, op.FirstWrite, op.FirstRead, op.Attached, op.Scheduled, op.Gone},
	op.Running: {op.Sandboxed, op.Published, op.FirstWrite, op.FirstRead, op.Scheduled, op.Attached, op.Initialized,
		op.Gone},
	"podReady":     {op.Running},
	op.Ready:       {op.ObjectReady, op.Running, op.Taken, op.FirstWrite, op.FirstRead},
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
	op.Unpublished: {"started", op.Acked, op.Gone},
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

// spanValue is one time through a span.
type spanValue struct {
	name, from, to string
	at             op.Time
	ns             int64
	err            int64 // ± of both ends together
}

// spansOf of an op in order of their begin: each call from its start to its
// end, by volume, retries apart, and the declared spans of its milestones.
func spansOf(o *op.Op) []spanValue {
	var list []spanValue
	open := map[string][]op.Milestone{} // starts of calls not yet ended, by name and volume
	called := map[string]bool{}
	for _, m := range o.Milestones {
		base, volume, _ := strings.Cut(m.Name, "/")
		if rpc, ok := strings.CutSuffix(base, ".start"); ok {
			open[rpc+"/"+volume] = append(open[rpc+"/"+volume], m)
		}
		rpc, ok := strings.CutSuffix(base, ".end")
		starts := open[rpc+"/"+volume]
		if !ok || len(starts) == 0 {
			continue
		}
		open[rpc+"/"+volume] = starts[1:]
		called[rpc] = true
		list = append(list, spanValue{rpc, rpc + ".start", rpc + ".end", starts[0].At, int64(m.At - starts[0].At),
			m.Err + starts[0].Err})
	}
	for _, m := range o.Milestones {
		base, volume, _ := strings.Cut(m.Name, "/")
		if called[rpcOf[base]] {
			continue
		}
		if name, at := predecessor(o, base, volume, m.At); at.Known() {
			list = append(list, spanValue{base, name, base, at, int64(m.At - at), m.Err + errorAt(o, at)})
		}
	}
	slices.SortStableFunc(list, func(a, b spanValue) int { return cmp.Compare(a.at, b.at) })
	return list
}

// predecessor is the last milestone before one that was seen at end: of the same
// volume, or of the whole op, or of all its volumes.
func predecessor(o *op.Op, base, volume string, end op.Time) (name string, at op.Time) {
	at = op.Never
	for _, p := range predecessors(o.Kind, base) {
		t := o.Started
		if p != "started" {
			t = dataset.Milestone(o, p)
			if one := o.Milestone(p + "/" + volume); one.Known() {
				t = one
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

// reached lists the milestones of an op by their base name, without those of
// calls, in order of time.
func reached(o *op.Op) []string {
	var names []string
	for _, m := range o.Milestones {
		base, _, _ := strings.Cut(m.Name, "/")
		if !strings.HasSuffix(base, ".start") && !strings.HasSuffix(base, ".end") && !slices.Contains(names, base) {
			names = append(names, base)
		}
	}
	return names
}

// spanSet gathers passages by name, in order of first appearance.
type spanSet struct {
	spans   []Span
	samples []*stats.Sample
	errs    []int64 // the greatest ± of each
}

func (s *spanSet) add(p spanValue) {
	i := slices.IndexFunc(s.spans, func(x Span) bool { return x.Name == p.name && x.From == p.from })
	if i < 0 {
		i = len(s.spans)
		s.spans = append(s.spans, Span{Name: p.name, From: p.from, To: p.to})
		s.samples = append(s.samples, &stats.Sample{})
		s.errs = append(s.errs, 0)
	}
	s.samples[i].Add(p.ns)
	s.errs[i] = max(s.errs[i], p.err)
}

func (s *spanSet) list() []Span {
	for i := range s.spans {
		s.spans[i].Latency = latencyOf(s.samples[i])
	}
	return s.spans
}

// doubtful lists the spans whose ± is more than a share of their median.
func (s *spanSet) doubtful() []string {
	var list []string
	for i, x := range s.samples {
		if e, ok := x.Quantile(0.5); ok && float64(s.errs[i]) > validity.ClockShare*float64(e.Value) {
			list = append(list, fmt.Sprintf("%s (%s ± %s)", s.spans[i].Name, ns(e.Value), ns(s.errs[i])))
		}
	}
	return list
}
