// Package attribution says which component took the time of an op: it walks the
// op's critical path back from its end, milestone by milestone, and gives each
// stretch to whoever had to act for its milestone to come. The stretches tile
// the op from its intended instant to its end, so that the shares add up to one.
//
// The path is that of the latest predecessor: of all that a milestone waits for
// (in the order of declared dependencies) what came last is what it waited for.
package attribution

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Components that time is given to. Where a call of the driver was seen, by the
// engine itself or by a proxy, its time is the driver's and what is left around
// it is the sidecar's; where not, the two cannot be told apart, and the time is
// given to an …OrDriver.
const (
	Runner      = "runner (late start)"
	API         = "API server"
	Driver      = "CSI driver"
	Provisioner = "csi-provisioner"
	Attacher    = "attach controller and csi-attacher"
	Snapshotter = "snapshot-controller and csi-snapshotter"
	Resizer     = "csi-resizer"
	Scheduler   = "scheduler"
	Kubelet     = "kubelet and container runtime"
	Noticing    = "runner (noticing the end)"
	Volume      = "volume (first I/O)"
	Binder      = "PersistentVolume controller"
	Workload    = "workload (init containers, ending)"
	Unknown     = "not observed"
	Engine      = "engine between calls"
	Processes   = "start of processes"
	Pause       = "pause that was asked for"
	Controllers = "controllers of objects, with their pods"
	Dependency  = "ops that it waited for"

	ProvisionerOrDriver = "csi-provisioner or the driver"
	AttacherOrDriver    = "attach controller, csi-attacher or the driver"
	SnapshotterOrDriver = "snapshot-controller, csi-snapshotter or the driver"
	ResizerOrDriver     = "csi-resizer or the driver"
	KubeletOrDriver     = "kubelet, container runtime or the driver"
	WorkloadOrDriver    = "workload (init containers, ending) or the driver"
	ControllersOrDriver = "controllers of objects, with their pods, or the driver"
)

// unseen names who may have taken the time of a step in which the driver is
// called, where none of its calls was seen.
var unseen = map[string]string{
	Provisioner: ProvisionerOrDriver, Attacher: AttacherOrDriver, Snapshotter: SnapshotterOrDriver,
	Resizer: ResizerOrDriver, Kubelet: KubeletOrDriver, Workload: WorkloadOrDriver, Controllers: ControllersOrDriver,
}

// DriverUnseen says whether a component is one of those that cannot be told apart
// from the driver.
func DriverUnseen(component string) bool {
	for _, c := range unseen {
		if c == component {
			return true
		}
	}
	return false
}

// step is a milestone: whose work ends with it, and what it waits for.
type step struct {
	by    string
	after []string
}

const started = "started"

// steps are the milestones of all engines; "<RPC>.end" needs no entry.
var steps = map[string]step{
	op.Acked:       {API, []string{started}},
	op.Provisioned: {Provisioner, []string{op.Acked, op.Scheduled, "CreateVolume.end"}},
	op.Bound:       {Binder, []string{op.Provisioned}},
	op.Scheduled:   {Scheduler, []string{op.Acked, op.Bound, op.Gone, op.Detached}},
	op.Attached:    {Attacher, []string{op.Bound, op.Scheduled, op.Provisioned, op.Gone, op.Detached, "ControllerPublishVolume.end"}},
	op.Staged:      {Kubelet, []string{op.Attached, "NodeStageVolume.end"}},
	op.Published:   {Kubelet, []string{op.Staged, op.Attached, op.Provisioned, "NodePublishVolume.end"}},
	op.Sandboxed:   {Kubelet, []string{op.Published, op.Attached, op.Scheduled, op.Gone, "NodePublishVolume.end"}},
	op.Initialized: {Workload, []string{op.Sandboxed, op.Published, op.Attached, op.Scheduled, op.FirstWrite, op.FirstRead, op.Gone, "NodePublishVolume.end"}},
	"agents":       {Workload, []string{op.Initialized, op.Published, op.FirstWrite, op.FirstRead, op.Gone}},
	op.Running:     {Kubelet, []string{"agents", op.Initialized, op.Sandboxed, op.Published, op.Attached, op.Bound, op.Scheduled, op.FirstWrite, op.FirstRead, op.Gone, "NodePublishVolume.end"}},
	op.FirstWrite:  {Volume, []string{op.Running, op.Initialized, op.Published, op.Attached, op.Replaced, op.Resumed, "NodePublishVolume.end"}},
	op.FirstRead:   {Volume, []string{op.Running, op.Initialized, op.Published, op.Attached, op.Replaced, op.Resumed, "NodePublishVolume.end"}},
	"podReady":     {Kubelet, []string{op.Running}},
	op.ObjectReady: {Controllers, []string{op.Acked, "scripted", op.Gone}},
	"objectGone":   {Controllers, []string{op.Acked, "NodeUnpublishVolume.end"}},
	"scripted":     {Workload, []string{op.Acked}},
	op.Ready:       {Noticing, []string{op.ObjectReady, op.Running, op.FirstWrite, op.FirstRead, op.Bound, op.Taken, op.Node, "content", op.Published, op.Provisioned}},
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
	op.Unpublished: {Kubelet, []string{"podGone", op.Gone, "NodeUnpublishVolume.end"}},
	op.Unstaged:    {Kubelet, []string{op.Unpublished, "NodeUnstageVolume.end"}},
	op.Gone: {API, []string{"objectGone", "volumeGone", "contentGone", "claimGone", "podGone", op.Detached, op.Acked,
		"DeleteVolume.end", "DeleteSnapshot.end", "DeleteVolumeGroupSnapshot.end"}},
	op.Signalled: {API, []string{started, op.Acked}},
	op.Resumed:   {Pause, []string{op.Signalled}},
	op.Cordoned:  {API, []string{started}},
	op.Evicted:   {API, []string{op.Cordoned}},
	op.Replaced:  {Kubelet, []string{op.Running, op.Published, op.Attached, op.Scheduled, op.FirstWrite, op.FirstRead, op.Gone, "NodePublishVolume.end"}},
}

// podsGone is gone in ops that end pods to make them again.
var podsGone = step{Workload, []string{op.Signalled, op.Evicted, op.Acked, "NodeUnpublishVolume.end"}}

// claimsGone is claimGone of an object: its claims go when its pods have.
var claimsGone = step{Controllers, []string{op.Acked, "objectGone", "NodeUnpublishVolume.end"}}

func endsPods(kind op.Kind) bool {
	return kind == op.Kill || kind == op.Reattach || kind == op.Rollout || kind == op.Drain || kind == op.Scale
}

// callers say who makes a call, and after what.
var callers = map[string]step{
	"CreateVolume":              {Provisioner, []string{op.Acked, op.Scheduled}},
	"DeleteVolume":              {Provisioner, []string{"claimGone", op.Detached, op.Acked, "NodeUnpublishVolume.end", "NodeUnstageVolume.end", "ControllerUnpublishVolume.end"}},
	"ControllerPublishVolume":   {Attacher, []string{op.Bound, op.Scheduled, op.Provisioned, op.Gone, op.Detached}},
	"ControllerUnpublishVolume": {Attacher, []string{"podGone", op.Gone, op.Acked, "NodeUnpublishVolume.end", "NodeUnstageVolume.end"}},
	"NodeStageVolume":           {Kubelet, []string{op.Attached, op.Scheduled, op.Provisioned, op.Gone, op.Detached, "NodeUnstageVolume.end"}},
	"NodePublishVolume":         {Kubelet, []string{op.Staged, op.Attached, op.Scheduled, op.Provisioned, op.Gone, op.Detached, "NodeStageVolume.end", "NodeUnpublishVolume.end"}},
	"NodeUnpublishVolume":       {Kubelet, []string{op.Acked, op.Signalled, op.Evicted, "podGone", op.Gone}},
	"NodeUnstageVolume":         {Kubelet, []string{op.Acked, "podGone", op.Gone, "NodeUnpublishVolume.end"}},
	"CreateSnapshot":            {Snapshotter, []string{op.Acked, "content"}},
	"DeleteSnapshot":            {Snapshotter, []string{op.Acked}},
	"CreateVolumeGroupSnapshot": {Snapshotter, []string{op.Acked}},
	"DeleteVolumeGroupSnapshot": {Snapshotter, []string{op.Acked}},
	"ControllerExpandVolume":    {Resizer, []string{op.Acked}},
	"NodeExpandVolume":          {Kubelet, []string{op.Controller, "ControllerExpandVolume.end"}},
	"ControllerModifyVolume":    {Resizer, []string{op.Acked}},
}

// ended gives the time in which containers end, before their volumes are unmounted, to
// their workload; unmounted what is left after that, until their pod is gone, to the
// kubelet.
var (
	ended     = map[string]string{op.Acked: Workload, op.Signalled: Workload, op.Evicted: Workload}
	unmounted = map[string]string{"NodeUnpublishVolume.end": Kubelet, "NodeUnstageVolume.end": Kubelet}
)

// since names, for the time from one milestone to another, who takes it in place of the
// latter's step.
var since = map[string]map[string]string{"NodeUnpublishVolume.start": ended, "podGone": unmounted, op.Gone: unmounted}

// stepOf describes a milestone of an op by its base name.
func stepOf(o *op.Op, name string) (step, bool) {
	switch {
	case name == op.Gone && endsPods(o.Kind):
		return podsGone, true
	case name == "claimGone" && has(o, "objectGone"):
		return claimsGone, true
	}
	if rpc, ok := strings.CutSuffix(name, ".end"); ok {
		return step{Driver, []string{rpc + ".start"}}, true
	}
	if rpc, ok := strings.CutSuffix(name, ".start"); ok {
		s, known := callers[rpc]
		s.after = append(slices.Clone(s.after), rpc+".end") // an earlier attempt
		return s, known
	}
	s, ok := steps[name]
	return s, ok
}

// Share is what one component took.
type Share struct {
	Component string `json:"component"`
	// Share of the time of all ops together, 0 to 1.
	Share float64 `json:"share"`
	// MeanNs is the time of an op that was this component's, in the mean.
	MeanNs float64 `json:"meanNs"`
}

// Tally adds ops up. The zero Tally is ready; it is for one goroutine.
type Tally struct {
	// OneMachine gives the time of Kubernetes' components to the engine, which
	// does their work where all runs on one machine.
	OneMachine bool

	n     int64
	total int64
	by    map[string]int64
}

// Add takes one op that was done; others have no path to the end.
func (t *Tally) Add(o *op.Op) {
	if o.Outcome != op.OK || !o.Ended.Known() || !o.Intended.Known() {
		return
	}
	if t.by == nil {
		t.by = map[string]int64{}
	}
	t.n++
	for by, ns := range Path(o) {
		if t.OneMachine {
			by = onOneMachine(by)
		}
		t.by[by] += ns
		t.total += ns
	}
}

// substitutes has the components that do the work of others on one machine.
var substitutes = map[string]string{
	API: Engine, Provisioner: Engine, Attacher: Engine, Snapshotter: Engine, Resizer: Engine, Binder: Engine, Scheduler: Engine,
	Kubelet: Processes,
}

// onOneMachine returns the component that does the work of another on one machine.
func onOneMachine(by string) string {
	for known, or := range unseen {
		if by == or {
			by = known
		}
	}
	return cmp.Or(substitutes[by], by)
}

// Shares lists the components, the largest first; empty without ops.
func (t *Tally) Shares() []Share {
	var list []Share
	for by, ns := range t.by {
		if ns > 0 {
			list = append(list, Share{by, float64(ns) / float64(t.total), float64(ns) / float64(t.n)})
		}
	}
	slices.SortFunc(list, func(a, b Share) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Component, b.Component))
	})
	return list
}

// Path gives every nanosecond from the op's intended instant to its end to one
// component.
func Path(o *op.Op) map[string]int64 {
	path := map[string]int64{}
	if late, ok := o.Lateness(); ok && late > 0 {
		path[Runner] += late
	}
	if there := o.Milestone(op.Unblocked); there.Known() {
		path[Dependency] += int64(there - o.Intended)
	}
	at, name := o.Ended, last(o)
	if name == "" {
		path[Unknown] += int64(at - o.Started)
		return path
	}
	here := latest(o, name, at)
	path[owner(o, name)] += int64(at - here) // from the last milestone to the op's end
	for at = here; at > o.Started; {
		s, known := stepOf(o, name)
		if !known {
			path[Unknown] += int64(at - o.Started)
			break
		}
		before := at
		if strings.HasSuffix(name, ".start") {
			before-- // its own end at the same instant is no earlier attempt
		}
		next, when := predecessor(o, s.after, before)
		path[s.taker(o, name, next)] += int64(at - when)
		if next == "" {
			break
		}
		name, at = next, when
	}
	return path
}

// driverSteps are the milestones before which the driver is called, with the
// calls. Where none of those was seen, its time is not known. Calls of the node may be
// unseen where those of the controller are not.
var driverSteps = map[string][]string{
	op.Provisioned: {"CreateVolume"},
	op.Attached:    {"ControllerPublishVolume"},
	op.Staged:      {"NodeStageVolume", "NodePublishVolume"},
	op.Published:   {"NodeStageVolume", "NodePublishVolume"},
	op.Sandboxed:   {"NodeStageVolume", "NodePublishVolume"},
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

// taker is the component that took the time from one milestone up to the next: the
// step's, or it and the driver where a call of the driver's is due that was not seen.
func (s step) taker(o *op.Op, name, from string) string {
	by := s.by
	if other := since[name][from]; other != "" {
		by = other
	}
	calls := driverSteps[name]
	if len(calls) == 0 || unseen[by] == "" || mounting(calls) && !mounts(o, name) {
		return by
	}
	for _, m := range o.Milestones {
		for _, call := range calls {
			if strings.HasPrefix(m.Name, call+".") {
				return by
			}
		}
	}
	return unseen[by]
}

// mounting says whether calls are of mounting volumes, or of unmounting them.
func mounting(calls []string) bool {
	return calls[0] == "NodeStageVolume" || calls[0] == "NodeUnpublishVolume"
}

// mounted are the milestones that show volumes to be mounted, by the later ones
// whose time has the mounting in it where none of them was seen.
var mounted = map[string][]string{
	op.Sandboxed:   {op.Published},
	op.Initialized: {op.Published, op.Sandboxed},
	op.Running:     {op.Published, op.Sandboxed, op.Initialized, "agents"},
	op.Replaced:    {op.Published, op.Sandboxed, op.Initialized, "agents", op.Running},
}

// ofVolumes are the milestones that only an op with volumes has.
var ofVolumes = []string{op.Attached, op.Bound, op.Provisioned, op.Detached, op.Staged, op.Published, op.FirstWrite,
	op.FirstRead, op.Unpublished, op.Unstaged, "claimGone", "volumeGone"}

// mounts says whether volumes may have been mounted, or unmounted, in the time up to a
// milestone: the op's pods have some, and they were not seen to be mounted before. The
// processes of a kill are made again where their volumes are mounted, unless their pods
// are made anew.
func mounts(o *op.Op, name string) bool {
	if o.Kind == op.Kill && !has(o, op.Scheduled) || has(o, mounted[name]...) {
		return false
	}
	return has(o, ofVolumes...)
}

// has says whether an op has one of these milestones.
func has(o *op.Op, names ...string) bool {
	return slices.ContainsFunc(o.Milestones, func(m op.Milestone) bool { return slices.Contains(names, base(m.Name)) })
}

func owner(o *op.Op, name string) string {
	if s, ok := stepOf(o, name); ok {
		return s.by
	}
	return Unknown
}

// last is the base name of the op's latest milestone from its start to its end.
func last(o *op.Op) string {
	name, at := "", op.Never
	for _, m := range o.Milestones {
		if m.At <= o.Ended && m.At >= at && m.Name != op.Unblocked {
			name, at = base(m.Name), m.At
		}
	}
	return name
}

func base(name string) string {
	b, _, _ := strings.Cut(name, "/")
	return b
}

// latest is when a milestone was last seen by an instant; several volumes, or
// attempts, have it several times.
func latest(o *op.Op, name string, by op.Time) op.Time {
	at := op.Never
	for _, m := range o.Milestones {
		if base(m.Name) == name && m.At <= by && m.At > at {
			at = m.At
		}
	}
	return at
}

// predecessor is the last of the named milestones by an instant, or the op's
// start if there is none.
func predecessor(o *op.Op, names []string, by op.Time) (name string, at op.Time) {
	at = min(o.Started, by)
	for _, n := range names {
		if t := latest(o, n, by); t.Known() && t > at {
			name, at = n, t
		}
	}
	return name, at
}
