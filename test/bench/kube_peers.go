package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// kubeParallel is how many creations each tool has in flight; kube-burner decides by itself.
const kubeParallel = 100

// kubePeer is what all arms share.
type kubePeer struct {
	*cluster
	burner string // program
}

// kubePeers compares the creation of objects with a bare loop of client-go and with kube-burner, and the latencies that
// CNSBench and kube-burner report with those in the API server's audit log.
func kubePeers(ctx context.Context, e *env, t *table) error {
	c, err := e.testbed()
	if err != nil {
		return err
	}
	k := &kubePeer{c, filepath.Join(e.root, "out", "peers", "kube-burner")}
	if _, err := os.Stat(k.burner); err != nil {
		return fmt.Errorf("%w; run make kube-peers first", err)
	}
	if err := k.creations(ctx, t); err != nil {
		return err
	}
	for _, rate := range []int{5, 25} {
		for _, kind := range []*latencyOf{&ofClaims, &ofSnapshots} {
			if err := k.latencies(ctx, t, kind, rate); err != nil {
				return err
			}
		}
	}
	t.note("kube-burner v2.7.3, built from its module. All tools are processes on the machine of the whole test bed.")
	t.note("The CPU of an object has its creation, its deletion and the tool's report; kube-burner deletes the " +
		"namespace, whose objects the controller manager then deletes.")
	t.note("A latency is from the API server's receipt of the creation to its response to the update that made the " +
		"object bound or ready. kube-burner counts that of a snapshot from its creationTimestamp, in whole seconds.")
	return nil
}

// creations creates objects as fast as each tool can.
func (k *kubePeer) creations(ctx context.Context, t *table) error {
	n := pick(k.e, 2000, 200)
	var arms []arm[creating]
	for _, a := range []struct {
		name, marker string // in the names of its objects
		run          func(context.Context, int) (cpu time.Duration, err error)
	}{
		{"CNSBench", "-create-", k.createByUs},
		{"a bare loop of client-go with CNSBench's labels", "bare-", k.createBare},
		{"kube-burner", "burner-", k.createByBurner},
	} {
		arms = append(arms, arm[creating]{a.name, func(ctx context.Context) (c creating, err error) {
			var cpu time.Duration
			log, err := k.logged("configmaps", func(*auditEvent) bool { return false }, func() (err error) {
				cpu, err = a.run(ctx, n)
				return err
			})
			if err != nil {
				return c, err
			}
			perSecond, err := creationRate(log, a.marker, n)
			return creating{perSecond, cpu.Seconds() / float64(n)}, err
		}})
	}
	got, err := interleave(ctx, k.e, 8, arms...)
	if err != nil {
		return err
	}
	rates := each(got, func(of []creating) []float64 { return each(of, rateOf) })
	cpus := each(got, func(of []creating) []float64 { return each(of, func(c creating) float64 { return 1e3 * c.cpu }) })
	for i, a := range arms {
		t.info(n*len(got[i]), "ConfigMaps by "+a.name+": creations per second", "%s", spread("%.0f", rates[i]))
		what, value := "ConfigMaps by "+a.name+": CPU for each in ms", spread("%.2f", cpus[i])
		if i == 0 {
			t.add(n*len(got[i]), what, value, "≤ 2", stats.Median(cpus[i]) <= 2)
		} else {
			t.info(n*len(got[i]), what, "%s", value)
		}
	}
	return errors.Join(
		t.ratio("creations per second of CNSBench / of the bare loop", rates[1], rates[0], 0.9, 0),
		t.ratio("creations per second of CNSBench / of kube-burner", rates[2], rates[0], 0, 0),
		t.ratio("CPU for each of CNSBench / of kube-burner", cpus[2], cpus[0], 0, 1))
}

// creationRate is the number of creations per second at the API server, from the first request to the last response, of
// those n objects whose names have a marker.
func creationRate(log map[string]written, marker string, n int) (float64, error) {
	var first, last time.Time
	found := 0
	for name, o := range log {
		if !strings.Contains(name, marker) || o.created.complete.IsZero() {
			continue
		}
		found++
		if first.IsZero() || o.created.received.Before(first) {
			first = o.created.received
		}
		if o.created.complete.After(last) {
			last = o.created.complete
		}
	}
	if found != n {
		return 0, fmt.Errorf("the audit log has %d creations, want %d", found, n)
	}
	return float64(n) / last.Sub(first).Seconds(), nil
}

// objects is a Benchmark with actions and what its one rate has.
func (e *env) objects(actions, rate string) string {
	return e.benchmark("  gracePeriod: 2m\n  actions:\n%s  rates: [{name: r, %s}]\n", actions, rate)
}

func (k *kubePeer) createByUs(ctx context.Context, n int) (time.Duration, error) {
	trial, err := k.run(ctx, k.e.objects(`    - name: create
      rateName: r
      createObjSpec: {manifest: {apiVersion: v1, kind: ConfigMap, data: {key: value}}}
`, fmt.Sprintf("concurrencySpec: {parallelism: %d}, limit: %d", kubeParallel, n)))
	if err != nil {
		return 0, err
	}
	defer trial.remove()
	return trial.cpu, nil
}

// createBare creates and deletes objects by a loop in this process. They have the labels that CNSBench gives an object
// of an action "create", by which it finds what is its own: the API server also records who set each of them.
func (k *kubePeer) createBare(ctx context.Context, n int) (time.Duration, error) {
	id := owned.New("bare0000")
	labels := names.Metadata{RunID: id.RunID, Proof: id.Proof()}.Labels(nil, "create")
	configMaps := k.client.CoreV1().ConfigMaps("default")
	before := loadgen.UsageNow().CPU
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
	err := all(func(name string) error {
		_, err := configMaps.Create(ctx, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{"key": "value"}},
			metav1.CreateOptions{})
		return err
	})
	err = errors.Join(err, all(func(name string) error { return configMaps.Delete(ctx, name, metav1.DeleteOptions{}) }))
	return loadgen.UsageNow().CPU - before, err
}

// burn runs kube-burner with jobs; templates are files by their names. It writes its measurement to a directory.
func (k *kubePeer) burn(ctx context.Context, jobs, measurement string, templates map[string]string) (cpu time.Duration,
	metrics string, err error) {
	dir, err := os.MkdirTemp(k.e.tmp, "burner-")
	if err != nil {
		return 0, "", err
	}
	metrics = filepath.Join(dir, "metrics")
	templates["config.yaml"] = fmt.Sprintf("metricsEndpoints: [{indexer: {type: local, metricsDirectory: %q}}]\n"+
		"global: {gc: true, measurements: [%s]}\njobs:\n%s", metrics, measurement, strings.ReplaceAll(jobs, "DIR", dir))
	for name, text := range templates {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			return 0, "", err
		}
	}
	cmd := interruptible(ctx, k.burner, "init", "--config", filepath.Join(dir, "config.yaml"), "--log-level", "error")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+k.kubeconfig)
	cmd.Dir = k.e.tmp
	p, err := execute(cmd, nil)
	return p.cpu, metrics, err
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

// burnerClaim is the template of a claim; %s is the first part of its name.
const burnerClaim = `apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: '%s-{{.Replica}}'}
spec: {storageClassName: "null", accessModes: [ReadWriteOnce], resources: {requests: {storage: 64Mi}}}
`

var ofClaims = latencyOf{
	what: "PVC: creation to bound", resource: claims, ready: isBound,
	ours: `    - {name: object, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
`,
	milestone: op.Bound, template: fmt.Sprintf(burnerClaim, "burner"),
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
	before:      fmt.Sprintf(burnerClaim, "source"),
	measurement: "volumeSnapshotLatency", field: "vsReadyLatency", name: "vsName",
}

// latencies compares what both tools report of objects that are created at a rate with the audit log.
func (k *kubePeer) latencies(ctx context.Context, t *table, l *latencyOf, perSecond int) error {
	n := pick(k.e, 20, 4) * perSecond
	for _, a := range []struct {
		name string
		run  func(context.Context, *latencyOf, int, int) (map[string]time.Duration, error)
	}{{"CNSBench", k.latenciesByUs}, {"kube-burner", k.latenciesByBurner}} {
		what := fmt.Sprintf("%s, %d/s, by %s: ", l.what, perSecond, a.name)
		var reported map[string]time.Duration
		log, err := k.logged(l.resource, l.ready, func() (err error) {
			reported, err = a.run(ctx, l, n, perSecond)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s%w", what, err)
		}
		var said, was, wrong []int64
		for name, d := range reported {
			if o := log[name]; !o.created.received.IsZero() && !o.ready.complete.IsZero() {
				logged := o.ready.complete.Sub(o.created.received)
				said, was = append(said, int64(d)), append(was, int64(logged))
				wrong = append(wrong, int64((d - logged).Abs()))
			}
		}
		if len(wrong) < n*9/10 {
			return fmt.Errorf("%s%d of %d objects are in the report and, with their states, in the audit log (%d and %d): "+
				"bring the test bed up without --audit-level", what, len(wrong), n, len(reported), len(log))
		}
		t.info(len(wrong), what+"p50 and p99 reported; in the audit log", "%s, %s; %s, %s", ms(quantile(said, 0.5)),
			ms(quantile(said, 0.99)), ms(quantile(was, 0.5)), ms(quantile(was, 0.99)))
		p99 := quantile(wrong, 0.99)
		if what += "difference of an object, p99"; a.name == "CNSBench" && perSecond == 25 {
			t.add(len(wrong), what, ms(p99), "≤ 5 ms", p99 <= int64(5*time.Millisecond))
		} else {
			t.info(len(wrong), what, "%s", ms(p99))
		}
	}
	return nil
}

func (k *kubePeer) latenciesByUs(ctx context.Context, l *latencyOf, n, perSecond int) (map[string]time.Duration,
	error) {
	trial, err := k.run(ctx, k.e.objects(l.ours, fmt.Sprintf("constantRateSpec: {perSecond: %d}, limit: %d", perSecond,
		n)))
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
		if at := ops[i].Milestone(l.milestone); at.Known() {
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
	_, metrics, err := k.burn(ctx, jobs, "{name: "+l.measurement+"}", templates)
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(metrics, l.measurement+"Measurement-objects.json"))
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
		v, ok := d[l.field].(float64)
		if !ok {
			return nil, fmt.Errorf("kube-burner's result has no %s: %v", l.field, d)
		}
		all[name] = time.Duration(v * 1e6)
	}
	return all, nil
}
