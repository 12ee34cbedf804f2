package watch

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// deliver decodes the queued items and calls the handler until the queue is closed.
func (w *Watches) deliver() {
	defer close(w.done)
	for {
		it, ok := w.queue.pop()
		if !ok {
			return
		}
		switch {
		case it.gap != nil:
			if w.cfg.Gap != nil {
				w.cfg.Gap(*it.gap)
			}
		case it.frame != nil:
			w.deliverFrame(it)
		default:
			w.deliverList(it)
		}
	}
}

func (w *Watches) deliverFrame(it item) {
	s := it.stream
	typ, obj, err := decodeFrame(s.src.Kind, it.frame)
	if err != nil {
		it.session.cancel(&brokenError{err}) // the reader lists again
		return
	}
	switch typ {
	case Bookmark:
		w.emit(it, typ, obj, op.Never)
		return
	case Deleted:
		delete(s.known, keyOf(obj))
	default:
		s.known[keyOf(obj)] = remembered(obj)
	}
	if it.mayBeInGap(obj.GetResourceVersion()) {
		w.emit(it, typ, obj, it.session.from)
		return
	}
	w.lags.saw(s.src.String(), obj.GetResourceVersion(), it.at)
	w.emit(it, typ, obj, op.Never)
}

// remembered returns what is kept of an object to find its changes after a gap. Of events only the identity is kept: the
// server has each for an hour, so that they would grow with the ops of a run.
func remembered(obj api.Object) api.Object {
	if _, ok := obj.(*corev1.Event); !ok {
		return obj
	}
	return &metav1.ObjectMeta{Namespace: obj.GetNamespace(), Name: obj.GetName(), UID: obj.GetUID(),
		ResourceVersion: obj.GetResourceVersion()}
}

// mayBeInGap says whether the change may have happened during the gap.
func (it *item) mayBeInGap(version string) bool {
	if it.late {
		return true
	}
	mark := it.session.mark.Load()
	if mark == nil {
		return false
	}
	c, err := resourceversion.CompareResourceVersion(version, *mark)
	return err != nil || c <= 0
}

// deliverList delivers the first list, and of later lists the differences.
func (w *Watches) deliverList(it item) {
	s := it.stream
	before := s.known
	s.known = make(map[objectKey]api.Object, len(it.list))
	var changed []api.Object
	for _, obj := range it.list {
		k := keyOf(obj)
		s.known[k] = remembered(obj)
		old := before[k]
		same := old != nil && old.GetUID() == obj.GetUID()
		if same {
			delete(before, k)
		}
		if !same || old.GetResourceVersion() != obj.GetResourceVersion() {
			changed = append(changed, obj)
		}
	}
	for _, old := range sorted(before) { // deleted, or replaced by another object of the name
		if _, identity := old.(*metav1.ObjectMeta); identity {
			continue // an event that has expired
		}
		w.emit(it, Deleted, old, it.from)
	}
	for _, obj := range changed {
		w.emit(it, Listed, obj, it.from)
	}
}

func sorted(m map[objectKey]api.Object) []api.Object {
	list := make([]api.Object, 0, len(m))
	for _, o := range m {
		list = append(list, o)
	}
	slices.SortFunc(list, func(a, b api.Object) int {
		return cmp.Or(cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	return list
}

// emit calls the handler. from is the last frame before the gap that has the event, or Never.
func (w *Watches) emit(it item, typ Type, obj api.Object, from op.Time) {
	e := Event{Kind: it.stream.src.Kind, Type: typ, Object: obj, At: it.at}
	e.Err, e.Lag = w.lags.bound(e.Kind.String(), it.at, obj.GetResourceVersion())
	if from.Known() {
		half := (it.at - from) / 2
		e.Interval, e.From, e.To = true, from, it.at
		e.At -= half
		// The frame at From was late too, so that the change may have happened earlier by as much.
		e.Err += int64(it.at - from - half)
	}
	w.cfg.Handler(e)
}
