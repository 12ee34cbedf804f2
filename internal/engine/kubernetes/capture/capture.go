// Package capture turns the changes of a cluster's objects, from watches or the API server's audit log, into a
// trace of control operations.
package capture

import (
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// Tracker follows claims, snapshots, attachments and pods with claims. Times are nanoseconds since the trace's
// start. It is not safe for concurrent use.
type Tracker struct {
	start   time.Time // by the cluster's clock
	records []trace.Record
	known   map[string]*object   // by UID
	claims  map[string]string    // by PersistentVolume
	uids    map[string]types.UID // by trace.Record.Key
}

// object is a known object.
type object struct {
	made, grown, removed int // indexes of its records; -1: none
	size                 int64
	class                string // VolumeAttributesClass
	// half is when the resize was done except for the node's part; none: not yet.
	half int64
}

// none is the index of a missing record.
const none = -1

// New makes a Tracker. Objects created before start, by the server's clock in whole seconds, existed when the trace
// began.
func New(start time.Time) *Tracker {
	return &Tracker{start: start, known: map[string]*object{}, claims: map[string]string{},
		uids: map[string]types.UID{}}
}

// state is what is read from an object.
type state struct {
	kind        trace.Kind
	op          trace.Op // that created it
	done        bool     // usable
	source      string
	class       string
	size, ready int64  // requested and granted
	half        int64  // granted except for the node's part
	modified    string // its VolumeAttributesClass
	node        string
}

// See records a state of an object at an instant. asked is when the change was requested, or the same instant.
func (t *Tracker) See(o metav1.Object, asked, at int64) {
	s, ok := t.stateOf(o)
	if !ok {
		return
	}
	k := t.known[string(o.GetUID())]
	if k == nil {
		k = t.first(o, s, asked)
	}
	t.changes(o, k, s, asked, at)
	if o.GetDeletionTimestamp() != nil {
		t.removing(o, k, s, asked)
	}
}

// Gone records the end of an object. asked is when its deletion was requested, unless that is known.
func (t *Tracker) Gone(o metav1.Object, asked, at int64) {
	s, ok := t.stateOf(o)
	if !ok {
		return
	}
	k := t.known[string(o.GetUID())]
	if k == nil {
		k = &object{made: none, grown: none, half: none, removed: none}
		if made := o.GetCreationTimestamp(); !made.IsZero() {
			k = t.first(o, s, asked)
		}
	}
	t.removing(o, k, s, asked)
	t.finish(k.removed, at)
	if k.made != none && t.records[k.made].Outcome == "" && t.records[k.made].Time >= 0 {
		t.records[k.made].Outcome, t.records[k.made].Duration = "censored", at-t.records[k.made].Time
	}
	delete(t.known, string(o.GetUID()))
}

// Failed records a refused creation.
func (t *Tracker) Failed(o metav1.Object, asked, at int64) {
	if s, ok := t.stateOf(o); ok && o.GetName() != "" {
		r := record(o, s, s.op, asked)
		r.Outcome, r.Duration = "error", at-asked
		t.records = append(t.records, r)
	}
}

// Trace ends the capture and returns its records.
func (t *Tracker) Trace(end int64) []trace.Record {
	for _, k := range t.known {
		t.settle(k)
	}
	for i := range t.records {
		if r := &t.records[i]; r.Time >= 0 && r.Outcome == "" {
			r.Outcome, r.Duration = "censored", max(0, end-r.Time)
		}
	}
	t.records = append(t.records, trace.Record{Time: end, Op: trace.End, Duration: trace.Unknown})
	trace.Sort(t.records)
	return t.records
}

// uid returns the UID of an object known by name.
func (t *Tracker) uid(o metav1.Object) (types.UID, bool) {
	s, _ := t.stateOf(o)
	r := record(o, s, s.op, 0)
	uid, ok := t.uids[r.Key()]
	return uid, ok
}

// stateOf reads an object; false if it is not captured.
func (t *Tracker) stateOf(o metav1.Object) (state, bool) {
	switch o := o.(type) {
	case *corev1.PersistentVolumeClaim:
		return t.claim(o), true
	case *api.VolumeSnapshot:
		s := state{kind: trace.Snapshots, op: trace.Snapshot}
		if o.Spec.Source.PersistentVolumeClaimName != nil {
			s.source = o.Namespace + "/" + *o.Spec.Source.PersistentVolumeClaimName
		}
		if o.Spec.VolumeSnapshotClassName != nil {
			s.class = *o.Spec.VolumeSnapshotClassName
		}
		s.done = o.Status != nil && o.Status.ReadyToUse != nil && *o.Status.ReadyToUse
		return s, true
	case *storagev1.VolumeAttachment:
		s := state{kind: trace.Attachment, op: trace.Attach, node: o.Spec.NodeName, done: o.Status.Attached}
		if pv := o.Spec.Source.PersistentVolumeName; pv != nil {
			s.source = t.claims[*pv]
		}
		return s, true
	case *corev1.Pod:
		return pod(o)
	}
	return state{}, false
}

func (t *Tracker) claim(c *corev1.PersistentVolumeClaim) state {
	s := state{kind: trace.Volume, op: trace.Create, done: c.Status.Phase == corev1.ClaimBound,
		size: c.Spec.Resources.Requests.Storage().Value(), ready: c.Status.Capacity.Storage().Value()}
	if c.Status.AllocatedResourceStatuses[corev1.ResourceStorage] == corev1.PersistentVolumeClaimNodeResizePending {
		s.half = c.Status.AllocatedResources.Storage().Value()
	}
	if c.Spec.StorageClassName != nil {
		s.class = *c.Spec.StorageClassName
	}
	if c.Spec.VolumeAttributesClassName != nil {
		s.modified = *c.Spec.VolumeAttributesClassName
	}
	if c.Spec.VolumeName != "" {
		t.claims[c.Spec.VolumeName] = c.Namespace + "/" + c.Name
	}
	if of := c.Spec.DataSource; of != nil {
		s.source = c.Namespace + "/" + of.Name
		switch of.Kind {
		case "VolumeSnapshot":
			s.op = trace.Restore
		case "PersistentVolumeClaim":
			s.op = trace.Clone
		}
	}
	return s
}

// pod reads a pod. Pods without claims are not captured.
func pod(p *corev1.Pod) (state, bool) {
	s := state{kind: trace.Workload, op: trace.Create, node: p.Spec.NodeName}
	var claims []string
	for _, v := range p.Spec.Volumes {
		switch {
		case v.PersistentVolumeClaim != nil:
			claims = append(claims, p.Namespace+"/"+v.PersistentVolumeClaim.ClaimName)
		case v.Ephemeral != nil:
			claims = append(claims, p.Namespace+"/"+p.Name+"-"+v.Name)
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			s.done = true
		}
	}
	s.done = s.done || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
	s.source = strings.Join(claims, " ")
	return s, len(claims) > 0
}

func record(o metav1.Object, s state, what trace.Op, at int64) trace.Record {
	name := o.GetName()
	if o.GetNamespace() != "" {
		name = o.GetNamespace() + "/" + name
	}
	return trace.Record{Time: at, Op: what, Kind: s.kind, Object: name, Duration: trace.Unknown}
}

// first records an unknown object: created just now, or existing.
func (t *Tracker) first(o metav1.Object, s state, asked int64) *object {
	r := record(o, s, s.op, asked)
	created := o.GetCreationTimestamp()
	if !created.IsZero() && created.Time.Before(t.start.Truncate(time.Second)) {
		r.Time = min(-1, created.UnixNano()-t.start.UnixNano())
	}
	r.Source, r.Class, r.Size, r.Node = s.source, s.class, s.size, s.node
	k := &object{made: len(t.records), grown: none, half: none, removed: none, size: s.size, class: s.modified}
	t.records = append(t.records, r)
	t.known[string(o.GetUID())], t.uids[r.Key()] = k, o.GetUID()
	return k
}

// changes records the changes of an object.
func (t *Tracker) changes(o metav1.Object, k *object, s state, asked, at int64) {
	r := &t.records[k.made]
	if s.done {
		t.finish(k.made, at)
	}
	if r.Node == "" {
		r.Node = s.node
	}
	if r.Source == "" {
		r.Source = s.source
	}
	if s.kind != trace.Volume {
		return
	}
	if s.size > k.size {
		t.settle(k)
		grown := record(o, s, trace.Resize, asked)
		grown.Size = s.size
		k.size, k.grown = s.size, len(t.records)
		t.records = append(t.records, grown)
	}
	switch {
	case k.grown == none:
	case s.ready >= k.size:
		t.finish(k.grown, at)
		k.grown, k.half = none, none
	case s.half >= k.size && k.half == none:
		k.half = at
	}
	if s.modified != k.class {
		changed := record(o, s, trace.Modify, asked)
		changed.Class, k.class = s.modified, s.modified
		changed.Outcome = "ok" // the request: the claim's phase does not show the completion
		t.records = append(t.records, changed)
	}
}

// settle ends a resize that waits only for a mount.
func (t *Tracker) settle(k *object) {
	if k.grown != none && k.half != none {
		t.finish(k.grown, k.half)
	}
	k.half = none
}

// removing records that an object is being deleted.
func (t *Tracker) removing(o metav1.Object, k *object, s state, asked int64) {
	if k.removed != none {
		return
	}
	t.settle(k)
	what := trace.Delete
	if s.kind == trace.Attachment {
		what = trace.Detach
	}
	k.removed = len(t.records)
	t.records = append(t.records, record(o, s, what, asked))
}

// finish records that an operation is done.
func (t *Tracker) finish(i int, at int64) {
	if r := &t.records[i]; r.Time >= 0 && r.Outcome == "" {
		r.Outcome, r.Duration = "ok", max(0, at-r.Time)
	}
}
