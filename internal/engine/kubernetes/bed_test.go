//go:build e2e

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

// bed is an opened engine on the test bed, in its own namespace.
type bed struct {
	t      *testing.T
	engine *Engine
	client *api.Client
	config *rest.Config
	clock  op.Clock
	ledger *enginetest.Ledger
	n      int64
	mu     sync.Mutex
}

// opTimeout bounds each op of these tests.
const opTimeout = 90 * time.Second

func newBed(t *testing.T) *bed {
	t.Helper()
	config := testBed(t)
	client, err := api.New(config, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, client, "actions-")
	b := &bed{t: t, client: client, config: config, clock: op.NewClock(), ledger: &enginetest.Ledger{}}
	b.engine = New(Options{Config: config, Namespace: ns, Image: productImage()})
	s := engine.Session{RunID: fmt.Sprintf("t%x", time.Now().UnixNano()&0xffffffff), Clock: b.clock, Ledger: b.ledger,
		Sink: quietSink{t}, Dir: t.TempDir(),
		Needs: engine.Needs{Kinds: map[op.Kind]bool{op.Create: true, op.Delete: true}}}
	if err := b.engine.Open(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(b.engine.Teardown(ctx, b.ledger), b.engine.Close()); err != nil {
			t.Error(err)
		}
		if open := b.ledger.Open(); len(open) > 0 {
			t.Errorf("the ledger still lists %v", open)
		}
		if left := leaks(t, client, ns); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
		b.uncordoned()
	})
	return b
}

// uncordoned checks that no node is left cordoned.
func (b *bed) uncordoned() {
	b.t.Helper()
	list, _, err := b.client.List(context.WithoutCancel(b.t.Context()), api.Nodes, "", metav1.ListOptions{})
	if err != nil {
		b.t.Fatal(err)
	}
	for _, o := range list {
		if o.(*corev1.Node).Spec.Unschedulable {
			b.t.Errorf("node %s is still cordoned", o.GetName())
		}
	}
}

// do executes a request as the loop does.
func (b *bed) do(ctx context.Context, r engine.Request) (op.Op, []engine.Object, error) {
	b.mu.Lock()
	b.n++
	r.ID = b.n
	b.mu.Unlock()
	if r.Name == "" {
		r.Name = fmt.Sprintf("op-%d", r.ID)
	}
	if err := b.engine.Prepare(r); err != nil {
		return op.Op{}, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, opTimeout)
	defer cancel()
	tr := op.NewTrace(b.clock)
	o := op.Op{Started: b.clock.Now()}
	made, err := b.engine.Do(ctx, enginetest.Complete(r), tr)
	o.Ended = b.clock.Now()
	tr.Fill(&o)
	enginetest.CheckMilestones(b.t, o)
	return o, made, err
}

// must is do for a request that has to succeed.
func (b *bed) must(r engine.Request) (op.Op, engine.Object) {
	b.t.Helper()
	o, made, err := b.do(b.t.Context(), r)
	if err != nil {
		b.t.Fatal(err)
	}
	if len(made) == 0 {
		return o, engine.Object{}
	}
	return o, made[0]
}

// fails checks that a request is refused with a code.
func (b *bed) fails(r engine.Request, code string) {
	b.t.Helper()
	_, _, err := b.do(b.t.Context(), r)
	var coded *engine.Error
	if !errors.As(err, &coded) || coded.Code != code {
		b.t.Errorf("%v, want %s", err, code)
	}
}

// has checks that an op has milestones, one not before another.
func (b *bed) has(o op.Op, names ...string) {
	b.t.Helper()
	at := op.Never
	for _, n := range names {
		m := o.Milestone(n)
		if !m.Known() {
			b.t.Errorf("no milestone %s among %v", n, o.Milestones)
			continue
		}
		if m+op.Time(time.Second) < at { // watches may be late
			b.t.Errorf("%s at %d comes before those that it follows (%d)", n, m, at)
		}
		at = max(at, m)
	}
}

func (b *bed) claim(class string) corev1.PersistentVolumeClaim {
	return corev1.PersistentVolumeClaim{Spec: corev1.PersistentVolumeClaimSpec{
		StorageClassName: &class, AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("320Mi")}},
	}}
}

func (b *bed) volume(name, class string) engine.Object {
	b.t.Helper()
	_, v := b.must(engine.Request{Name: name, Action: "v", Volume: &engine.Volume{Claim: b.claim(class), Attach: true}})
	return v
}

// node returns the node of an object's pod.
func (b *bed) node(object string) string {
	b.t.Helper()
	p := new(corev1.Pod)
	if _, err := b.client.Get(b.t.Context(), api.Pods, b.engine.Namespace, b.engine.Name(object), p); err != nil {
		b.t.Fatal(err)
	}
	return p.Spec.NodeName
}

// pods returns the pods of the namespace that a selector selects.
func (b *bed) pods(selector string) []*corev1.Pod {
	b.t.Helper()
	list, _, err := b.client.List(b.t.Context(), api.Pods, b.engine.Namespace,
		metav1.ListOptions{LabelSelector: selector})
	if err != nil {
		b.t.Fatal(err)
	}
	var pods []*corev1.Pod
	for _, o := range list {
		pods = append(pods, o.(*corev1.Pod))
	}
	return pods
}

// quietSink fails a test if the platform fails.
type quietSink struct{ t *testing.T }

func (s quietSink) Started(op.InstanceStart)                {}
func (s quietSink) Ended(op.InstanceEnd)                    {}
func (s quietSink) Sample(op.Sample)                        {}
func (s quietSink) Machine(op.Machine)                      {}
func (s quietSink) Volume(op.VolumeReading)                 {}
func (s quietSink) Canary(string, string, []op.CanaryIO)    {}
func (s quietSink) Log(string, string)                      {}
func (s quietSink) Failed(err error)                        { s.t.Error(err) }
func (s quietSink) Output(_, _, _ string, data []byte) int  { return len(data) }
func (s quietSink) Cut(string, string, string, int64, bool) {}
