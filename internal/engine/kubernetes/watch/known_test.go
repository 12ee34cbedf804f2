package watch

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestKnownEvents checks that of the cluster's events only the identity is kept, that a second list repeats none of
// them, and that one which has expired is not reported as deleted.
func TestKnownEvents(t *testing.T) {
	var got []string
	source := Source{Kind: api.Events}
	w := &Watches{lags: newLags([]Source{source}), cfg: Config{Handler: func(e Event) {
		got = append(got, string(e.Type)+" "+e.Object.GetName()+" "+e.Object.GetResourceVersion())
	}}}
	s := &stream{w: w, src: source, known: map[objectKey]api.Object{}}
	event := func(name, version string) api.Object {
		return &corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name),
			ResourceVersion: version}, Message: "long"}
	}
	w.deliverList(item{stream: s, from: op.Never, list: []api.Object{event("a", "1"), event("b", "2"), event("c", "3")}})
	w.deliverList(item{stream: s, at: 2, from: 1, list: []api.Object{event("b", "2"), event("c", "4"), event("d", "5")}})
	want := []string{"LISTED a 1", "LISTED b 2", "LISTED c 3", "LISTED c 4", "LISTED d 5"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if len(s.known) != 3 {
		t.Errorf("%d events are known, want 3", len(s.known))
	}
	for _, o := range s.known {
		if _, ok := o.(*metav1.ObjectMeta); !ok {
			t.Errorf("%s is kept as %T", o.GetName(), o)
		}
	}
}
