package kubernetes

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/op"
)

// revise counts a rollout, or undoes one.
func (w *workload) revise(undo bool) (string, error) {
	w.engine.mu.Lock()
	defer w.engine.mu.Unlock()
	if !undo {
		w.revisions = append(w.revisions, w.revision)
		w.rollouts++
		w.revision = w.rollouts
		return strconv.Itoa(w.revision), nil
	}
	last := len(w.revisions) - 1
	if last < 0 {
		return "", &engine.Error{Code: "FailedPrecondition", Message: "there is no rollout of " + w.name + " to undo"}
	}
	w.revision, w.revisions = w.revisions[last], w.revisions[:last]
	return strconv.Itoa(w.revision), nil
}

// workload is one instance: its claims, its pods and what they refer to.
type workload struct {
	engine  *State
	name    string
	volumes []string
	pods    []*managedPod
	objects []namedObject
	// rollouts counts the rollouts; revision is the current one, revisions are the earlier ones
	// for undo.
	rollouts, revision int
	revisions          []int
}

// namedObject is a further object of an instance.
type namedObject struct {
	kind api.Kind
	name string // in the cluster
}

// addClaim adds a claim to the instance.
func (w *workload) addClaim(claim *corev1.PersistentVolumeClaim, object, action string) {
	v := &volume{name: claim.Name, readOnly: readOnly(claim), block: isBlock(claim),
		object: engine.Object{Kind: engine.VolumeObject, Name: object, Action: action, Owner: w.name, Labels: claim.Labels}}
	if claim.Spec.StorageClassName != nil {
		v.object.Class = *claim.Spec.StorageClassName
	}
	w.engine.storeVolume(v)
	w.volumes = append(w.volumes, object)
}

// follow reports the end of the instance: that of its last pod that is not a server, or of the
// first server that fails.
func (w *workload) follow(ctx context.Context) {
	var mu sync.Mutex
	end := op.InstanceEnd{Instance: w.name, At: op.Never, OK: true}
	take := func(e op.InstanceEnd) {
		mu.Lock()
		defer mu.Unlock()
		end.Containers = append(end.Containers, e.Containers...)
		end.At, end.OK = max(end.At, e.At), end.OK && e.OK
	}
	failed := make(chan struct{}, len(w.pods))
	var mains sync.WaitGroup
	waits := 0
	for _, m := range w.pods {
		if m.service {
			go func() {
				if e := m.awaitEnd(ctx); !e.OK {
					take(e)
					failed <- struct{}{}
				}
			}()
			continue
		}
		waits++
		mains.Go(func() { take(m.awaitEnd(ctx)) })
	}
	var over chan struct{} // nil with servers only: they end when stopped or failed
	if waits > 0 {
		over = make(chan struct{})
		go func() { mains.Wait(); close(over) }()
	}
	select {
	case <-over:
	case <-failed:
	case <-w.engine.closed:
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if !end.At.Known() {
		end.At = w.engine.Session.Clock.Now()
	}
	w.engine.Session.Sink.Ended(end)
}

func (w *workload) eachPod(f func(*managedPod) error) error {
	failed := make([]error, len(w.pods))
	var wg sync.WaitGroup
	for i, m := range w.pods {
		wg.Go(func() { failed[i] = f(m) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// Release opens the barrier for the given instances.
func (e *State) Release(ctx context.Context, _ string, instances []string, at op.Time) error {
	return e.eachWorkload(instances, func(w *workload) error {
		return w.eachPod(func(m *managedPod) error { return m.release(ctx, at) })
	})
}

// Stop ends the given instances.
func (e *State) Stop(ctx context.Context, instances []string, grace time.Duration) error {
	return e.eachWorkload(instances, func(w *workload) error {
		return w.eachPod(func(m *managedPod) error { return m.stop(ctx, grace) })
	})
}

func (e *State) eachWorkload(names []string, f func(*workload) error) error {
	failed := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		if w := e.workload(name); w != nil { // else deleted
			wg.Go(func() { failed[i] = f(w) })
		}
	}
	wg.Wait()
	return errors.Join(failed...)
}

func (e *State) workload(name string) *workload {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.workloads[name]
}

func readOnly(c *corev1.PersistentVolumeClaim) bool {
	for _, m := range c.Spec.AccessModes {
		if m != corev1.ReadOnlyMany {
			return false
		}
	}
	return len(c.Spec.AccessModes) > 0
}

func isBlock(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock
}
