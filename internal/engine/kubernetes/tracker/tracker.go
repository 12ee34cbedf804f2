// Package tracker follows the objects of a run through watch events and CSI calls. Each op observes the objects
// that it waits for: their milestones, the warnings about them, and the CSI calls of their driver.
package tracker

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
)

// Key identifies what an op follows: an object by its kind and name, or by its owner if its own name is not known
// in advance.
type Key struct {
	Subject Subject
	Name    string
}

// Subject says what a key names: an object of a kind, or objects by their owner.
type Subject string

// Key names the object, or the owner of the objects.
func (s Subject) Key(name string) Key { return Key{s, name} }

// Subjects of keys. Those with "Of" are identified by the owner.
const (
	Claim              Subject = "persistentvolumeclaims"
	Pod                Subject = "pods"
	VolumeOfClaim      Subject = "persistentvolume of claim"
	AttachmentOfVolume Subject = "volumeattachment of volume"
	Snapshot           Subject = "volumesnapshots"
	ContentOfSnapshot  Subject = "volumesnapshotcontent of snapshot"
	GroupSnapshot      Subject = "volumegroupsnapshots"
	SnapshotOfGroup    Subject = "volumesnapshot of group"
	EventsOf           Subject = "events of"
	PodsOfObject       Subject = "pods of object" // created by the controller of a manifest
)

// maxHistory is how many events are kept of an object. No object has more until it is ready.
const maxHistory = 32

// Tracker passes each watch event to the ops that follow its object, with the earlier events. It is safe for
// concurrent use and never blocks a watch.
type Tracker struct {
	namespace string
	nodeCalls atomic.Bool // a proxy sees calls of node services

	mu      sync.Mutex
	objects map[Key]*entry
	// unfollowed are keys of calls and of events that no op followed when the first came, oldest first.
	unfollowed map[Subject][]Key
}

// maxUnfollowed bounds the names for which calls and events are kept that no op follows. An op learns the name of its
// volume after the call, and those of pods that a controller creates after their first events.
var maxUnfollowed = map[Subject]int{CallsOf: 10000, EventsOf: 1000}

type entry struct {
	history []any // watch events or CSI calls
	feeds   map[*Feed]bool
}

// deleted says whether the object is deleted or was never seen.
func (o *entry) deleted() bool {
	if len(o.history) == 0 {
		return true
	}
	ev, ok := o.history[len(o.history)-1].(watch.Event)
	return ok && ev.Type == watch.Deleted
}

// compact keeps the last event of each object that is not deleted.
func (o *entry) compact() {
	var kept []any
	seen := map[types.UID]bool{}
	for _, h := range slices.Backward(o.history) {
		ev, ok := h.(watch.Event)
		if !ok || seen[ev.Object.GetUID()] {
			continue
		}
		seen[ev.Object.GetUID()] = true
		if ev.Type != watch.Deleted {
			kept = append(kept, ev)
		}
	}
	slices.Reverse(kept)
	o.history = kept
}

// New returns a tracker of the objects in a namespace.
func New(namespace string) *Tracker {
	return &Tracker{namespace: namespace, objects: map[Key]*entry{}, unfollowed: map[Subject][]Key{}}
}

// See records an event of a watch.
func (t *Tracker) See(ev watch.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.keys(ev.Object) {
		t.publish(k, ev)
	}
}

// publish passes v to the feeds of a key and keeps it for later ones. t.mu is held.
func (t *Tracker) publish(k Key, v any) {
	if most := maxUnfollowed[k.Subject]; most > 0 && t.objects[k] == nil {
		t.unfollowed[k.Subject] = append(t.unfollowed[k.Subject], k)
		t.forget(k.Subject, most)
	}
	o := t.entryOf(k)
	if len(o.history) == maxHistory {
		o.history = append(o.history[:0], o.history[1:]...)
	}
	o.history = append(o.history, v)
	for f := range o.feeds {
		f.Put(v)
	}
	if len(o.feeds) == 0 && o.deleted() {
		delete(t.objects, k)
	}
}

// forget forgets the oldest keys of a subject, unless an op follows them. t.mu is held.
func (t *Tracker) forget(s Subject, most int) {
	for len(t.unfollowed[s]) > most {
		k := t.unfollowed[s][0]
		if o := t.objects[k]; o != nil && len(o.feeds) == 0 {
			delete(t.objects, k)
		}
		t.unfollowed[s] = t.unfollowed[s][1:]
	}
}

func (t *Tracker) entryOf(k Key) *entry {
	o := t.objects[k]
	if o == nil {
		o = &entry{feeds: map[*Feed]bool{}}
		t.objects[k] = o
	}
	return o
}

// keys returns the keys of an object.
func (t *Tracker) keys(object any) []Key {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return []Key{Claim.Key(o.Name)}
	case *corev1.Pod:
		if object := o.Labels[names.LabelObject]; object != "" && len(o.OwnerReferences) > 0 {
			return []Key{Pod.Key(o.Name), PodsOfObject.Key(object)}
		}
		return []Key{Pod.Key(o.Name)}
	case *corev1.PersistentVolume:
		if c := o.Spec.ClaimRef; c != nil && c.Namespace == t.namespace {
			return []Key{VolumeOfClaim.Key(c.Name)}
		}
	case *storagev1.VolumeAttachment:
		if v := o.Spec.Source.PersistentVolumeName; v != nil {
			return []Key{AttachmentOfVolume.Key(*v)}
		}
	case *corev1.Event:
		return []Key{EventsOf.Key(o.InvolvedObject.Name)}
	case *api.VolumeSnapshot:
		list := []Key{Snapshot.Key(o.Name)}
		for _, owner := range o.OwnerReferences {
			if owner.Kind == "VolumeGroupSnapshot" {
				list = append(list, SnapshotOfGroup.Key(owner.Name))
			}
		}
		return list
	case *api.VolumeSnapshotContent:
		if r := o.Spec.VolumeSnapshotRef; r.Namespace == t.namespace {
			return []Key{ContentOfSnapshot.Key(r.Name)}
		}
	case *api.VolumeGroupSnapshot:
		return []Key{GroupSnapshot.Key(o.Name)}
	}
	return nil
}

// Latest returns the last state of an object; nil if it is deleted or was never seen.
func (t *Tracker) Latest(k Key) any {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.objects[k]
	if o == nil || len(o.history) == 0 {
		return nil
	}
	if last, ok := o.history[len(o.history)-1].(watch.Event); ok && last.Type != watch.Deleted {
		return last.Object
	}
	return nil
}

// Feed has the events of the objects that one op follows, in order for each object.
type Feed struct {
	tracker *Tracker
	keys    map[Key]bool

	mu     sync.Mutex
	queue  []any
	notify chan struct{}
}

// Follow begins a feed with the known events of the keys.
func (t *Tracker) Follow(keys ...Key) *Feed {
	f := &Feed{tracker: t, keys: map[Key]bool{}, notify: make(chan struct{}, 1)}
	for _, k := range keys {
		f.Add(k)
	}
	return f
}

// Add follows a further key.
func (f *Feed) Add(k Key) {
	t := f.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.keys[k] {
		return
	}
	f.keys[k] = true
	o := t.entryOf(k)
	o.feeds[f] = true
	for _, ev := range o.history {
		f.Put(ev)
	}
}

// Put appends a watch event, or a message from a goroutine of the op.
func (f *Feed) Put(v any) {
	f.mu.Lock()
	f.queue = append(f.queue, v)
	f.mu.Unlock()
	select {
	case f.notify <- struct{}{}:
	default:
	}
}

// Drop discards the queued events.
func (f *Feed) Drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = nil
}

// Next returns the next event; its error is that of ctx.
func (f *Feed) Next(ctx context.Context) (any, error) {
	for {
		f.mu.Lock()
		if len(f.queue) > 0 {
			v := f.queue[0]
			f.queue = f.queue[1:]
			f.mu.Unlock()
			return v, nil
		}
		f.mu.Unlock()
		select {
		case <-f.notify:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Close ends the feed. Of what no other op follows it forgets deleted objects, events, calls, and earlier states, so that
// memory does not grow with the number of ops.
func (f *Feed) Close() {
	t := f.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range f.keys {
		o := t.objects[k]
		delete(o.feeds, f)
		switch {
		case len(o.feeds) > 0:
		case o.deleted() || maxUnfollowed[k.Subject] > 0:
			delete(t.objects, k)
		default:
			o.compact()
		}
	}
	clear(f.keys)
}

// Pods lists the run's pods by name.
func (t *Tracker) Pods() []*corev1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*corev1.Pod
	for k, o := range t.objects {
		if k.Subject != Pod || len(o.history) == 0 {
			continue
		}
		if ev, ok := o.history[len(o.history)-1].(watch.Event); ok && ev.Type != watch.Deleted {
			list = append(list, ev.Object.(*corev1.Pod))
		}
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// PastAttachments maps the known attachments of a volume to their last state; nil for a deleted one.
func (t *Tracker) PastAttachments(volume string) map[types.UID]*storagev1.VolumeAttachment {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.objects[AttachmentOfVolume.Key(volume)]
	if o == nil {
		return nil
	}
	list := map[types.UID]*storagev1.VolumeAttachment{}
	for _, h := range o.history {
		ev, ok := h.(watch.Event)
		if !ok {
			continue
		}
		if va := ev.Object.(*storagev1.VolumeAttachment); ev.Type == watch.Deleted {
			list[va.UID] = nil
		} else {
			list[va.UID] = va
		}
	}
	return list
}

// UIDs returns the UIDs of the known objects of a key.
func (t *Tracker) UIDs(k Key) map[types.UID]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := map[types.UID]bool{}
	if o := t.objects[k]; o != nil {
		for _, h := range o.history {
			if ev, ok := h.(watch.Event); ok {
				list[ev.Object.GetUID()] = true
			}
		}
	}
	return list
}

// Attachments lists the attachments of a volume that are not deleted.
func (t *Tracker) Attachments(volume string) []*storagev1.VolumeAttachment {
	var list []*storagev1.VolumeAttachment
	for _, va := range t.PastAttachments(volume) {
		if va != nil {
			list = append(list, va)
		}
	}
	return list
}

// ObjectKey returns the key of a manifest's object.
func ObjectKey(k api.Kind, namespace, name string) Key {
	return Subject("object " + k.String()).Key(namespace + "/" + name)
}

// SeeObject records an event of a manifest's object.
func (t *Tracker) SeeObject(k Key, ev watch.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.publish(k, ev)
}

// ClaimsOfObject lists the claims that the controller of an object created, and the object itself if it is a claim.
func (t *Tracker) ClaimsOfObject(object, name string) []*corev1.PersistentVolumeClaim {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*corev1.PersistentVolumeClaim
	for k, o := range t.objects {
		if k.Subject != Claim || len(o.history) == 0 {
			continue
		}
		ev, ok := o.history[len(o.history)-1].(watch.Event)
		if !ok || ev.Type == watch.Deleted {
			continue
		}
		if c := ev.Object.(*corev1.PersistentVolumeClaim); c.Labels[names.LabelObject] == object || c.Name == name {
			list = append(list, c)
		}
	}
	return list
}
