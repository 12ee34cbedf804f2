package kubernetes

import (
	"path/filepath"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/test/apitest"
)

// openEntries is a ledger in memory.
type openEntries struct {
	open []op.LedgerEntry
}

func (l *openEntries) Add(e op.LedgerEntry) error {
	l.open = append(l.open, e)
	return nil
}

func (l *openEntries) Note(e op.LedgerEntry) error { return l.Add(e) }

func (l *openEntries) Done(kind, name string) error {
	l.open = slices.DeleteFunc(l.open, func(e op.LedgerEntry) bool { return e.Kind == kind && e.Name == name })
	return nil
}

func (l *openEntries) Open() []op.LedgerEntry { return slices.Clone(l.open) }

// TestAnnotations: objects that the run changes but did not create are annotated by the same
// request.
func TestAnnotations(t *testing.T) {
	s := apitest.Start(t)
	own := owned.New("0abc")
	own.Namespace, own.Server = "ns", s.URL
	own.Scratch = filepath.Join(t.TempDir(), owned.ScratchName(own.RunID))
	options := Options{Config: &rest.Config{Host: s.URL}, Namespace: "ns", Identity: own}
	e := New(options)
	ledger := &openEntries{}
	unschedulable := func() bool {
		o := s.Get("/api/v1/nodes/n")
		spec, _ := o.Object["spec"].(map[string]any)
		return spec["unschedulable"] == true
	}
	e.Session.Ledger, e.Ctx = ledger, t.Context()
	if err := e.EnsureClient(); err != nil {
		t.Fatal(err)
	}
	s.Add(t, "/api/v1/nodes/n", `{}`)
	s.Add(t, "/api/v1/persistentvolumes/pvc-1", `{"metadata":{"uid":"u"}}`)
	if err := e.disruptor.Cordon(t.Context(), "n", op.NewTrace(op.NewClock())); err != nil {
		t.Fatal(err)
	}
	if got := s.Get("/api/v1/nodes/n").GetAnnotations()[core.CordonAnnotation]; got != e.Mark() || !unschedulable() ||
		len(s.Writes()) != 1 {
		t.Errorf("a cordoned node has %q after %v", got, s.Writes())
	}
	if err := New(options).Teardown(t.Context(), ledger); err != nil || unschedulable() || len(ledger.open) > 0 {
		t.Errorf("%v; cordoned %v, ledger %v", err, unschedulable(), ledger.open)
	}
	e.MarkRetained(api.PersistentVolumes,
		&corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1", UID: "u"}})
	e.Annotating.Wait()
	if got := s.Get("/api/v1/persistentvolumes/pvc-1").GetAnnotations()[core.RetainedAnnotation]; got != e.Mark() {
		t.Errorf("a retained volume has %q", got)
	}
}
