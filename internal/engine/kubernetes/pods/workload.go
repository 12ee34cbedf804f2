package pods

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Revise counts a rollout, or undoes one.
func (w *Workload) Revise(undo bool) (string, error) {
	w.State.Mu.Lock()
	defer w.State.Mu.Unlock()
	if !undo {
		w.revisions = append(w.revisions, w.revision)
		w.rollouts++
		w.revision = w.rollouts
		return strconv.Itoa(w.revision), nil
	}
	last := len(w.revisions) - 1
	if last < 0 {
		return "", engine.Errorf("FailedPrecondition", "there is no rollout of %s to undo", w.Name)
	}
	w.revision, w.revisions = w.revisions[last], w.revisions[:last]
	return strconv.Itoa(w.revision), nil
}

// AddClaim adds a claim to the instance.
func (w *Workload) AddClaim(claim *corev1.PersistentVolumeClaim, object, action string) {
	v := &Volume{Name: claim.Name, ReadOnly: IsReadOnly(claim), Block: IsBlock(claim),
		Object: engine.Object{Kind: engine.VolumeObject, Name: object, Action: action, Owner: w.Name,
			Labels: claim.Labels}}
	if claim.Spec.StorageClassName != nil {
		v.Object.Class = *claim.Spec.StorageClassName
	}
	w.State.StoreVolume(v)
	w.Volumes = append(w.Volumes, object)
}

// Follow reports the end of the instance: that of its last pod that is not a server, or of the first server that
// fails.
func (w *Workload) Follow(ctx context.Context) {
	var mu sync.Mutex
	end := op.InstanceEnd{Instance: w.Name, At: op.Never, OK: true}
	take := func(e op.InstanceEnd) {
		mu.Lock()
		defer mu.Unlock()
		end.Containers = append(end.Containers, e.Containers...)
		end.At, end.OK = max(end.At, e.At), end.OK && e.OK
	}
	failed := make(chan struct{}, len(w.Pods))
	var mains sync.WaitGroup
	waits := 0
	for _, m := range w.Pods {
		if m.Service {
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
	case <-w.State.Closed:
		return
	}
	mu.Lock()
	defer mu.Unlock()
	if !end.At.Known() {
		end.At = w.State.Session.Clock.Now()
	}
	w.State.Session.Sink.Ended(end)
}

func (w *Workload) eachPod(f func(*Pod) error) error {
	failed := make([]error, len(w.Pods))
	var wg sync.WaitGroup
	for i, m := range w.Pods {
		wg.Go(func() { failed[i] = f(m) })
	}
	wg.Wait()
	return errors.Join(failed...)
}

// Release opens the barrier for the given instances.
func (e *State) Release(ctx context.Context, _ string, instances []string, at op.Time) error {
	return e.eachWorkload(instances, func(w *Workload) error {
		return w.eachPod(func(m *Pod) error { return m.release(ctx, at) })
	})
}

// Stop ends the given instances.
func (e *State) Stop(ctx context.Context, instances []string, grace time.Duration) error {
	return e.eachWorkload(instances, func(w *Workload) error {
		return w.eachPod(func(m *Pod) error { return m.stop(ctx, grace) })
	})
}

func (e *State) eachWorkload(names []string, f func(*Workload) error) error {
	failed := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		if w := e.Workload(name); w != nil { // else deleted
			wg.Go(func() { failed[i] = f(w) })
		}
	}
	wg.Wait()
	return errors.Join(failed...)
}

// IsReadOnly says whether a claim has read-only access modes only.
func IsReadOnly(c *corev1.PersistentVolumeClaim) bool {
	for _, m := range c.Spec.AccessModes {
		if m != corev1.ReadOnlyMany {
			return false
		}
	}
	return len(c.Spec.AccessModes) > 0
}

// IsBlock says whether a claim is for a block device.
func IsBlock(c *corev1.PersistentVolumeClaim) bool {
	return c.Spec.VolumeMode != nil && *c.Spec.VolumeMode == corev1.PersistentVolumeBlock
}
