package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

// firstWrite is a pod that writes to a new volume and notes when, in ns since 1970, where the API shows it.
const firstWrite = `
apiVersion: v1
kind: Pod
metadata: {name: first, annotations: {role: workload, sync: main}}
spec:
  restartPolicy: Never
  automountServiceAccountToken: false
  securityContext: {runAsNonRoot: true, runAsUser: 65532, runAsGroup: 65532, fsGroup: 65532}
  containers:
    - name: main
      image: localhost/cnsbench-tools:test
      command: [sh, -c, 'echo x >/data/first && date +%s%N >/dev/termination-log']
      volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
`

const firstClaim = `
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data, annotations: {role: volume}}
spec:
  accessModes: [ReadWriteOnce]
  storageClassName: "null"
  resources: {requests: {storage: 64Mi}}
`

// harnessInterval is between two pods of CNSBench; bare pods are created in the middle.
const harnessInterval = 4 * time.Second

// harness starts pods that write to a new volume, with CNSBench and by a bare client in turns, and compares the time
// from the first request to the first write, which each pod notes by the clock of this machine.
func harness(ctx context.Context, e *env) (t table, err error) {
	kubeconfig, _, err := e.testbed()
	if err != nil {
		return t, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return t, err
	}
	set, err := kubernetes.NewForConfig(config)
	if err != nil {
		return t, err
	}
	for _, d := range []struct {
		agent       string
		ratio, high float64
	}{{"image", 1.05, 1.15}, {"init", 1.25, math.Inf(1)}} {
		if err := t.harnessOf(ctx, e, set, d.agent, d.ratio, d.high); err != nil {
			return t, err
		}
	}
	t.note("From the request that creates the claim to the first write, a pod with CNSBench's agent each %v and a bare "+
		"pod between: both of the same image, on claims of the null driver.", harnessInterval)
	return t, nil
}

// harnessOf measures one delivery of the agent: the ratio is to be at most ratio, and its interval to end at high.
func (t *table) harnessOf(ctx context.Context, e *env, set kubernetes.Interface, agent string, ratio,
	high float64) error {
	n := pick(e, 60, 6)
	w := &firstWrites{set: set, at: map[string]time.Time{}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := w.watch(watching); err != nil {
		return err
	}
	bare := &barePods{set: set, writes: w, n: n}
	defer bare.remove()
	created, failed := make(chan []time.Time, 1), make(chan error, 1)
	go func() {
		times, err := bare.create(watching)
		created <- times
		failed <- err
	}()
	trial, err := e.onCluster(ctx, fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: bench-harness}
spec:
  actions: [{name: first, rateName: r, createObjSpec: {workload: first}}]
  rates: [{name: r, limit: %d, constantRateSpec: {interval: %v}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {name: first, labels: {type: workload}}
data:
  pod.yaml: |%s
  claim.yaml: |%s
`, n, harnessInterval, indented(firstWrite), indented(firstClaim)), "--agent", agent)
	if err != nil {
		return err
	}
	defer trial.remove()
	times, err := <-created, <-failed
	if err != nil {
		return err
	}
	ops, err := trial.ops("first")
	if err != nil {
		return err
	}
	var with, without []float64
	for k := range ops {
		i := ops[k].Instance
		if i >= len(times) {
			continue
		}
		ours := w.of("cnsb-" + trial.bundle.Run.ID + "-first-" + strconv.Itoa(i) + "-first")
		theirs := w.of(bareName(i))
		if ours.IsZero() || theirs.IsZero() {
			continue
		}
		began := trial.bundle.Run.Clock.Start.Add(time.Duration(ops[k].Started))
		with, without = append(with, ours.Sub(began).Seconds()), append(without, theirs.Sub(times[i]).Seconds())
	}
	r, err := pairedRatio(without, with)
	if err != nil {
		return fmt.Errorf("agent %s: %w: %.3v s with it, %.3v s without", agent, err, with, without)
	}
	what := fmt.Sprintf("--agent %s: first write with CNSBench / of a bare pod", agent)
	target := fmt.Sprintf("≤ %.2f", ratio)
	if !math.IsInf(high, 1) {
		target += fmt.Sprintf(", upper bound ≤ %.2f", high)
	}
	t.add(what, fmt.Sprintf("× %.3f [%.3f, %.3f]", r.estimate, r.low, r.high), target, metIf(len(with) >= n && r.estimate <= ratio && r.high <= high), len(with))
	return nil
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// firstWrites are the times that pods have noted, by the name of the pod. It is safe for concurrent use.
type firstWrites struct {
	set kubernetes.Interface
	mu  sync.Mutex
	at  map[string]time.Time
	saw int // pods that are not bare
}

// watch collects the times until ctx ends.
func (w *firstWrites) watch(ctx context.Context) error {
	events, err := w.set.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	go func() {
		for ev := range events.ResultChan() {
			p, ok := ev.Object.(*corev1.Pod)
			if !ok {
				continue
			}
			w.mu.Lock()
			if !strings.HasPrefix(p.Name, barePrefix) {
				w.saw++
			}
			for _, c := range p.Status.ContainerStatuses {
				if end := c.State.Terminated; end != nil {
					if ns, err := strconv.ParseInt(strings.TrimSpace(end.Message), 10, 64); err == nil {
						w.at[p.Name] = time.Unix(0, ns)
					}
				}
			}
			w.mu.Unlock()
		}
	}()
	return nil
}

func (w *firstWrites) of(pod string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[pod]
}

// began reports whether CNSBench has created a pod.
func (w *firstWrites) began() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.saw > 0
}

// barePods are pods that a client creates by itself, in the middle between those of CNSBench.
type barePods struct {
	set    kubernetes.Interface
	writes *firstWrites
	n      int
}

const barePrefix = "bench-bare-"

func bareName(i int) string { return barePrefix + strconv.Itoa(i) }

// create creates the pods, and returns when it began to create each.
func (b *barePods) create(ctx context.Context) (times []time.Time, err error) {
	for !b.writes.began() {
		if err := sleep(ctx, 20*time.Millisecond); err != nil {
			return nil, err
		}
	}
	next := time.Now().Add(harnessInterval / 2)
	for i := range b.n {
		if err := sleep(ctx, time.Until(next)); err != nil {
			return times, err
		}
		next = next.Add(harnessInterval)
		var pod corev1.Pod
		var claim corev1.PersistentVolumeClaim
		err := errors.Join(yaml.Unmarshal([]byte(firstWrite), &pod), yaml.Unmarshal([]byte(firstClaim), &claim))
		if err != nil {
			return times, err
		}
		pod.Name, claim.Name = bareName(i), bareName(i)
		pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = claim.Name
		times = append(times, time.Now())
		if _, err = b.set.CoreV1().PersistentVolumeClaims("default").Create(ctx, &claim, metav1.CreateOptions{}); err == nil {
			_, err = b.set.CoreV1().Pods("default").Create(ctx, &pod, metav1.CreateOptions{})
		}
		if err != nil {
			return times, err
		}
	}
	for end := time.Now().Add(time.Minute); b.writes.of(bareName(b.n-1)).IsZero() && time.Now().Before(end); {
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return times, err
		}
	}
	return times, nil
}

// remove deletes the pods and their claims.
func (b *barePods) remove() {
	ctx := context.Background()
	for i := range b.n {
		_ = b.set.CoreV1().Pods("default").Delete(ctx, bareName(i), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		_ = b.set.CoreV1().PersistentVolumeClaims("default").Delete(ctx, bareName(i), metav1.DeleteOptions{})
	}
}
