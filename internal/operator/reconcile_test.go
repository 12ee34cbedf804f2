package operator

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
)

// bench is a reconciler on a fake API server without controllers. It is also the results service.
type bench struct {
	*reconciler
	t      *testing.T
	events *events.FakeRecorder
	told   map[string]string // runs reported to the results service as lost, with the reason
}

func (b *bench) Progress(context.Context, string, string) (*runnerstatus.Progress, error) {
	return &runnerstatus.Progress{Phase: "running", Ops: runnerstatus.Counts{"ok": 5, "timeout": 2}}, nil
}

func (b *bench) Lost(_ context.Context, _, run, why string) error {
	b.told[run] = why
	return nil
}

func newBench(t *testing.T, hooks interceptor.Funcs, objects ...client.Object) *bench {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	index := func(field func(*corev1.Event) string) client.IndexerFunc {
		return func(o client.Object) []string { return []string{field(o.(*corev1.Event))} }
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithStatusSubresource(&v1alpha1.Benchmark{}).
		WithIndex(&corev1.Event{}, "involvedObject.uid",
			index(func(e *corev1.Event) string { return string(e.InvolvedObject.UID) })).
		WithIndex(&corev1.Event{}, "type", index(func(e *corev1.Event) string { return e.Type })).
		WithInterceptorFuncs(hooks).Build()
	recorder := events.NewFakeRecorder(100)
	b := &bench{t: t, events: recorder, told: map[string]string{}}
	conf := *config
	conf.ResultsURL = "http://results:8080"
	b.reconciler = &reconciler{Client: c, api: c, config: &conf, results: b, events: recorder,
		now: func() time.Time { return begin.Add(time.Minute) }}
	return b
}

// step reconciles once and returns the Benchmark, or nil if it is gone.
func (b *bench) step() *v1alpha1.Benchmark {
	b.t.Helper()
	key := types.NamespacedName{Namespace: "ns", Name: "fio"}
	if _, err := b.Reconcile(b.t.Context(), reconcile.Request{NamespacedName: key}); err != nil {
		b.t.Fatal(err)
	}
	got := &v1alpha1.Benchmark{}
	if err := b.Get(b.t.Context(), key, got); apierrors.IsNotFound(err) {
		return nil
	} else if err != nil {
		b.t.Fatal(err)
	}
	return got
}

func (b *bench) jobs() []string {
	b.t.Helper()
	var list batchv1.JobList
	if err := b.List(b.t.Context(), &list); err != nil {
		b.t.Fatal(err)
	}
	var names []string
	for _, j := range list.Items {
		names = append(names, j.Labels[labelRole])
	}
	slices.Sort(names)
	return names
}

// pod creates the pod of the runner, or changes the state of its container.
func (b *bench) pod(of *v1alpha1.Benchmark, s corev1.ContainerState) {
	b.t.Helper()
	p := podIn(s)
	p.Namespace, p.Labels = of.Namespace, objectMeta(of, "", roleRunner).Labels
	err := b.Create(b.t.Context(), p)
	if apierrors.IsAlreadyExists(err) {
		there := &corev1.Pod{}
		if err := b.Get(b.t.Context(), client.ObjectKeyFromObject(p), there); err != nil {
			b.t.Fatal(err)
		}
		there.Status = p.Status
		err = b.Status().Update(b.t.Context(), there)
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) toldEvents() (all []string) {
	for len(b.events.Events) > 0 {
		all = append(all, <-b.events.Events)
	}
	return all
}

func is(b *v1alpha1.Benchmark, condition, reason string) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, condition)
	return c != nil && c.Reason == reason && c.Status == metav1.ConditionTrue
}

func newborn() *v1alpha1.Benchmark {
	b := benchmark()
	b.Finalizers = nil
	b.Spec.ServiceAccountName = "bench"
	return b
}

// TestALife checks the life cycle of a Benchmark: start, run, completion, deletion. Each step runs twice, as after a
// restart of the manager.
func TestALife(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, newborn())
	b.step()
	got := b.step()
	if !hasFinalizer(got) || got.Status.RunID != RunID(got) || len(b.jobs()) != 1 {
		t.Fatalf("not begun: %+v, Jobs %v", got, b.jobs())
	}
	b.pod(got, up())
	b.step()
	got = b.step()
	if !is(got, v1alpha1.ConditionRunning, reasonRunning) || got.Status.Ops == nil || got.Status.Ops.Total != 7 ||
		got.Status.Ops.Failed != 2 {
		t.Fatalf("not running: %+v", got.Status)
	}
	b.pod(got, said(runnerstatus.End{State: "complete", ExitCode: 3, Clean: true, Ops: runnerstatus.Counts{"ok": 9},
		SLOs: []runnerstatus.Verdict{{Name: "quick", Verdict: "fail"}}}))
	b.step()
	got = b.step()
	if !is(got, v1alpha1.ConditionComplete, reasonMissed) || got.Status.Verdicts[0].Verdict != "fail" ||
		got.Status.Ops.OK != 9 || !got.Status.CompletionTime.After(got.Status.StartTime.Time) {
		t.Fatalf("not done: %+v", got.Status)
	}
	if err := b.Delete(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	if got = b.step(); got != nil {
		t.Fatalf("not gone: %+v", got)
	}
	if jobs := b.jobs(); len(jobs) != 1 || len(b.told) != 0 {
		t.Errorf("Jobs %v, lost %v", jobs, b.told)
	}
	want := []string{"Normal RunnerUp", "Normal ObjectivesMissed", "Normal ByRunner"}
	told := b.toldEvents()
	for _, w := range want {
		if n := len(slices.DeleteFunc(slices.Clone(told),
			func(e string) bool { return !strings.HasPrefix(e, w) })); n != 1 {
			t.Errorf("%d Events %q in %q", n, w, told)
		}
	}
}

// TestALostRunner checks that a lost runner is reported to the results service and that one clean-up Job follows.
func TestALostRunner(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, newborn())
	got := b.step()
	b.pod(got, up())
	b.step()
	b.pod(got, over(137, "OOMKilled", ""))
	b.step()
	got = b.step()
	if !is(got, v1alpha1.ConditionFailed, reasonLost) || !strings.Contains(b.told[RunID(got)], "OOMKilled") {
		t.Fatalf("not lost: %+v, told %v", got.Status, b.told)
	}
	if jobs := b.jobs(); !slices.Equal(jobs, []string{roleCleanup, roleRunner}) {
		t.Fatalf("Jobs %v", jobs)
	}
	var list batchv1.JobList
	if err := b.List(t.Context(), &list, client.MatchingLabels{labelRole: roleCleanup}); err != nil {
		t.Fatal(err)
	}
	list.Items[0].Status.Conditions = []batchv1.JobCondition{jobEnd(batchv1.JobComplete, begin)}
	if err := b.Status().Update(t.Context(), &list.Items[0]); err != nil {
		t.Fatal(err)
	}
	if got = b.step(); !is(got, v1alpha1.ConditionClean, reasonByCleanup) {
		t.Errorf("not clean: %+v", got.Status)
	}
}

// TestAStaleCache checks that no second Job is created if the cache lacks the Job and the latest status.
func TestAStaleCache(t *testing.T) {
	stale := newborn()
	stale.Finalizers = []string{Finalizer}
	b := newBench(t, interceptor.Funcs{}, stale.DeepCopy())
	current := b.step()
	if err := b.deleteJob(t.Context(), current, runnerName(current)); err != nil {
		t.Fatal(err)
	}
	if err := b.startRunner(t.Context(), stale); !apierrors.IsConflict(err) {
		t.Errorf("a Benchmark that has begun began again: %v", err)
	}
	if jobs := b.jobs(); len(jobs) != 0 {
		t.Errorf("Jobs %v", jobs)
	}
}

// TestARunnerThatIsRefused checks that conflicting names and refusals of the API server are reported and retried.
func TestARunnerThatIsRefused(t *testing.T) {
	bm := newborn()
	theirs := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: runnerName(bm), Namespace: "ns"}}
	cm := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: runnerName(bm), Namespace: "ns"}}
	quota := interceptor.Funcs{Create: func(ctx context.Context, c client.WithWatch, o client.Object,
		opts ...client.CreateOption) error {
		if _, isJob := o.(*batchv1.Job); isJob {
			return apierrors.NewForbidden(batchv1.Resource("jobs"), o.GetName(), errors.New("exceeded quota: few"))
		}
		return c.Create(ctx, o, opts...)
	}}
	cases := map[string]struct {
		hooks interceptor.Funcs
		there []client.Object
		want  string
	}{
		"Job of somebody else": {interceptor.Funcs{}, []client.Object{theirs},
			"does not belong to this Benchmark"},
		"ConfigMap of somebody else": {interceptor.Funcs{}, []client.Object{cm}, "does not belong to this Benchmark"},
		"quota":                      {quota, nil, "exceeded quota: few"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, c.hooks, append(c.there, newborn())...)
			got := b.step()
			ready := meta.FindStatusCondition(got.Status.Conditions, v1alpha1.ConditionReady)
			if ready == nil || ready.Reason != reasonCreate || !strings.Contains(ready.Message, c.want) ||
				got.Status.RunID != "" {
				t.Fatalf("%+v", got.Status)
			}
			b.now = func() time.Time { return begin.Add(time.Hour) }
			if got = b.step(); !is(got, v1alpha1.ConditionFailed, reasonCreate) {
				t.Errorf("it waits for ever: %+v", got.Status)
			}
			if err := b.Delete(t.Context(), got); err != nil {
				t.Fatal(err)
			}
			if got = b.step(); got != nil {
				t.Errorf("not gone: %+v", got)
			}
		})
	}
}

// TestAJobWithoutAPod checks that the condition Ready has the newest warning about a Job without a pod.
func TestAJobWithoutAPod(t *testing.T) {
	b := newBench(t, interceptor.Funcs{}, newborn())
	got := b.step()
	job := &batchv1.Job{}
	if err := b.Get(t.Context(), types.NamespacedName{Namespace: "ns", Name: runnerName(got)}, job); err != nil {
		t.Fatal(err)
	}
	for i, e := range []corev1.Event{
		{Type: "Warning", Reason: "FailedCreate", Message: "older", LastTimestamp: metav1.NewTime(begin)},
		{Type: "Warning", Reason: "FailedCreate", Message: `serviceaccount "bench" not found`,
			LastTimestamp: metav1.NewTime(begin.Add(time.Second))},
		{Type: "Normal", Reason: "Other", Message: "newest", LastTimestamp: metav1.NewTime(begin.Add(2 * time.Second))},
	} {
		e.Name, e.Namespace, e.InvolvedObject.UID = string(rune('a'+i)), "ns", job.UID
		if err := b.Create(t.Context(), &e); err != nil {
			t.Fatal(err)
		}
	}
	ready := meta.FindStatusCondition(b.step().Status.Conditions, v1alpha1.ConditionReady)
	if ready.Reason != reasonCreate || !strings.HasSuffix(ready.Message,
		`FailedCreate: serviceaccount "bench" not found`) {
		t.Errorf("%+v", ready)
	}
}

// TestWhatARunnerIsGiven checks that the runner's file is the Benchmark, and that its pod has the Benchmark's
// ServiceAccount, no labels of the Benchmark or the run, and bounded volumes.
func TestWhatARunnerIsGiven(t *testing.T) {
	bm := newborn()
	bm.Name = strings.Repeat("long-name.", 20) + "x"
	bm.Labels = map[string]string{"theirs": "yes"}
	bm.Spec.Actions = []v1alpha1.Action{{Name: "fio"}}
	cm, err := configMap(bm)
	if err != nil {
		t.Fatal(err)
	}
	file := &v1alpha1.Benchmark{}
	if err := yaml.UnmarshalStrict([]byte(cm.Data[specKey]), file); err != nil {
		t.Fatal(err)
	}
	if file.Name != bm.Name || file.Kind != "Benchmark" || file.Spec.Actions[0].Name != "fio" || !*cm.Immutable {
		t.Errorf("%+v", cm)
	}
	for _, j := range []*batchv1.Job{config.runnerJob(bm), config.cleanupJob(bm)} {
		pod := j.Spec.Template.Spec
		if pod.ServiceAccountName != "bench" || pod.Containers[0].Image != config.Image ||
			j.Namespace != bm.Namespace || !metav1.IsControlledBy(j, bm) {
			t.Errorf("%+v", j)
		}
		if len(j.Name) > 63 || j.Labels["theirs"] != "" || j.Spec.Template.Labels["cnsbench.dev/run"] != "" {
			t.Errorf("%s: labels %v", j.Name, j.Spec.Template.Labels)
		}
	}
	for _, tt := range []struct {
		given *v1alpha1.MaxOutput
		want  string
	}{
		{nil, "17Gi"}, {&v1alpha1.MaxOutput{PerRun: new(resource.MustParse("4Gi"))}, "20Gi"},
		{&v1alpha1.MaxOutput{PerRun: new(resource.MustParse("8Ei"))},
			"1040Gi"}, {&v1alpha1.MaxOutput{PerRun: new(resource.MustParse("-1"))}, "16Gi"},
	} {
		bm.Spec.MaxOutput = tt.given
		limits := map[string]string{}
		for _, v := range config.runnerJob(bm).Spec.Template.Spec.Volumes {
			if v.EmptyDir != nil {
				limits[v.Name] = v.EmptyDir.SizeLimit.String()
			}
		}
		if diff := cmp.Diff(map[string]string{"bundle": tt.want, "tmp": "2Gi"}, limits); diff != "" {
			t.Errorf("maxOutput %v: %s", tt.given, diff)
		}
	}
	bm.Spec.ServiceAccountName = ""
	if got := config.runnerJob(bm).Spec.Template.Spec.ServiceAccountName; got != "default" {
		t.Errorf("ServiceAccount %q", got)
	}
}
