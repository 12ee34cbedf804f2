package watch

import (
	"net/http"
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

// TestSinceOpen checks that objects of before the watch are neither read nor taken for changes of a gap.
func TestSinceOpen(t *testing.T) {
	pod := func(name, version string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version}}
	}
	whole := 0
	host := served{"pods": func(w http.ResponseWriter, r *http.Request) {
		if isMark(r) {
			listing(w, "100", pod("old", "7"))
			return
		}
		whole++
		listing(w, "200", pod("old", "7"), pod("last", "100"), pod("new", "120"))
	}}.start(t)
	w := &Watches{cfg: Config{Clock: op.NewClock()}, queue: newQueue()}
	s := &stream{w: w, src: Source{Kind: api.Pods, SinceOpen: true}}
	var err error
	if s.conn, err = api.Dial(host, true); err != nil {
		t.Fatal(err)
	}
	defer s.conn.Close()
	for _, step := range []struct {
		from    op.Time
		version string
		want    []string
	}{{op.Never, "100", nil}, {5, "200", []string{"new"}}} {
		if err := s.list(t.Context(), step.from); err != nil {
			t.Fatal(err)
		}
		it, _ := w.queue.pop()
		var got []string
		for _, o := range it.list {
			got = append(got, o.GetName())
		}
		if d := cmp.Diff(step.want, got); d != "" || s.version != step.version {
			t.Errorf("from %v: version %s, %s", step.from, s.version, d)
		}
	}
	if whole != 1 {
		t.Errorf("all objects were read %d times, want once", whole)
	}
}
