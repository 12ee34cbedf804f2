package podrunner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/cluster"
)

// A Lease owns the runner's pod and everything made for it; the command that started the pod renews it. A runner
// whose Lease expires ends its run, removes what the run made, and deletes the Lease, and with it its own pod.

const (
	// MinPatience leaves time to renew a Lease.
	MinPatience = 4 * time.Second
	// renewInterval is the longest interval between two renewals.
	renewInterval = 5 * time.Second
	// renewWindow is how long to observe a Lease for a renewal: those of runners and of drivers.
	renewWindow = 3 * renewInterval
	// requestTimeout is of one request about a Lease.
	requestTimeout = 10 * time.Second
	// pollInterval is between two reads of a Lease.
	pollInterval = time.Second
)

// Own creates the Lease that owns all that Start creates, and renews it until Remove.
func (r *Runner) Own(ctx context.Context) error {
	host, _ := os.Hostname()
	holder, now, life := "cnsbench run on "+host, metav1.NowMicro(), int32(r.Flags.Patience/time.Second)
	l := &coordinationv1.Lease{ObjectMeta: r.meta(), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &life, AcquireTime: &now, RenewTime: &now}}
	created, err := r.Set.CoordinationV1().Leases(r.Namespace).Create(ctx, l, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("create the Lease that owns the runner: %w", err)
	}
	r.owner = []metav1.OwnerReference{
		{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Name: created.Name, UID: created.UID}}
	ctx, r.unlease = context.WithCancel(context.WithoutCancel(ctx))
	go r.renew(ctx)
	return nil
}

func (r *Runner) renew(ctx context.Context) {
	tick := time.NewTicker(min(renewInterval, r.Flags.Patience/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := metav1.NowMicro().MarshalJSON()
		if err == nil {
			err = renewLease(ctx, r.Cluster, r.Name(), now)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(r.Log, "renew Lease %s/%s, without which the runner ends: %v\n", r.Namespace, r.Name(), err)
		}
	}
}

func renewLease(ctx context.Context, on *cluster.Cluster, name string, now []byte) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	body := fmt.Appendf(nil, `{"spec":{"renewTime":%s}}`, now)
	leases := on.Set.CoordinationV1().Leases(on.Namespace)
	_, err := leases.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// Watch is a runner's watch over its Lease.
type Watch struct {
	// Expired ends when the Lease has expired or is gone.
	Expired context.Context
	// Running makes the process end its run, as a signal does, when the Lease expires.
	Running atomic.Bool

	on     *cluster.Cluster
	name   string
	log    io.Writer
	cancel context.CancelFunc
}

// WatchLease watches over the runner's Lease; an empty name is none.
func WatchLease(ctx context.Context, on *cluster.Cluster, name string, log io.Writer) *Watch {
	w := &Watch{on: on, name: name, log: log}
	w.Expired, w.cancel = context.WithCancel(ctx)
	if name != "" {
		w.Running.Store(true)
		go w.watch()
	}
	return w
}

// watch ends when the Lease was not renewed for its duration. It compares no two clocks, and a failed request does
// not count.
func (w *Watch) watch() {
	var seen leaseState
	var since time.Time
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for {
		select {
		case <-w.Expired.Done():
			return
		case <-tick.C:
		}
		now, err := getLease(w.Expired, w.on, w.name)
		switch {
		case apierrors.IsNotFound(err):
			w.expire("was deleted")
			return
		case err != nil:
			since = time.Now()
		case since.IsZero() || now != seen:
			seen, since = now, time.Now()
		case time.Since(since) > now.life:
			w.expire(fmt.Sprintf("was not renewed for %v: the command that started this runner is gone", now.life))
			return
		}
	}
}

func (w *Watch) expire(why string) {
	fmt.Fprintf(w.log, "Lease %s/%s %s; ending the run and removing what it made\n", w.on.Namespace, w.name, why)
	w.cancel()
	if w.Running.Load() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
}

// Release ends the watch. If the Lease has expired, it deletes the ClusterRole of --create-rbac and then the Lease,
// which owns everything else that was made for the runner.
func (w *Watch) Release(ctx context.Context) error {
	expired := w.name != "" && w.Expired.Err() != nil && ctx.Err() == nil
	w.cancel()
	if !expired {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	err := w.on.Set.RbacV1().ClusterRoles().Delete(ctx, w.name, metav1.DeleteOptions{})
	if apierrors.IsForbidden(err) { // another account than that of --create-rbac
		err = nil
	}
	return errors.Join(ignoreNotFound(err),
		ignoreNotFound(w.on.Set.CoordinationV1().Leases(w.on.Namespace).Delete(ctx, w.name, metav1.DeleteOptions{})))
}

func ignoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// leaseState is what a renewal changes.
type leaseState struct {
	uid     types.UID
	renewed int64
	life    time.Duration
}

func stateOf(l *coordinationv1.Lease) leaseState {
	s := leaseState{uid: l.UID}
	if l.Spec.RenewTime != nil {
		s.renewed = l.Spec.RenewTime.UnixMicro()
	}
	if l.Spec.LeaseDurationSeconds != nil {
		s.life = time.Duration(*l.Spec.LeaseDurationSeconds) * time.Second
	}
	return s
}

func getLease(ctx context.Context, on *cluster.Cluster, name string) (leaseState, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	l, err := on.Set.CoordinationV1().Leases(on.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return leaseState{}, err
	}
	return stateOf(l), nil
}

// renewed observes the Leases with a label and returns the name of one that is renewed; empty if none is.
func renewed(ctx context.Context, on *cluster.Cluster, selector string) (name string, err error) {
	first, end := map[string]leaseState{}, time.Time{}
	for {
		list, err := on.Set.CoordinationV1().Leases(on.Namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if apierrors.IsForbidden(err) {
			return "", nil // a user who may not list Leases has created none
		}
		if err != nil {
			return "", fmt.Errorf("list the Leases of the run: %w", err)
		}
		for i := range list.Items {
			l := &list.Items[i]
			now := stateOf(l)
			if before, known := first[l.Name]; known && before != now {
				return l.Name, nil
			}
			first[l.Name] = now
		}
		if end.IsZero() {
			end = time.Now().Add(renewWindow)
		}
		if len(list.Items) == 0 || time.Now().After(end) {
			return "", nil
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
