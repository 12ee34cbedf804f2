//go:build e2e

package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lagprobe"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/lease"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/turns"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

// quiet is a sink for runs without workloads.
type quiet struct{ t *testing.T }

func (quiet) Started(op.InstanceStart)                {}
func (quiet) Ended(op.InstanceEnd)                    {}
func (quiet) Sample(op.Sample)                        {}
func (quiet) Machine(op.Machine)                      {}
func (quiet) Volume(op.VolumeReading)                 {}
func (quiet) Canary(string, string, []op.CanaryIO)    {}
func (q quiet) Log(source, line string)               { fmt.Fprintln(q.t.Output(), source, line) }
func (q quiet) Failed(err error)                      { q.t.Error(err) }
func (quiet) Output(_, _, _ string, data []byte) int  { return len(data) }
func (quiet) Cut(string, string, string, int64, bool) {}

// runOn is one run on the driver null, with its engine only.
type runOn struct {
	*Engine
	t      *testing.T
	id     string
	queue  engine.Queue
	ledger *enginetest.Ledger
}

func newRun(t *testing.T, config *rest.Config, ns, id string, policy v1alpha1.QueuePolicy) *runOn {
	r := &runOn{Engine: New(Options{Config: config, Namespace: ns, Image: productImage()}),
		t: t, id: id, queue: engine.Queue{Policy: policy, Limit: time.Minute}, ledger: &enginetest.Ledger{}}
	t.Cleanup(r.end)
	return r
}

func (r *runOn) open() error {
	return r.Open(r.t.Context(),
		engine.Session{RunID: r.id, Clock: op.NewClock(), Ledger: r.ledger, Sink: quiet{r.t}, Dir: r.t.TempDir(),
			Queue: r.queue, StorageClasses: map[string]storagev1.StorageClass{"null": {}}})
}

func (r *runOn) end() {
	ctx := context.WithoutCancel(r.t.Context())
	if err := errors.Join(r.Teardown(ctx, r.ledger), r.Close()); err != nil {
		r.t.Errorf("run %s: %v", r.id, err)
	}
	if left := r.ledger.Open(); len(left) > 0 {
		r.t.Errorf("run %s: the ledger still lists %v", r.id, left)
	}
}

// concurrent returns the run's findings about other runs; the test bed has further users.
func (r *runOn) concurrent() string {
	var all []string
	for _, f := range r.leases.Findings() {
		if f.Name == "concurrentRun" {
			all = append(all, f.Evidence)
		}
	}
	return strings.Join(all, "\n")
}

// TestTwoRuns: a second run on a driver is refused, with the first one's ID; one that shares it continues, and both
// report it; those that wait get the driver one after the other; the Lease of a dead run is taken over; in the end no
// Lease is left.
func TestTwoRuns(t *testing.T) {
	t.Parallel()
	config := testBed(t)
	client, err := api.New(config, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	ns := namespace(t, client, "two-runs-")
	t.Run("at once", func(t *testing.T) {
		first := newRun(t, config, ns, "0000aaaa", v1alpha1.QueueFail)
		if err := first.open(); err != nil {
			t.Fatal(err)
		}
		second := newRun(t, config, ns, "0000bbbb", v1alpha1.QueueFail)
		err := second.open()
		var coded *engine.Error
		if !errors.As(err, &coded) || coded.Code != "InUse" || !strings.Contains(err.Error(), "run 0000aaaa") ||
			!strings.Contains(err.Error(), "--concurrent") {
			t.Fatalf("the second run: %v; want it refused for the first", err)
		}
		third := newRun(t, config, ns, "0000cccc", v1alpha1.QueueShare)
		if err := third.open(); err != nil {
			t.Fatalf("with leave: %v", err)
		}
		if got := third.concurrent(); !strings.Contains(got, "run 0000aaaa") {
			t.Errorf("the third run says %q, want the first named", got)
		}
		for deadline := time.Now().Add(3 * lease.RenewInterval); !strings.Contains(first.concurrent(), "0000cccc") &&
			time.Now().Before(deadline); {
			time.Sleep(100 * time.Millisecond)
		}
		if got := first.concurrent(); !strings.Contains(got, "run 0000cccc") {
			t.Errorf("the first run says %q, want the third named", got)
		}
	})
	t.Run("one after the other", func(t *testing.T) { testQueue(t, config, client, ns) })
	t.Run("a dead one", func(t *testing.T) {
		dead, long := "0000dddd", metav1.NewMicroTime(time.Now().Add(time.Hour)) // its clock was wrong, too
		l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: core.LeaseName("null.csi.cnsbench.dev"),
			Labels: map[string]string{names.LabelRun: dead}},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &dead, RenewTime: &long}}
		if _, err := client.Create(t.Context(), core.Leases, ns, l, nil); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		next := newRun(t, config, ns, "0000eeee", v1alpha1.QueueFail)
		if err := next.open(); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begun); took < lease.Duration {
			t.Errorf("it was taken over after %v, want not before %v", took, lease.Duration)
		}
		if got := next.concurrent(); strings.Contains(got, dead) {
			t.Errorf("a dead run is said to have been at work: %s", got)
		}
	})
	t.Run("in two namespaces", func(t *testing.T) {
		elsewhere := namespace(t, client, "two-runs-")
		here := newRun(t, config, ns, "0000aaab", v1alpha1.QueueFail)
		there := newRun(t, config, elsewhere, "0000aaac", v1alpha1.QueueFail)
		if err := errors.Join(here.open(), there.open()); err != nil {
			t.Fatal(err)
		}
		if _, _, err := there.do(t.Context(),
			engine.Request{Name: "vol-0", Action: "vol", Volume: &engine.Volume{Claim: claimOf("null")}}); err != nil {
			t.Fatal(err)
		}
		want := "run 0000aaac (in namespace " + elsewhere + ")"
		for deadline := time.Now().Add(10 * time.Second); !strings.Contains(here.concurrent(), want) &&
			time.Now().Before(deadline); {
			time.Sleep(100 * time.Millisecond)
		}
		if got := here.concurrent(); !strings.Contains(got, want) {
			t.Errorf("the run says %q, want %q in it", got, want)
		}
	})
	list, _, err := client.List(t.Context(), core.Leases, ns, metav1.ListOptions{})
	if err != nil || len(list) > 0 {
		t.Errorf("%d Leases are left, error %v", len(list), err)
	}
}

// testQueue has runs wait for a driver: in their order, until the operator gives one its turn, and not beyond the limit.
func testQueue(t *testing.T, config *rest.Config, client *api.Client, ns string) {
	t.Helper()
	holder := newRun(t, config, ns, "0000f001", v1alpha1.QueueWait)
	if err := holder.open(); err != nil {
		t.Fatal(err)
	}
	late := newRun(t, config, ns, "0000f002", v1alpha1.QueueWait)
	late.queue.Limit = 2 * time.Second
	var coded *engine.Error
	if err := late.open(); !errors.As(err, &coded) || coded.Code != "InUse" || !strings.Contains(err.Error(),
		"run 0000f001") || !strings.Contains(err.Error(), "place 1 in the queue after 2s") {
		t.Errorf("beyond the limit: %v", err)
	}
	opened := make(chan string, 2)
	var waiting []*runOn
	for _, id := range []string{"0000f004", "0000f003"} {
		r := newRun(t, config, ns, id, v1alpha1.QueueWait)
		r.queue.Operated = id == "0000f003"
		waiting = append(waiting, r)
		go func() {
			if err := r.open(); err != nil {
				t.Errorf("run %s: %v", id, err)
			}
			opened <- id
		}()
		time.Sleep(2 * time.Second) // tickets are ordered by seconds
	}
	holder.end()
	if got := <-opened; got != waiting[0].id {
		t.Errorf("run %s is the first, want the one that waited for longer", got)
	}
	waiting[0].end()
	select {
	case id := <-opened:
		t.Errorf("run %s does not wait for the operator", id)
	case <-time.After(3 * time.Second):
	}
	turn := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: turns.ConfigMap("0000f003")}}
	if _, err := client.Create(t.Context(), api.ConfigMaps, ns, turn, nil); err != nil {
		t.Fatal(err)
	}
	<-opened
	waiting[1].end()
}

// TestProbes: without writes of the run, the lag of kinds with a probe is measured, and that of other kinds is
// borrowed.
func TestProbes(t *testing.T) {
	config := testBed(t)
	client, err := api.New(config, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t, config, namespace(t, client, "probes-"), "0000ffff", v1alpha1.QueueFail)
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * lagprobe.Interval)
	for _, d := range lagprobe.Lags(r.watches, r.probes) {
		if d.Source != "watch" {
			continue
		}
		kind := strings.TrimPrefix(d.Name, "lag of ")
		probed := kind == api.ConfigMaps.String() || kind == api.PersistentVolumes.String() ||
			kind == api.VolumeAttachments.String()
		t.Logf("%s: n %d, %s", d.Name, d.N, d.How)
		if probed != (d.N >= 3) || probed != strings.Contains(d.How, "probe object") {
			t.Errorf("%s was probed %d times (%s); want it probed: %v", kind, d.N, d.How, probed)
		}
	}
}

// TestCounted: the result has the kubelet's counts of volumes, and says that no op observed them.
func TestCounted(t *testing.T) {
	config := testBed(t)
	client, err := api.New(config, op.NewClock())
	if err != nil {
		t.Fatal(err)
	}
	r := newRun(t, config, namespace(t, client, "counted-"), "0000fff0", v1alpha1.QueueFail)
	if err := r.open(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if _, _, err := r.do(ctx, engine.Request{Name: "vol-0", Action: "vol",
		Volume: &engine.Volume{Claim: claimOf("null"), Attach: true}}); err != nil {
		t.Fatal(err)
	}
	if err := r.Teardown(context.WithoutCancel(t.Context()), r.ledger); err != nil {
		t.Error(err)
	}
	said := r.Report(context.WithoutCancel(t.Context()))
	counted := map[string]int64{}
	for _, d := range said.Distributions {
		if strings.HasPrefix(d.Source, "kubelet ") {
			counted[d.Name] += d.N
		}
	}
	t.Log(counted)
	for _, call := range []string{"NodeStageVolume", "NodePublishVolume", "NodeUnpublishVolume"} {
		if counted[call+", null.csi.cnsbench.dev"] < 1 {
			t.Errorf("no kubelet counted %s", call)
		}
	}
	found := false
	for _, f := range said.Findings {
		found = found || f.Name == "stagedUnobserved" && strings.Contains(f.Evidence, "counts of the whole run")
	}
	if !found {
		t.Errorf("findings %v do not say that staging was unobserved", said.Findings)
	}
}
