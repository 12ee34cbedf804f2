package kubernetes

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
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
)

// key names what an op follows: an object by its kind and name, or an object
// by what it belongs to, since its own name is not known beforehand.
type key struct {
	what subject
	name string
}

// subject says what a key names: an object of a kind, or objects by their owner.
type subject string

// Key names the object, or the owner of the objects.
func (s subject) Key(name string) key { return key{s, name} }

// What keys are about. Those with "Of" name the owner.
const (
	claims             subject = "persistentvolumeclaims"
	pods               subject = "pods"
	volumeOfClaim      subject = "persistentvolume of claim"
	attachmentOfVolume subject = "volumeattachment of volume"
	snapshots          subject = "volumesnapshots"
	contentOfSnapshot  subject = "volumesnapshotcontent of snapshot"
	groups             subject = "volumegroupsnapshots"
	memberOfGroup      subject = "volumesnapshot of group"
	eventsOf           subject = "events of"
	podsOfObject       subject = "pods of object" // made by the controller of a manifest
)

// keepEvents is how many of the latest events of an object are kept for those
// who come later; an object's whole youth is shorter.
const keepEvents = 32

// tracker hands each watch event to the ops that follow its object, with what
// came before. It is safe for concurrent use, and never blocks a watch.
type tracker struct {
	namespace string
	nodes     atomic.Bool // calls of node services are seen

	mu      sync.Mutex
	objects map[key]*tracked
	unasked []key // of calls, in order of the first
}

type tracked struct {
	history []any // watch events, or calls of a driver
	feeds   map[*feed]bool
}

// gone says whether the last that is known of an object is its deletion, or
// nothing is known.
func (o *tracked) gone() bool {
	if len(o.history) == 0 {
		return true
	}
	ev, ok := o.history[len(o.history)-1].(watch.Event)
	return ok && ev.Type == watch.Deleted
}

func newTracker(namespace string) *tracker {
	return &tracker{namespace: namespace, objects: map[key]*tracked{}}
}

// see takes one event from a watch.
func (t *tracker) see(ev watch.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range t.keys(ev.Object) {
		t.put(k, ev)
	}
}

// put hands something on to those who follow a key, and keeps it for those who
// will. t.mu is held.
func (t *tracker) put(k key, v any) {
	o := t.at(k)
	if len(o.history) == keepEvents {
		o.history = append(o.history[:0], o.history[1:]...)
	}
	o.history = append(o.history, v)
	for f := range o.feeds {
		f.put(v)
	}
	if len(o.feeds) == 0 && o.gone() {
		delete(t.objects, k)
	}
}

func (t *tracker) at(k key) *tracked {
	o := t.objects[k]
	if o == nil {
		o = &tracked{feeds: map[*feed]bool{}}
		t.objects[k] = o
	}
	return o
}

// keys are what an object may be followed by.
func (t *tracker) keys(object any) []key {
	switch o := object.(type) {
	case *corev1.PersistentVolumeClaim:
		return []key{claims.Key(o.Name)}
	case *corev1.Pod:
		if object := o.Labels[LabelObject]; object != "" && len(o.OwnerReferences) > 0 {
			return []key{pods.Key(o.Name), podsOfObject.Key(object)}
		}
		return []key{pods.Key(o.Name)}
	case *corev1.PersistentVolume:
		if c := o.Spec.ClaimRef; c != nil && c.Namespace == t.namespace {
			return []key{volumeOfClaim.Key(c.Name)}
		}
	case *storagev1.VolumeAttachment:
		if v := o.Spec.Source.PersistentVolumeName; v != nil {
			return []key{attachmentOfVolume.Key(*v)}
		}
	case *corev1.Event:
		return []key{eventsOf.Key(o.InvolvedObject.Name)}
	case *api.VolumeSnapshot:
		list := []key{snapshots.Key(o.Name)}
		for _, owner := range o.OwnerReferences {
			if owner.Kind == "VolumeGroupSnapshot" {
				list = append(list, memberOfGroup.Key(owner.Name))
			}
		}
		return list
	case *api.VolumeSnapshotContent:
		if r := o.Spec.VolumeSnapshotRef; r.Namespace == t.namespace {
			return []key{contentOfSnapshot.Key(r.Name)}
		}
	case *api.VolumeGroupSnapshot:
		return []key{groups.Key(o.Name)}
	}
	return nil
}

// latest is the last object seen under a key that is not deleted; nil if none.
func (t *tracker) latest(k key) any {
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

// feed is the events of the objects that one op follows, in order for each.
type feed struct {
	tracker *tracker
	keys    map[key]bool

	mu     sync.Mutex
	queue  []any
	notify chan struct{}
}

// follow begins a feed; what is known of the keys already comes first.
func (t *tracker) follow(keys ...key) *feed {
	f := &feed{tracker: t, keys: map[key]bool{}, notify: make(chan struct{}, 1)}
	for _, k := range keys {
		f.add(k)
	}
	return f
}

// add follows a further key.
func (f *feed) add(k key) {
	t := f.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	if f.keys[k] {
		return
	}
	f.keys[k] = true
	o := t.at(k)
	o.feeds[f] = true
	for _, ev := range o.history {
		f.put(ev)
	}
}

// put appends something to look at: a watch event, or what a goroutine of the
// op itself has to say.
func (f *feed) put(v any) {
	f.mu.Lock()
	f.queue = append(f.queue, v)
	f.mu.Unlock()
	select {
	case f.notify <- struct{}{}:
	default:
	}
}

// drop forgets what waits: what happened before is of no interest.
func (f *feed) drop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.queue = nil
}

// next waits for the next thing; its error is the cause of ctx's end.
func (f *feed) next(ctx context.Context) (any, error) {
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

// close ends the feed and lets go of objects that are gone.
func (f *feed) close() {
	t := f.tracker
	t.mu.Lock()
	defer t.mu.Unlock()
	for k := range f.keys {
		o := t.objects[k]
		delete(o.feeds, f)
		if (o.gone() || k.what == callsOf) && len(o.feeds) == 0 {
			delete(t.objects, k)
		}
	}
}

// livePods lists the run's pods in order of their names.
func (t *tracker) livePods() []*corev1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*corev1.Pod
	for k, o := range t.objects {
		if k.what != pods || len(o.history) == 0 {
			continue
		}
		if ev, ok := o.history[len(o.history)-1].(watch.Event); ok && ev.Type != watch.Deleted {
			list = append(list, ev.Object.(*corev1.Pod))
		}
	}
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// pastAttachments maps those of a volume that are remembered to their last
// state; nil for one that is gone.
func (t *tracker) pastAttachments(volume string) map[types.UID]*storagev1.VolumeAttachment {
	t.mu.Lock()
	defer t.mu.Unlock()
	o := t.objects[attachmentOfVolume.Key(volume)]
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

// uids are those of the objects that are remembered under a key.
func (t *tracker) uids(k key) map[types.UID]bool {
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

// attachments lists those of a volume that are not known to be gone.
func (t *tracker) attachments(volume string) []*storagev1.VolumeAttachment {
	var list []*storagev1.VolumeAttachment
	for _, va := range t.pastAttachments(volume) {
		if va != nil {
			list = append(list, va)
		}
	}
	return list
}

// keyOf is what an object of a manifest is followed by, beside what one of its
// kind is followed by in any case.
func keyOf(k api.Kind, namespace, name string) key {
	return subject("object " + k.String()).Key(namespace + "/" + name)
}

// keep takes an event of an object that goes by no other key.
func (t *tracker) keep(k key, ev watch.Event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.put(k, ev)
}

// claimsOfObject lists the claims that the controller of an object has made, or
// that are the object.
func (t *tracker) claimsOfObject(object, name string) []*corev1.PersistentVolumeClaim {
	t.mu.Lock()
	defer t.mu.Unlock()
	var list []*corev1.PersistentVolumeClaim
	for k, o := range t.objects {
		if k.what != claims || len(o.history) == 0 {
			continue
		}
		ev, ok := o.history[len(o.history)-1].(watch.Event)
		if !ok || ev.Type == watch.Deleted {
			continue
		}
		if c := ev.Object.(*corev1.PersistentVolumeClaim); c.Labels[LabelObject] == object || c.Name == name {
			list = append(list, c)
		}
	}
	return list
}
