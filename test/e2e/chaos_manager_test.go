//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/test/servers"
)

// managed is a real API server on which the operator runs. There is no controller of Jobs and no node: the test ends
// Jobs, as their controller would.
type managed struct {
	*box
	client.WithWatch
	kubeconfig string

	mu   sync.Mutex
	jobs map[string]map[types.UID]bool // the Jobs that were ever there, by name
}

func (b *box) newManaged() *managed {
	b.Helper()
	s := servers.ForTest(b.T, servers.StartAPIServer)
	config, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		b.Fatal(err)
	}
	m := &managed{box: b, kubeconfig: s.Kubeconfig, jobs: map[string]map[types.UID]bool{}}
	if m.WithWatch, err = connect(config); err != nil {
		b.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(module, "config", "crd", "cnsbench.dev_benchmarks.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(text, crd); err != nil {
		b.Fatal(err)
	}
	m.until("the CRD is there", func() bool {
		err = m.Create(b.Context(), crd.DeepCopy())
		return err == nil || apierrors.IsAlreadyExists(err)
	})
	m.until("Benchmarks are served", func() bool {
		return m.List(b.Context(), &v1alpha1.BenchmarkList{}) == nil
	})
	go m.noteJobs(b.Context())
	return m
}

func connect(config *rest.Config) (client.WithWatch, error) {
	c, err := client.NewWithWatch(config, client.Options{})
	if err != nil {
		return nil, err
	}
	for _, add := range []func() error{
		func() error { return v1alpha1.AddToScheme(c.Scheme()) },
		func() error { return apiextensionsv1.AddToScheme(c.Scheme()) },
	} {
		if err := add(); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (m *managed) until(what string, ok func() bool) {
	m.Helper()
	if !poll(patience, func() bool { time.Sleep(20 * time.Millisecond); return ok() }) {
		m.Fatalf("never: %s", what)
	}
}

// noteJobs notes each Job that is created, until the end of the test.
func (m *managed) noteJobs(ctx context.Context) {
	for ctx.Err() == nil {
		w, err := m.Watch(ctx, &batchv1.JobList{})
		if err != nil {
			time.Sleep(50 * time.Millisecond)
			continue
		}
		for e := range w.ResultChan() {
			job, ok := e.Object.(*batchv1.Job)
			if !ok {
				continue
			}
			m.mu.Lock()
			if m.jobs[job.Name] == nil {
				m.jobs[job.Name] = map[types.UID]bool{}
			}
			m.jobs[job.Name][job.UID] = true
			m.mu.Unlock()
		}
	}
}

// benchmark creates a Benchmark.
func (m *managed) benchmark(name string) {
	m.Helper()
	text := strings.Replace(atStart, "{name: bad}", "{name: "+name+", namespace: default}", 1)
	b := &v1alpha1.Benchmark{}
	if err := yaml.Unmarshal([]byte(text), b); err != nil {
		m.Fatal(err)
	}
	if err := m.Create(m.Context(), b); err != nil {
		m.Fatal(err)
	}
}

// operator starts the operator.
func (m *managed) operator() *live {
	m.Helper()
	return m.start(m.cnsbench(), "operator", "--image", "cnsbench", "--kubeconfig", m.kubeconfig)
}

// complete ends the Jobs for which ok holds, as their controller does when their pod has succeeded.
func (m *managed) complete(ok func() bool) {
	m.Helper()
	var list batchv1.JobList
	if err := m.List(m.Context(), &list); err != nil {
		m.Fatal(err)
	}
	for _, job := range list.Items {
		if len(job.Status.Conditions) > 0 || job.DeletionTimestamp != nil || !ok() {
			continue
		}
		now := metav1.Now()
		job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &job.CreationTimestamp, &now, 1
		for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{Type: c, Status: corev1.ConditionTrue,
				LastTransitionTime: now})
		}
		if err := m.Status().Update(m.Context(), &job); err != nil && !apierrors.IsConflict(err) &&
			!apierrors.IsNotFound(err) {
			m.Fatal(err)
		}
	}
}

// killManager kills the operator while Benchmarks are created, run and deleted. Each gets one runner, and nothing of a
// deleted one is left.
func killManager(b *box, r *rand.Rand, kills int) {
	m := b.newManaged()
	names := map[string]bool{} // of all Benchmarks; the value: it is deleted
	remove := func(name string) {
		o := &v1alpha1.Benchmark{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}
		if err := m.Delete(b.Context(), o); err != nil {
			b.Fatal(err)
		}
		names[name] = true
	}
	for i := range kills {
		for n := range 2 {
			name := fmt.Sprintf("b%d-%d", i, n)
			m.benchmark(name)
			names[name] = false
		}
		o := m.operator()
		b.wait(within(r, 3*time.Second))
		if r.IntN(2) == 0 {
			m.complete(func() bool { return r.IntN(2) == 0 })
			time.Sleep(within(r, 200*time.Millisecond))
		}
		o.kill()
		for name, deleted := range names {
			if !deleted && r.IntN(8) == 0 {
				remove(name)
			}
		}
	}
	o := m.operator()
	always := func() bool { return true }
	m.until("each Benchmark has ended", func() bool {
		m.complete(always)
		var list v1alpha1.BenchmarkList
		if err := m.List(b.Context(), &list); err != nil {
			b.Fatal(err)
		}
		return !slices.ContainsFunc(list.Items, func(one v1alpha1.Benchmark) bool {
			return one.DeletionTimestamp != nil || !meta.IsStatusConditionTrue(one.Status.Conditions, v1alpha1.ConditionComplete)
		})
	})
	runs := 0
	for name, deleted := range names {
		if !deleted {
			runs++
			remove(name)
		}
	}
	var left []string
	m.until("everything is removed", func() bool {
		m.complete(always)
		left = m.left()
		return len(left) == 0
	})
	o.signal(os.Interrupt)
	o.wait().wants(b, 0)
	m.mu.Lock()
	defer m.mu.Unlock()
	runners := 0
	for name, uids := range m.jobs {
		if !strings.HasSuffix(name, "-cleanup") {
			runners++
			if len(uids) != 1 {
				b.Errorf("Job %s was created %d times", name, len(uids))
			}
		}
	}
	if runners < runs || runners > len(names) {
		b.Errorf("%d runners for %d Benchmarks, of which %d ran to the end", runners, len(names), runs)
	}
	b.Logf("%d runners for %d Benchmarks, of which %d ran to the end", runners, len(names), runs)
	b.clean()
}

// left lists the Benchmarks, Jobs, ConfigMaps and pods that exist.
func (m *managed) left() (names []string) {
	m.Helper()
	for _, list := range []client.ObjectList{&v1alpha1.BenchmarkList{}, &batchv1.JobList{}, &corev1.ConfigMapList{},
		&corev1.PodList{}} {
		if err := m.List(m.Context(), list, client.InNamespace("default")); err != nil {
			m.Fatal(err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			m.Fatal(err)
		}
		for _, item := range items {
			if o := item.(client.Object); o.GetName() != "kube-root-ca.crt" {
				names = append(names, fmt.Sprintf("%T %s", o, o.GetName()))
			}
		}
	}
	return names
}
