package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/internal/run"
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
func harness(ctx context.Context, e *env, t *table) error {
	c, err := e.testbed()
	if err != nil {
		return err
	}
	for _, d := range []struct {
		agent string
		most  float64
	}{{"image", 1.05}, {"init", 1.25}} {
		if err := t.harnessOf(ctx, c, d.agent, d.most); err != nil {
			return err
		}
	}
	t.note("From the request that creates the claim to the first write, a pod with CNSBench's agent each %v and a bare "+
		"pod between: both of the same image, on claims of the null driver.", harnessInterval)
	return nil
}

// harnessOf measures one delivery of the agent: the interval of the ratio is to be at most that.
func (t *table) harnessOf(ctx context.Context, c *cluster, agent string, most float64) error {
	n := pick(c.e, 60, 6)
	w := &firstWrites{set: c.client, at: map[string]time.Time{}}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	if err := w.watch(watching); err != nil {
		return err
	}
	defer w.remove(n)
	var creating errgroup.Group
	creating.Go(func() error { return w.create(watching, n) })
	trial, err := c.run(ctx, c.e.benchmark(`  actions: [{name: first, rateName: r, createObjSpec: {workload: first}}]
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
	if err := creating.Wait(); err != nil {
		return err
	}
	ops, err := trial.ops("first")
	if err != nil {
		return err
	}
	var with, without []float64
	for k := range ops {
		i := ops[k].Instance
		ours, theirs := w.of(fmt.Sprintf("cnsb-%s-first-%d-first", trial.bundle.Run.ID, i)), w.of(bareName(i))
		if i >= len(w.began) || ours.IsZero() || theirs.IsZero() {
			continue
		}
		with = append(with, ours.Sub(trial.at(ops[k].Started)).Seconds())
		without = append(without, theirs.Sub(w.began[i]).Seconds())
	}
	return t.ratio(fmt.Sprintf("--agent %s: first write with CNSBench / of a bare pod", agent), without, with, 0, most)
}

func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// firstWrites are the times that pods have noted, and bare pods that a client creates by itself, in the middle between
// those of CNSBench.
type firstWrites struct {
	set   kubernetes.Interface
	began []time.Time // when each bare pod was begun to be created

	mu    sync.Mutex
	at    map[string]time.Time // by the name of the pod
	other bool                 // a pod that is not bare was seen
}

const barePrefix = "bench-bare-"

func bareName(i int) string { return barePrefix + strconv.Itoa(i) }

// watch collects the times until ctx ends.
func (w *firstWrites) watch(ctx context.Context) error {
	events, err := w.set.CoreV1().Pods("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	go func() {
		for ev := range events.ResultChan() {
			if p, ok := ev.Object.(*corev1.Pod); ok {
				w.see(p)
			}
		}
	}()
	return nil
}

func (w *firstWrites) see(p *corev1.Pod) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.other = w.other || !strings.HasPrefix(p.Name, barePrefix)
	for _, c := range p.Status.ContainerStatuses {
		if end := c.State.Terminated; end != nil {
			if ns, err := strconv.ParseInt(strings.TrimSpace(end.Message), 10, 64); err == nil {
				w.at[p.Name] = time.Unix(0, ns)
			}
		}
	}
}

func (w *firstWrites) of(pod string) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at[pod]
}

// create creates bare pods from the first pod of CNSBench on, and waits at most a minute until the last has written.
func (w *firstWrites) create(ctx context.Context, n int) error {
	err := poll(ctx, func() bool { w.mu.Lock(); defer w.mu.Unlock(); return w.other })
	for next := time.Now().Add(harnessInterval / 2); len(w.began) < n && err == nil; next = next.Add(harnessInterval) {
		var pod corev1.Pod
		var claim corev1.PersistentVolumeClaim
		err = errors.Join(yaml.Unmarshal([]byte(firstWrite), &pod), yaml.Unmarshal([]byte(firstClaim), &claim))
		if err != nil || !run.PreciseSleep(ctx, next) {
			return errors.Join(err, ctx.Err())
		}
		pod.Name, claim.Name = bareName(len(w.began)), bareName(len(w.began))
		pod.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = claim.Name
		w.began = append(w.began, time.Now())
		if _, err = w.set.CoreV1().PersistentVolumeClaims("default").Create(ctx, &claim, metav1.CreateOptions{}); err == nil {
			_, err = w.set.CoreV1().Pods("default").Create(ctx, &pod, metav1.CreateOptions{})
		}
	}
	if err != nil {
		return err
	}
	end := time.Now().Add(time.Minute)
	return poll(ctx, func() bool { return !w.of(bareName(n-1)).IsZero() || time.Now().After(end) })
}

// poll returns when done does so, or ctx ends.
func poll(ctx context.Context, done func() bool) error {
	for !done() {
		if !run.PreciseSleep(ctx, time.Now().Add(20*time.Millisecond)) {
			return ctx.Err()
		}
	}
	return nil
}

// remove deletes the bare pods and their claims.
func (w *firstWrites) remove(n int) {
	ctx := context.Background()
	for i := range n {
		_ = w.set.CoreV1().Pods("default").Delete(ctx, bareName(i), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
		_ = w.set.CoreV1().PersistentVolumeClaims("default").Delete(ctx, bareName(i), metav1.DeleteOptions{})
	}
}
