// Package lease keeps two runs of a namespace from using a driver at the same time, by a Lease for each driver: the
// second run waits, fails, or shares the driver, which both report.
package lease

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/turns"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
)

const (
	// Duration is how long a run counts as alive after its last renewal.
	Duration = 15 * time.Second
	// RenewInterval is how often a Lease is renewed.
	RenewInterval = 5 * time.Second
	pollInterval  = time.Second
	// concurrentAnnotation is the prefix of the annotations that further runs add to the holder's Lease, followed
	// by their run ID.
	concurrentAnnotation = "cnsbench.dev/concurrent."
)

// Holder holds or joins the Leases of a run's drivers, in the run's namespace. It also notes runs in other
// namespaces, by their PersistentVolumes.
type Holder struct {
	run     *core.Run
	drivers []string
	stop    context.CancelFunc
	done    sync.WaitGroup

	mu             sync.Mutex
	held           []string          // drivers whose Leases are held or joined
	concurrentRuns map[string]string // descriptions by run ID
}

// New returns a Holder without Leases.
func New(run *core.Run) *Holder {
	return &Holder{run: run, drivers: run.DriversInUse(), concurrentRuns: map[string]string{}}
}

// Acquire takes the Leases of the run's drivers, or joins their holders if the run shares its drivers, and renews them
// until Stop.
func (h *Holder) Acquire(ctx context.Context) error {
	renewing, stop := context.WithCancel(h.run.Ctx)
	h.stop = stop
	h.done.Go(func() { h.renewAll(renewing) })
	q, err := h.enqueue(ctx)
	if err != nil {
		return err
	}
	for _, driver := range h.drivers { // sorted: two runs that wait for each other's drivers cannot exist
		if err := q.acquire(ctx, driver); err != nil {
			return errors.Join(err, q.leave(ctx))
		}
		h.mu.Lock()
		h.held = append(h.held, driver)
		h.mu.Unlock()
	}
	return q.leave(ctx)
}

// noteRun records another run.
func (h *Holder) noteRun(run, what string) {
	if h == nil || run == "" || run == h.run.Session.RunID {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.concurrentRuns[run] == "" {
		h.concurrentRuns[run] = what
	}
}

func (h *Holder) create(ctx context.Context, driver string) error {
	e := h.run
	now, life := metav1.NowMicro(), int32(Duration/time.Second)
	l := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: core.LeaseName(driver), Namespace: e.Namespace,
			Labels: e.Labels(map[string]string{turns.LabelDriver: labelOf(driver)}, "")},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &e.Session.RunID, LeaseDurationSeconds: &life, AcquireTime: &now,
			RenewTime: &now},
	}
	_, err := e.Client.Create(ctx, core.Leases, e.Namespace, l, nil)
	return err
}

// removeLease deletes a Lease unless it has changed since it was read.
func removeLease(ctx context.Context, e *core.Run, l *coordinationv1.Lease) error {
	_, err := e.Client.Delete(ctx, core.Leases, e.Namespace, l.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &l.UID, ResourceVersion: &l.ResourceVersion}})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// join announces this run to the holder.
func (h *Holder) join(ctx context.Context, name string, l *coordinationv1.Lease) error {
	e := h.run
	h.noteRuns(l)
	if _, known := l.Annotations[concurrentAnnotation+e.Session.RunID]; known {
		return nil
	}
	body := fmt.Appendf(nil, `{"metadata":{"annotations":{%q:%q}}}`, concurrentAnnotation+e.Session.RunID,
		"in namespace "+e.Namespace)
	_, err := e.Client.Patch(ctx, core.Leases, e.Namespace, name, types.MergePatchType, body, nil)
	if apierrors.IsNotFound(err) {
		return nil // the holder has ended; renewAll acquires the Lease
	}
	if err != nil {
		return fmt.Errorf("announce this run in the Lease %s/%s: %w", e.Namespace, name, err)
	}
	return nil
}

// noteRuns records the runs that a Lease names.
func (h *Holder) noteRuns(l *coordinationv1.Lease) {
	h.noteRun(holderOfLease(l), describeHolder(l))
	for k, v := range l.Annotations {
		if run, ok := strings.CutPrefix(k, concurrentAnnotation); ok {
			h.noteRun(run, fmt.Sprintf("run %s (%s)", run, v))
		}
	}
}

func holderOfLease(l *coordinationv1.Lease) string {
	if l.Spec.HolderIdentity == nil {
		return ""
	}
	return *l.Spec.HolderIdentity
}

func describeHolder(l *coordinationv1.Lease) string {
	text := "run " + holderOfLease(l)
	if at := l.Spec.AcquireTime; at != nil {
		text += at.UTC().Format(" (since 15:04:05 UTC)")
	}
	return text
}

// renewAll renews the Leases periodically until ctx ends.
func (h *Holder) renewAll(ctx context.Context) {
	tick := time.NewTicker(RenewInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		h.mu.Lock()
		held := slices.Clone(h.held)
		h.mu.Unlock()
		for _, driver := range held {
			if err := h.renew(ctx, driver); err != nil && ctx.Err() == nil {
				h.run.Session.Sink.Log("engine", fmt.Sprintf("Lease %s: %v", core.LeaseName(driver), err))
			}
		}
	}
}

// renew renews a Lease of this run, acquires one that is gone, and joins one of another run.
func (h *Holder) renew(ctx context.Context, driver string) error {
	e, name := h.run, core.LeaseName(driver)
	l := new(coordinationv1.Lease)
	_, err := e.Client.Get(ctx, core.Leases, e.Namespace, name, l)
	if apierrors.IsNotFound(err) {
		return h.create(ctx, driver)
	}
	if err != nil {
		return err
	}
	h.noteRuns(l)
	if holderOfLease(l) != e.Session.RunID {
		return h.join(ctx, name, l)
	}
	return patchRenewal(ctx, e, l)
}

// patchRenewal renews a Lease unless another run has changed it since it was read: the next renewal sees that change.
func patchRenewal(ctx context.Context, e *core.Run, l *coordinationv1.Lease) error {
	now, err := metav1.NowMicro().MarshalJSON()
	if err != nil {
		return err
	}
	body := fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q},"spec":{"renewTime":%s}}`, l.ResourceVersion, now)
	_, err = e.Client.Patch(ctx, core.Leases, e.Namespace, l.Name, types.MergePatchType, body, nil)
	if apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// Stop stops renewing and leaves the Leases. It may be called more than once.
func (h *Holder) Stop() {
	if h != nil && h.stop != nil {
		h.stop()
		h.done.Wait()
	}
}

// Release deletes the Leases that carry the run's label.
func Release(ctx context.Context, e *core.Run, h *Holder) error {
	h.Stop()
	list, _, err := e.Client.List(ctx, core.Leases, e.Namespace, metav1.ListOptions{LabelSelector: e.Selector()})
	if apierrors.IsForbidden(err) {
		return nil // without the right to list, none was created
	}
	if err != nil {
		return fmt.Errorf("list the Leases of run %s: %w", e.Session.RunID, err)
	}
	var errs []error
	for _, o := range list {
		err := e.CheckOwner(core.Leases, o)
		if err == nil {
			err = removeLease(ctx, e, o.(*coordinationv1.Lease))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("Lease %s: %w", o.GetName(), err))
		}
	}
	return errors.Join(errs...)
}

// ObserveVolume records another run when a PersistentVolume of a driver in use changes. Volumes that existed when
// the watch opened are ignored: an ended run may have kept them.
func (h *Holder) ObserveVolume(ev watch.Event) {
	pv, ok := ev.Object.(*corev1.PersistentVolume)
	if !ok || h == nil || ev.Type == watch.Listed || pv.Spec.ClaimRef == nil || pv.Spec.CSI == nil {
		return
	}
	rest, own := strings.CutPrefix(pv.Spec.ClaimRef.Name, "cnsb-")
	run, _, named := strings.Cut(rest, "-")
	if !own || !named || run == h.run.Session.RunID || !slices.Contains(h.drivers, pv.Spec.CSI.Driver) {
		return
	}
	h.noteRun(run, fmt.Sprintf("run %s (in namespace %s)", run, pv.Spec.ClaimRef.Namespace))
}

// Findings reports the runs that used a driver at the same time.
func (h *Holder) Findings() []engine.Finding {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	var list []engine.Finding
	for _, run := range slices.Sorted(maps.Keys(h.concurrentRuns)) {
		list = append(list, engine.Finding{Name: "concurrentRun", Severity: "warning",
			Evidence: h.concurrentRuns[run] +
				" used the same driver at the same time: both affect each other's results"})
	}
	return list
}
