package attribution

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// step is a milestone: the component that produces it and the milestones it follows.
type step struct {
	by    string
	after []string
}

// Steps that are no milestones.
const (
	started = "started"
	ended   = "ended"
)

// backoff is the wait before a call is repeated, which begins when the call before has ended.
const backoff = op.Backoff

// steps are the milestones of all engines; "<RPC>.end" needs no entry.
var steps = map[string]step{
	op.Acked:       {API, []string{started}},
	op.Provisioned: {Provisioner, []string{op.Acked, op.Scheduled, "CreateVolume.end"}},
	op.Bound:       {Binder, []string{op.Provisioned}},
	op.Scheduled:   {Scheduler, []string{op.Acked, op.Bound, op.Gone, op.Detached}},
	op.Attached: {Attacher, []string{op.Bound, op.Scheduled, op.Provisioned, op.Gone, op.Detached,
		"ControllerPublishVolume.end"}},
	op.Staged:    {Kubelet, []string{op.Attached, "NodeStageVolume.end"}},
	op.Published: {Kubelet, []string{op.Staged, op.Attached, op.Provisioned, "NodePublishVolume.end"}},
	op.Sandboxed: {Kubelet, []string{op.Published, op.Attached, op.Scheduled, op.Gone, "NodePublishVolume.end"}},
	op.Delivered: {Harness, []string{op.Sandboxed, op.Published, op.Attached, op.Scheduled, op.Gone,
		"NodePublishVolume.end"}},
	op.Initialized: {Workload, []string{op.Delivered, op.Sandboxed, op.Published, op.Attached, op.Scheduled,
		op.FirstWrite, op.FirstRead, op.Gone, "NodePublishVolume.end"}},
	"agents": {Workload, []string{op.Initialized, op.Published, op.FirstWrite, op.FirstRead, op.Gone}},
	op.Running: {Kubelet, []string{"agents", op.Initialized, op.Sandboxed, op.Published, op.Attached, op.Bound,
		op.Scheduled, op.FirstWrite, op.FirstRead, op.Gone, "NodePublishVolume.end"}},
	op.FirstWrite: {Volume, []string{op.Running, op.Initialized, op.Published, op.Attached, op.Replaced, op.Resumed,
		"NodePublishVolume.end"}},
	op.FirstRead: {Volume, []string{op.Running, op.Initialized, op.Published, op.Attached, op.Replaced, op.Resumed,
		"NodePublishVolume.end"}},
	op.FirstPut:    {ObjectStore, []string{op.ObjectReady}},
	op.Checked:     {Checking, []string{started, op.Published, op.Running, "NodePublishVolume.end"}},
	"podReady":     {Kubelet, []string{op.Running}},
	op.ObjectReady: {Controllers, []string{op.Acked, "scripted", op.Gone}},
	"objectGone":   {Controllers, []string{op.Acked, "NodeUnpublishVolume.end"}},
	"scripted":     {Workload, []string{op.Acked}},
	op.Ready: {EndDetection, []string{op.FirstPut, op.ObjectReady, op.Running, op.FirstWrite, op.FirstRead, op.Bound,
		op.Taken, op.Node, "nodePending", op.Controller, op.Modified, "content", op.Published, op.Provisioned}},
	"content":      {Snapshotter, []string{op.Acked}},
	op.Taken:       {Snapshotter, []string{op.Acked, "content", "CreateSnapshot.end", "CreateVolumeGroupSnapshot.end"}},
	op.Controller:  {Resizer, []string{op.Acked, "ControllerExpandVolume.end"}},
	op.Node:        {Kubelet, []string{op.Controller, "NodeExpandVolume.end"}},
	"nodePending":  {Resizer, []string{op.Controller}},
	op.Modified:    {Resizer, []string{op.Acked, "ControllerModifyVolume.end"}},
	"podGone":      {Workload, []string{op.Acked, "NodeUnpublishVolume.end", "NodeUnstageVolume.end"}},
	op.Detached:    {Attacher, []string{"podGone", op.Gone, "NodeUnstageVolume.end", "ControllerUnpublishVolume.end"}},
	"claimGone":    {Binder, []string{op.Acked, "podGone"}},
	"volumeGone":   {Provisioner, []string{"claimGone", op.Detached, "DeleteVolume.end"}},
	"contentGone":  {Snapshotter, []string{op.Acked, "DeleteSnapshot.end"}},
	op.Unpublished: {Kubelet, []string{"podGone", op.Gone, op.Checked, "NodeUnpublishVolume.end"}},
	op.Unstaged:    {Kubelet, []string{op.Unpublished, "NodeUnstageVolume.end"}},
	op.Gone: {API, []string{"objectGone", "volumeGone", "contentGone", "claimGone", "podGone", op.Detached, op.Acked,
		"DeleteVolume.end", "DeleteSnapshot.end", "DeleteVolumeGroupSnapshot.end"}},
	op.Signalled: {API, []string{started, op.Acked}},
	op.Resumed:   {Pause, []string{op.Signalled}},
	op.Cordoned:  {API, []string{started}},
	op.Evicted:   {API, []string{op.Cordoned}},
	op.Replaced: {Kubelet, []string{op.Running, op.Published, op.Attached, op.Scheduled, op.FirstWrite, op.FirstRead,
		op.Gone, "NodePublishVolume.end"}},
}

// podsGone is op.Gone of ops that end pods and make them again.
var podsGone = step{Workload, []string{op.Signalled, op.Evicted, op.Acked, "NodeUnpublishVolume.end"}}

// claimsGone is claimGone of an object, whose claims are deleted after its pods.
var claimsGone = step{Controllers, []string{op.Acked, "objectGone", "NodeUnpublishVolume.end"}}

// callers has the component that makes a call and the milestones before it.
var callers = map[string]step{
	"CreateVolume": {Provisioner, []string{op.Acked, op.Scheduled}},
	"DeleteVolume": {Provisioner, []string{"claimGone", op.Detached, op.Acked, "NodeUnpublishVolume.end",
		"NodeUnstageVolume.end", "ControllerUnpublishVolume.end"}},
	"ControllerPublishVolume": {Attacher, []string{op.Bound, op.Scheduled, op.Provisioned, op.Gone, op.Detached}},
	"ControllerUnpublishVolume": {Attacher, []string{"podGone", op.Gone, op.Acked, "NodeUnpublishVolume.end",
		"NodeUnstageVolume.end"}},
	"NodeStageVolume": {Kubelet, []string{op.Attached, op.Scheduled, op.Provisioned, op.Gone, op.Detached,
		"NodeUnstageVolume.end"}},
	"NodePublishVolume": {Kubelet, []string{op.Staged, op.Attached, op.Scheduled, op.Provisioned, op.Gone,
		op.Detached, "NodeStageVolume.end", "NodeUnpublishVolume.end"}},
	"NodeUnpublishVolume":       {Kubelet, []string{op.Acked, op.Signalled, op.Evicted, "podGone", op.Gone, op.Checked}},
	"NodeUnstageVolume":         {Kubelet, []string{op.Acked, "podGone", op.Gone, "NodeUnpublishVolume.end"}},
	"CreateSnapshot":            {Snapshotter, []string{op.Acked, "content"}},
	"DeleteSnapshot":            {Snapshotter, []string{op.Acked}},
	"CreateVolumeGroupSnapshot": {Snapshotter, []string{op.Acked}},
	"DeleteVolumeGroupSnapshot": {Snapshotter, []string{op.Acked}},
	"ControllerExpandVolume":    {Resizer, []string{op.Acked}},
	"NodeExpandVolume":          {Kubelet, []string{op.Controller, "ControllerExpandVolume.end"}},
	"ControllerModifyVolume":    {Resizer, []string{op.Acked}},
}

// ending gives the time in which containers end, before volumes are unmounted, to the
// workload; unmounted gives the time after that, until the pod is gone, to the kubelet.
var (
	ending    = map[string]string{op.Acked: Workload, op.Signalled: Workload, op.Evicted: Workload}
	unmounted = map[string]string{"NodeUnpublishVolume.end": Kubelet, "NodeUnstageVolume.end": Kubelet}
)

// takenAfter has, by a milestone and its predecessor, the component that replaces the
// step's own. A snapshot that was taken is ready when the driver has prepared it and a controller has noticed that.
var takenAfter = map[string]map[string]string{"NodeUnpublishVolume.start": ending, "podGone": unmounted,
	op.Gone: unmounted, op.Ready: {op.Taken: Snapshotter}}

// parts are the parts of calls that the built-in drivers report, with the calls in which they may be.
var parts = map[string]step{
	op.PartMkfs:   {Formatting, []string{"NodeStageVolume"}},
	op.PartFreeze: {Frozen, []string{"CreateSnapshot", "CreateVolumeGroupSnapshot", "CreateVolume"}},
}

// Parts returns the parts that a call of the CSI driver may have, such as mkfs of NodeStageVolume.
func Parts(call string) []string {
	var list []string
	for _, name := range []string{op.PartMkfs, op.PartFreeze} {
		if slices.Contains(parts[name].after, call) {
			list = append(list, name)
		}
	}
	return list
}

// reached is a step with what the other tables have for its milestone.
type reached struct {
	*step
	instead map[string]string // of takenAfter
	calls   []string          // of driverSteps
	begins  bool              // a call with a caller
}

func newReached(name string, s *step) reached {
	rpc, begins := strings.CutSuffix(name, ".start")
	return reached{s, takenAfter[name], driverSteps[name], begins && callers[rpc].by != ""}
}

// stepOf describes a milestone of an op by its base name.
func stepOf(o *op.Op, name string) (reached, bool) {
	r, known := declared[name]
	switch {
	case name == op.Gone && o.Kind.Effect() == op.Restarts:
		r.step = &podsGone
	case name == "claimGone" && has(o, "objectGone"):
		r.step = &claimsGone
	case !known:
		s, known := callStep(name)
		return newReached(name, &s), known
	}
	return r, true
}

// declared are the milestones, and the begins and ends of calls and parts, that the tables have.
var declared = func() map[string]reached {
	m := map[string]reached{}
	for name, s := range steps {
		m[name] = newReached(name, &s)
	}
	waits := map[string]step{backoff: {}}
	for _, table := range []map[string]step{callers, parts, waits} {
		for name := range table {
			for _, edge := range []string{name + ".start", name + ".end"} {
				s, _ := callStep(edge)
				m[edge] = newReached(edge, &s)
			}
		}
	}
	return m
}()

// callStep describes the begin or the end of a call, or of a part of one; false: it is neither.
func callStep(name string) (step, bool) {
	switch name {
	case backoff + ".end":
		return step{Backoff, []string{backoff + ".start"}}, true
	case backoff + ".start":
		s := step{by: Engine}
		for _, rpc := range slices.Sorted(maps.Keys(callers)) {
			s.after = append(s.after, rpc+".end")
		}
		return s, true
	}
	if rpc, ok := strings.CutSuffix(name, ".end"); ok {
		if p, isPart := parts[rpc]; isPart {
			return step{p.by, []string{rpc + ".start"}}, true
		}
		s := step{Driver, []string{rpc + ".start"}}
		for _, part := range Parts(rpc) {
			s.after = append(s.after, part+".end")
		}
		return s, true
	}
	if rpc, ok := strings.CutSuffix(name, ".start"); ok {
		if p, isPart := parts[rpc]; isPart {
			s := step{by: Driver}
			for _, call := range p.after {
				s.after = append(s.after, call+".start")
			}
			return s, true
		}
		s, known := callers[rpc]
		s.after = append(slices.Clone(s.after), backoff+".end", rpc+".end") // an earlier attempt
		return s, known
	}
	return step{}, false
}

// driverSteps are the milestones before which the driver is called, with the
// calls. Where none of those was seen, its time is not known. Calls of the node may be
// unobserved where those of the controller are not.
var driverSteps = map[string][]string{
	op.Provisioned: {"CreateVolume"},
	op.Attached:    {"ControllerPublishVolume"},
	op.Staged:      {"NodeStageVolume", "NodePublishVolume"},
	op.Published:   {"NodeStageVolume", "NodePublishVolume"},
	op.Sandboxed:   {"NodeStageVolume", "NodePublishVolume"},
	op.Delivered:   {"NodeStageVolume", "NodePublishVolume"},
	op.Initialized: {"NodeStageVolume", "NodePublishVolume"},
	op.Running:     {"NodeStageVolume", "NodePublishVolume"},
	op.Replaced:    {"NodeStageVolume", "NodePublishVolume"},
	"podGone":      {"NodeUnpublishVolume", "NodeUnstageVolume"},
	op.Gone:        {"NodeUnpublishVolume", "NodeUnstageVolume"}, // of pods
	"objectGone":   {"NodeUnpublishVolume", "NodeUnstageVolume"},
	"claimGone":    {"NodeUnpublishVolume", "NodeUnstageVolume"}, // of an object
	op.Taken:       {"CreateSnapshot", "CreateVolumeGroupSnapshot"},
	op.Controller:  {"ControllerExpandVolume"},
	op.Node:        {"NodeExpandVolume"},
	"nodePending":  {"ControllerExpandVolume"},
	op.Modified:    {"ControllerModifyVolume"},
	op.Detached:    {"ControllerUnpublishVolume"},
	"volumeGone":   {"DeleteVolume"},
	"contentGone":  {"DeleteSnapshot", "DeleteVolumeGroupSnapshot"},
	op.Unpublished: {"NodeUnpublishVolume"},
	op.Unstaged:    {"NodeUnstageVolume"},

	"ControllerUnpublishVolume.start": {"NodeUnpublishVolume", "NodeUnstageVolume"},
}

// Calls returns the calls of the CSI driver that are made before a milestone, by its base
// name, as a part of the step that ends there; none: the driver is not called in it.
func Calls(milestone string) []string { return driverSteps[milestone] }

// component returns the component that took the time from one milestone to the next:
// the step's own, or its …OrDriver where an expected call of the driver was not observed.
func (s *reached) component(o *op.Op, name, from string) string {
	by := s.by
	if other := s.instead[from]; other != "" {
		by = other
	}
	if name == op.Ready && from == op.Taken {
		switch {
		case preparing(o):
			return Driver
		case !has(o, "CreateSnapshot.end", "CreateVolumeGroupSnapshot.end"):
			return SnapshotterOrDriver
		}
	}
	if len(s.calls) == 0 || orDriver[by] == "" || mounting(s.calls) && !mayMount(o, name) {
		return by
	}
	for i := range o.Milestones {
		m := &o.Milestones[i]
		for _, call := range s.calls {
			if rest, ok := strings.CutPrefix(m.Name, call); ok && strings.HasPrefix(rest, ".") {
				return by
			}
		}
	}
	return orDriver[by]
}

// preparing reports whether the driver was asked again after its snapshot was taken: it had said that it is not ready.
func preparing(o *op.Op) bool {
	asks := []string{"CreateSnapshot.start", "ListSnapshots.start", "GetSnapshot.start"}
	taken := latest(o, op.Taken, o.Ended)
	return slices.ContainsFunc(o.Milestones, func(m op.Milestone) bool {
		return m.Is(op.Ready) && m.Source == "csi" ||
			m.At > taken && slices.Contains(asks, base(&m))
	})
}

// mounting reports whether calls mount or unmount volumes.
func mounting(calls []string) bool {
	return calls[0] == "NodeStageVolume" || calls[0] == "NodeUnpublishVolume"
}

// mounted has the milestones that show that volumes are mounted, by the later milestone
// whose time includes the mount where none of them was observed.
var mounted = map[string][]string{
	op.Sandboxed:   {op.Published},
	op.Delivered:   {op.Published, op.Sandboxed},
	op.Initialized: {op.Published, op.Sandboxed, op.Delivered},
	op.Running:     {op.Published, op.Sandboxed, op.Delivered, op.Initialized, "agents"},
	op.Replaced:    {op.Published, op.Sandboxed, op.Delivered, op.Initialized, "agents", op.Running},
}

// volumeMilestones are those of ops with volumes only.
var volumeMilestones = []string{op.Attached, op.Bound, op.Provisioned, op.Detached, op.Staged, op.Published,
	op.FirstWrite,
	op.FirstRead, op.Unpublished, op.Unstaged, "claimGone", "volumeGone"}

// mayMount reports whether volumes may have been mounted or unmounted in the time up to
// a milestone: the op's pods have volumes, and no earlier mount was observed. A kill
// restarts processes on mounted volumes, unless their pods are recreated.
func mayMount(o *op.Op, name string) bool {
	if o.Kind == op.Kill && !has(o, op.Scheduled) || has(o, mounted[name]...) {
		return false
	}
	return has(o, volumeMilestones...)
}

// has reports whether an op has one of the milestones.
func has(o *op.Op, names ...string) bool {
	return slices.ContainsFunc(o.Milestones, func(m op.Milestone) bool { return slices.Contains(names, base(&m)) })
}

func base(m *op.Milestone) string {
	b, _ := m.Split()
	return b
}
