package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// kubeParallel is how many creations each tool has in flight; kube-burner decides by itself.
const kubeParallel = 100

// kubePeers compares the creation of objects with a bare loop of client-go and with kube-burner, and the latencies that
// CNSBench and kube-burner report with those in the API server's audit log.
func kubePeers(ctx context.Context, e *env) (t table, err error) {
	k := &kubePeer{env: e, burner: filepath.Join(e.root, "out", "peers", "kube-burner")}
	if k.kubeconfig, k.audit, err = e.testbed(); err != nil {
		return t, err
	}
	if _, err := os.Stat(k.burner); err != nil {
		return t, fmt.Errorf("%w; run make kube-peers first", err)
	}
	if err := k.creations(ctx, &t); err != nil {
		return t, err
	}
	for _, rate := range []int{5, 25} {
		for _, kind := range []*latencyOf{&ofClaims, &ofSnapshots} {
			if err := k.latencies(ctx, &t, kind, rate); err != nil {
				return t, err
			}
		}
	}
	t.note("kube-burner v2.7.3, built from its module. All tools are processes on the machine of the whole test bed.")
	t.note("The CPU of an object has its creation, its deletion and the tool's report; kube-burner deletes the " +
		"namespace, whose objects the controller manager then deletes.")
	t.note("A latency is from the API server's receipt of the creation to its response to the update that made the " +
		"object bound or ready. kube-burner counts that of a snapshot from its creationTimestamp, in whole seconds.")
	return t, nil
}

// kubePeer is what all arms share.
type kubePeer struct {
	env                       *env
	burner, kubeconfig, audit string
}

// created is what the creation of some objects took.
type created struct {
	perSecond float64 // at the API server, from the first request to the last response
	cpu       float64 // seconds of the tool for each object
}

// creations creates objects as fast as each tool can.
func (k *kubePeer) creations(ctx context.Context, t *table) error {
	n := pick(k.env, 2000, 200)
	arms := []struct {
		name, marker string
		run          func(ctx context.Context, n int) (cpu time.Duration, err error)
	}{
		{"CNSBench", "-create-", k.createByUs},
		{"a bare loop of client-go", "bare-", func(ctx context.Context, n int) (time.Duration, error) {
			return k.createBare(ctx, n, nil)
		}},
		{"a bare loop with CNSBench's labels", "bare-", func(ctx context.Context, n int) (time.Duration, error) {
			return k.createBare(ctx, n, labelsAsOurs())
		}},
		{"kube-burner", "burner-", k.createByBurner},
	}
	results := make([][]created, len(arms))
	for _, order := range append([][]int{nil}, mirrored(len(arms), max(k.env.rounds(), k.env.given), k.env.seed)...) {
		warming := order == nil // values of this block are discarded
		if warming {
			order = indices(len(arms))
		}
		for _, i := range order {
			from, err := sizeOfFile(k.audit)
			if err != nil {
				return err
			}
			cpu, err := arms[i].run(ctx, n)
			if err != nil {
				return fmt.Errorf("%s: %w", arms[i].name, err)
			}
			perSecond, err := k.creationRate(from, arms[i].marker, n)
			if err != nil {
				return fmt.Errorf("%s: %w", arms[i].name, err)
			}
			if !warming {
				results[i] = append(results[i], created{perSecond, cpu.Seconds() / float64(n)})
			}
		}
	}
	rates := func(i int) []float64 { return each(results[i], func(c created) float64 { return c.perSecond }) }
	cpus := func(i int) []float64 { return each(results[i], func(c created) float64 { return c.cpu }) }
	for i, a := range arms {
		count := n * len(results[i])
		t.info(count, "ConfigMaps by "+a.name+": creations per second", "%s", spread(rates(i)))
		cpu := cpus(i)
		value := fmt.Sprintf("%.2f ms (%.2f to %.2f)", 1e3*stats.Median(cpu), 1e3*slices.Min(cpu), 1e3*slices.Max(cpu))
		if what := "ConfigMaps by " + a.name + ": CPU for each"; i == 0 {
			t.add(what, value, "≤ 2 ms", metIf(stats.Median(cpu) <= 2e-3), count)
		} else {
			t.add(what, value, "", none, count)
		}
	}
	for _, r := range []struct {
		what   string
		a, b   []float64
		target string
		met    func(interval) bool
	}{
		{"creations per second of CNSBench / of the bare loop", rates(1), rates(0), "", nil},
		{"creations per second of CNSBench / of the bare loop with its labels", rates(2), rates(0),
			"interval ≥ × 0.9", func(i interval) bool { return i.low >= 0.9 }},
		{"creations per second of CNSBench / of kube-burner", rates(3), rates(0), "", nil},
		{"CPU for each of CNSBench / of kube-burner", cpus(3), cpus(0), "interval ≤ × 1",
			func(i interval) bool { return i.high <= 1 }},
	} {
		ratio, err := pairedRatio(r.a, r.b)
		if err != nil {
			return err
		}
		met := none
		if r.met != nil {
			met = metIf(r.met(ratio))
		}
		t.add(r.what, ratio.times(), r.target, met, len(r.a))
	}
	return nil
}

// creationRate is the number of creations of ConfigMaps per second in the audit log, of those whose names have a
// marker, from an offset on.
func (k *kubePeer) creationRate(from int64, marker string, n int) (float64, error) {
	time.Sleep(2 * time.Second) // the log is written each second
	var first, last time.Time
	found := 0
	err := auditEvents(k.audit, from, marker, func(e *auditEvent) {
		if e.Verb != "create" || e.ObjectRef.Resource != "configmaps" || !strings.Contains(e.ObjectRef.Name, marker) {
			return
		}
		found++
		if first.IsZero() || e.RequestReceivedTimestamp.Before(first) {
			first = e.RequestReceivedTimestamp
		}
		if e.StageTimestamp.After(last) {
			last = e.StageTimestamp
		}
	})
	if err != nil {
		return 0, err
	}
	if found != n {
		return 0, fmt.Errorf("the audit log has %d creations, want %d", found, n)
	}
	return float64(n) / last.Sub(first).Seconds(), nil
}

func sizeOfFile(path string) (int64, error) {
	st, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// runBurner runs kube-burner to its end, and returns its CPU time.
func (k *kubePeer) runBurner(ctx context.Context, args ...string) (time.Duration, error) {
	cmd := interruptible(ctx, k.burner, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig)
	cmd.Dir = k.env.tmp
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("kube-burner %s: %w: %s", args[0], err, lastLines(output.String(), 8))
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// ours is a Benchmark with actions and what its one rate has.
func (k *kubePeer) ours(actions, rate string) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: kube-peers}
spec:
  seed: %d
  gracePeriod: 2m
  actions:
%s  rates:
    - {name: r, %s}
`, k.env.seed, actions, rate)
}

func (k *kubePeer) createByUs(ctx context.Context, n int) (time.Duration, error) {
	trial, err := k.env.onCluster(ctx, k.ours(`    - name: create
      rateName: r
      createObjSpec: {manifest: {apiVersion: v1, kind: ConfigMap, data: {key: value}}}
`, fmt.Sprintf("concurrencySpec: {parallelism: %d}, limit: %d", kubeParallel, n)))
	if err != nil {
		return 0, err
	}
	defer trial.remove()
	return trial.cpu, nil
}

// labelsAsOurs returns the labels that CNSBench gives an object of an action "create", by which it finds what is its
// own. The API server also records who set each of them.
func labelsAsOurs() map[string]string {
	id := owned.New("bare0000")
	return names.Metadata{RunID: id.RunID, Proof: id.Proof()}.Labels(nil, "create")
}

// createBare creates and deletes objects by a loop in this process.
func (k *kubePeer) createBare(ctx context.Context, n int, labels map[string]string) (time.Duration, error) {
	config, err := clientcmd.BuildConfigFromFlags("", k.kubeconfig)
	if err != nil {
		return 0, err
	}
	config.QPS = -1 // no limit
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return 0, err
	}
	configMaps := client.CoreV1().ConfigMaps("default")
	before := ownCPU()
	all := func(do func(name string) error) error {
		var (
			next atomic.Int64
			wg   sync.WaitGroup
			errs = make([]error, kubeParallel)
		)
		for w := range kubeParallel {
			wg.Go(func() {
				for i := next.Add(1); i <= int64(n) && errs[w] == nil; i = next.Add(1) {
					errs[w] = do(fmt.Sprintf("bare-%d", i))
				}
			})
		}
		wg.Wait()
		return errors.Join(errs...)
	}
	err = all(func(name string) error {
		_, err := configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"key": "value"}},
			metav1.CreateOptions{})
		return err
	})
	err = errors.Join(err, all(func(name string) error { return configMaps.Delete(ctx, name, metav1.DeleteOptions{}) }))
	return ownCPU() - before, err
}

// burn runs kube-burner with jobs; templates are files by their names.
func (k *kubePeer) burn(ctx context.Context, jobs, measurement string, templates map[string]string) (cpu time.Duration,
	metrics string, err error) {
	dir, err := os.MkdirTemp(k.env.tmp, "burner-")
	if err != nil {
		return 0, "", err
	}
	for name, text := range templates {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return 0, "", err
		}
	}
	metrics = filepath.Join(dir, "metrics")
	measured := "[]"
	if measurement != "" {
		measured = "[{name: " + measurement + "}]"
	}
	config := filepath.Join(dir, "config.yaml")
	text := fmt.Sprintf("metricsEndpoints: [{indexer: {type: local, metricsDirectory: %q}}]\n"+
		"global: {gc: true, measurements: %s}\njobs:\n%s", metrics, measured, strings.ReplaceAll(jobs, "DIR", dir))
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		return 0, "", err
	}
	cpu, err = k.runBurner(ctx, "init", "--config", config, "--log-level", "error")
	return cpu, metrics, err
}

// burnerJob is one job of kube-burner without the rates, in a namespace of its own.
const burnerJob = `  - name: %s
    jobType: create
    jobIterations: 1
    namespace: kube-burner
    namespacedIterations: false
    preLoadImages: false
    podWait: false
    waitWhenFinished: %v
    qps: %d
    burst: %d
    objects: [{objectTemplate: DIR/%s, replicas: %d}]
`

func (k *kubePeer) createByBurner(ctx context.Context, n int) (time.Duration, error) {
	cpu, _, err := k.burn(ctx, fmt.Sprintf(burnerJob, "creations", false, 100_000, 100_000, "object.yaml", n), "",
		map[string]string{"object.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: 'burner-{{.Replica}}'}\n" +
			"data: {key: value}\n"})
	return cpu, err
}

// latencyOf is a kind of objects whose time from creation to use both tools measure.
type latencyOf struct {
	what, resource     string
	ready              func(*auditEvent) bool
	ours, milestone    string // actions of a Benchmark, and what ends the latency in it
	template, before   string // of kube-burner; before: of an object that is there first
	measurement, field string
	name               string // of an object, in kube-burner's results
}

var ofClaims = latencyOf{
	what: "PVC: creation to bound", resource: "persistentvolumeclaims",
	ready: func(e *auditEvent) bool { return e.ResponseObject.Status.Phase == "Bound" },
	ours: `    - {name: object, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
`,
	milestone: op.Bound,
	template: `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: 'burner-{{.Replica}}'}
spec: {storageClassName: "null", accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
`,
	measurement: "pvcLatency", field: "bindingLatency", name: "pvcName",
}

var ofSnapshots = latencyOf{
	what: "VolumeSnapshot: creation to readyToUse", resource: "volumesnapshots",
	ready: func(e *auditEvent) bool { return e.ResponseObject.Status.ReadyToUse },
	ours: `    - {name: source, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
    - {name: object, rateName: r, snapshotSpec: {actionName: source, snapshotClass: "null"}}
`,
	milestone: op.Ready,
	template: `apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: 'burner-{{.Replica}}'}
spec: {volumeSnapshotClassName: "null", source: {persistentVolumeClaimName: source-1}}
`,
	before: `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: 'source-{{.Replica}}'}
spec: {storageClassName: "null", accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
`,
	measurement: "volumeSnapshotLatency", field: "vsReadyLatency", name: "vsName",
}

// latencies compares what both tools report of objects that are created at a rate with the audit log.
func (k *kubePeer) latencies(ctx context.Context, t *table, l *latencyOf, perSecond int) error {
	n := pick(k.env, 20, 4) * perSecond
	for _, a := range []struct {
		name string
		run  func(context.Context, *latencyOf, int, int) (map[string]time.Duration, error)
	}{{"CNSBench", k.latenciesByUs}, {"kube-burner", k.latenciesByBurner}} {
		from, err := sizeOfFile(k.audit)
		if err != nil {
			return err
		}
		reported, err := a.run(ctx, l, n, perSecond)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", l.what, a.name, err)
		}
		audited, err := k.auditedReadiness(from, l)
		if err != nil {
			return err
		}
		var said, was, wrong []int64
		for name, d := range reported {
			if a, ok := audited[name]; ok {
				logged := a.end.Sub(a.began)
				said, was = append(said, int64(d)), append(was, int64(logged))
				wrong = append(wrong, int64(max(d-logged, logged-d)))
			}
		}
		if len(wrong) < n*9/10 {
			return fmt.Errorf("%s, %s: %d of %d objects are in the report and the audit log (%d and %d)", l.what, a.name,
				len(wrong), n, len(reported), len(audited))
		}
		what := fmt.Sprintf("%s, %d/s, by %s: ", l.what, perSecond, a.name)
		t.info(len(wrong), what+"p50 and p99 reported; in the audit log", "%s, %s; %s, %s", ms(quantile(said, 0.5)),
			ms(quantile(said, 0.99)), ms(quantile(was, 0.5)), ms(quantile(was, 0.99)))
		p99 := quantile(wrong, 0.99)
		if a.name == "CNSBench" && perSecond == 25 {
			t.add(what+"difference of an object, p99", ms(p99), "≤ 5 ms", metIf(p99 <= int64(5*time.Millisecond)),
				len(wrong))
		} else {
			t.info(len(wrong), what+"difference of an object, p99", "%s", ms(p99))
		}
	}
	return nil
}

// readiness is when the API server received a creation, and when it answered the update that made the object ready.
type readiness struct{ began, end time.Time }

// auditedReadiness has the objects in the audit log, by their names.
func (k *kubePeer) auditedReadiness(from int64, l *latencyOf) (map[string]readiness, error) {
	time.Sleep(2 * time.Second) // the log is written each second
	began, took := map[string]time.Time{}, map[string]readiness{}
	type end struct {
		name string
		at   time.Time
	}
	var ends []end // of a claim that is bound before its creation is in the log
	err := auditEvents(k.audit, from, l.resource, func(e *auditEvent) {
		switch name := e.ObjectRef.Name; {
		case e.ObjectRef.Resource != l.resource:
		case e.Verb == "create" && e.ObjectRef.Subresource == "":
			began[name] = e.RequestReceivedTimestamp
		case e.ObjectRef.Subresource == "status" && l.ready(e):
			ends = append(ends, end{name, e.StageTimestamp})
		}
	})
	for _, x := range ends {
		if _, twice := took[x.name]; !twice && !began[x.name].IsZero() {
			took[x.name] = readiness{began[x.name], x.at}
		}
	}
	if err == nil && len(began) > 0 && len(took) == 0 {
		err = fmt.Errorf("the audit log has no states of %s: bring the test bed up without --audit-level", l.resource)
	}
	return took, err
}

func (k *kubePeer) latenciesByUs(ctx context.Context, l *latencyOf, n, perSecond int) (map[string]time.Duration,
	error) {
	trial, err := k.env.onCluster(ctx, k.ours(l.ours, fmt.Sprintf("constantRateSpec: {perSecond: %d}, limit: %d",
		perSecond, n)))
	if err != nil {
		return nil, err
	}
	defer trial.remove()
	ops, err := trial.ops("object")
	if err != nil {
		return nil, err
	}
	all := map[string]time.Duration{}
	for i := range ops {
		if at, _ := milestoneOf(&ops[i], l.milestone); at.Known() {
			all["cnsb-"+trial.bundle.Run.ID+"-"+ops[i].Object] = time.Duration(at - ops[i].Started)
		}
	}
	return all, nil
}

func (k *kubePeer) latenciesByBurner(ctx context.Context, l *latencyOf, n, perSecond int) (map[string]time.Duration,
	error) {
	templates, jobs := map[string]string{"object.yaml": l.template}, ""
	if l.before != "" {
		templates["before.yaml"] = l.before
		jobs = fmt.Sprintf(burnerJob, "before", true, perSecond, perSecond, "before.yaml", 1)
	}
	jobs += fmt.Sprintf(burnerJob, "objects", true, perSecond, perSecond, "object.yaml", n)
	_, metrics, err := k.burn(ctx, jobs, l.measurement, templates)
	if err != nil {
		return nil, err
	}
	files, err := filepath.Glob(filepath.Join(metrics, l.measurement+"Measurement-objects.json"))
	if err != nil || len(files) != 1 {
		there, _ := filepath.Glob(filepath.Join(metrics, "*"))
		return nil, fmt.Errorf("kube-burner wrote %v, want one file of its measurement: %w", there, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		return nil, err
	}
	var documents []map[string]any
	if err := json.Unmarshal(text, &documents); err != nil {
		return nil, err
	}
	all := map[string]time.Duration{}
	for _, d := range documents {
		name, _ := d[l.name].(string)
		if v, ok := d[l.field].(float64); ok {
			all[name] = time.Duration(v * 1e6)
			continue
		}
		return nil, fmt.Errorf("kube-burner's result has no %s: %v", l.field, slices.Sorted(maps.Keys(d)))
	}
	return all, nil
}
