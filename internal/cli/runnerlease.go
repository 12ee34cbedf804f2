package cli

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
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// A runner's pod and what it is handed belong to a Lease, which the command that
// started it renews. Whoever deletes the Lease deletes them too. A runner whose
// Lease is not renewed any more ends its run, removes what the run made, and
// deletes the Lease, and so itself.

const (
	// renewEach is how often a command renews its runner's Lease, at most.
	renewEach = 5 * time.Second
	// renewedWithin is within what a Lease is renewed whose holder is at work:
	// that of a runner's pod, and those of drivers.
	renewedWithin = 3 * renewEach
	// leaseRequest bounds one request about a Lease.
	leaseRequest = 10 * time.Second
	// leaseLook is how often a Lease is looked at by whoever waits for a renewal.
	leaseLook = time.Second
)

// own makes the Lease that owns all that start makes, and renews it until the
// result is called.
func (r *podRun) own(ctx context.Context) (stop func(), err error) {
	host, _ := os.Hostname()
	holder, now, life := "cnsbench run on "+host, metav1.NowMicro(), int32(r.flags.cluster.patience/time.Second)
	l := &coordinationv1.Lease{ObjectMeta: r.meta(), Spec: coordinationv1.LeaseSpec{
		HolderIdentity: &holder, LeaseDurationSeconds: &life, AcquireTime: &now, RenewTime: &now}}
	made, err := r.set.CoordinationV1().Leases(r.namespace).Create(ctx, l, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("make the Lease that owns the runner: %w", err)
	}
	owner := metav1.OwnerReference{APIVersion: "coordination.k8s.io/v1", Kind: "Lease", Name: made.Name, UID: made.UID}
	r.owner = []metav1.OwnerReference{owner}
	ctx, stop = context.WithCancel(context.WithoutCancel(ctx))
	go r.renew(ctx)
	return stop, nil
}

func (r *podRun) renew(ctx context.Context) {
	tick := time.NewTicker(min(renewEach, r.flags.cluster.patience/4))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now, err := metav1.NowMicro().MarshalJSON()
		if err == nil {
			err = renewLease(ctx, r.cluster, r.name(), now)
		}
		if err != nil && ctx.Err() == nil {
			fmt.Fprintf(r.err, "renew Lease %s/%s, without which the runner ends: %v\n", r.namespace, r.name(), err)
		}
	}
}

func renewLease(ctx context.Context, on *cluster, name string, now []byte) error {
	ctx, cancel := context.WithTimeout(ctx, leaseRequest)
	defer cancel()
	body := fmt.Appendf(nil, `{"spec":{"renewTime":%s}}`, now)
	leases := on.set.CoordinationV1().Leases(on.namespace)
	_, err := leases.Patch(ctx, name, types.MergePatchType, body, metav1.PatchOptions{})
	return err
}

// followed is a runner's view of its Lease.
type followed struct {
	on        *cluster
	name      string
	err       io.Writer
	abandoned context.Context // ends when nobody renews the Lease
	cancel    context.CancelFunc
	running   atomic.Bool
}

// follow watches over the Lease of this runner.
func (f *clusterFlags) follow(ctx context.Context, s *streams, on *cluster) *followed {
	w := &followed{on: on, name: f.lease, err: s.err}
	w.abandoned, w.cancel = context.WithCancel(ctx)
	if w.name != "" {
		w.running.Store(true)
		go w.watch()
	}
	return w
}

// watch ends the run, as a signal would, when the Lease was not renewed for its
// duration. No two clocks are compared, and a request that fails says nothing.
func (f *followed) watch() {
	var seen leaseState
	var since time.Time
	tick := time.NewTicker(leaseLook)
	defer tick.Stop()
	for {
		select {
		case <-f.abandoned.Done():
			return
		case <-tick.C:
		}
		now, err := lookAtLease(f.abandoned, f.on, f.name)
		switch {
		case apierrors.IsNotFound(err):
			f.abandon("was deleted")
			return
		case err != nil:
			since = time.Now()
		case since.IsZero() || now != seen:
			seen, since = now, time.Now()
		case time.Since(since) > now.life:
			f.abandon(fmt.Sprintf("was not renewed for %v: the command that started this runner is gone", now.life))
			return
		}
	}
}

func (f *followed) abandon(why string) {
	fmt.Fprintf(f.err, "Lease %s/%s %s; ending the run and removing what it made\n", f.on.namespace, f.name, why)
	f.cancel()
	if f.running.Load() {
		_ = syscall.Kill(os.Getpid(), syscall.SIGTERM)
	}
}

// release deletes the Lease where nobody else will.
func (f *followed) release(ctx context.Context) error {
	gone := f.name != "" && f.abandoned.Err() != nil && ctx.Err() == nil
	f.cancel()
	if !gone {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, leaseRequest)
	defer cancel()
	return ignoreNotFound(f.on.set.CoordinationV1().Leases(f.on.namespace).Delete(ctx, f.name, metav1.DeleteOptions{}))
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

func lookAtLease(ctx context.Context, on *cluster, name string) (leaseState, error) {
	ctx, cancel := context.WithTimeout(ctx, leaseRequest)
	defer cancel()
	l, err := on.set.CoordinationV1().Leases(on.namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return leaseState{}, err
	}
	return stateOf(l), nil
}

// renewed looks whether one of the Leases with a label is renewed, and names it.
func renewed(ctx context.Context, on *cluster, selector string) (name string, err error) {
	first, end := map[string]leaseState{}, time.Time{}
	for {
		list, err := on.set.CoordinationV1().Leases(on.namespace).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if apierrors.IsForbidden(err) {
			return "", nil // who may not look has not made any
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
			end = time.Now().Add(renewedWithin)
		}
		if len(list.Items) == 0 || time.Now().After(end) {
			return "", nil
		}
		select {
		case <-time.After(leaseLook):
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// runner is that of a run, for a clean-up.
type runner struct {
	run string
	// proof is what its objects carry; empty: the user names the run, and its label
	// decides.
	proof string
}

// owns refuses what does not carry the label of the run's runner, and the proof of
// the run's identity.
func (r runner) owns(labels map[string]string) error {
	switch {
	case labels[labelRunner] != r.run:
		return owned.Refuse("it does not carry the label of the runner of run %s", r.run)
	case r.proof != "" && labels[names.LabelIdentity] != r.proof:
		return owned.Refuse("it carries the label of the runner of run %s, and not the proof of its identity", r.run)
	}
	return nil
}

func (r runner) selector() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: labelRunner + "=" + r.run}
}

// endRunner makes sure that nobody carries a run out any more before what it made
// is removed: it refuses where the run goes on, and ends a runner's pod whose
// command is gone.
func endRunner(ctx context.Context, s *streams, on *cluster, of runner) error {
	mine := of.selector()
	lease, err := renewed(ctx, on, mine.LabelSelector)
	if err != nil {
		return err
	}
	if lease != "" {
		return fmt.Errorf("run %s goes on: the command that started it renews Lease %s/%s; interrupt that command",
			of.run, on.namespace, lease)
	}
	pods, err := on.set.CoreV1().Pods(on.namespace).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("look for the runner's pod: %w", err)
	}
	for _, p := range pods.Items {
		if err := of.owns(p.Labels); err != nil {
			return fmt.Errorf("pod %s/%s: %w", on.namespace, p.Name, err)
		}
		fmt.Fprintf(s.err, "runner pod %s/%s is asked to end and to remove what it made\n", on.namespace, p.Name)
		if err := on.endPod(ctx, &p); err != nil {
			return err
		}
	}
	if lease, err = renewed(ctx, on, names.LabelRun+"="+of.run); err != nil {
		return err
	}
	if lease != "" {
		return fmt.Errorf("run %s goes on: its runner renews Lease %s/%s; end it first: "+
			"interrupt the command, or delete the Benchmark", of.run, on.namespace, lease)
	}
	return errors.Join(on.removeRunner(ctx, of), on.removeRights(ctx, runnerName(of.run), of.owns))
}

// endPod deletes a runner's pod and waits until it is gone.
func (c *cluster) endPod(ctx context.Context, p *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, runnerGrace+time.Minute)
	defer cancel()
	pods := c.set.CoreV1().Pods(c.namespace)
	err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}})
	for err == nil {
		if _, err = pods.Get(ctx, p.Name, metav1.GetOptions{}); err != nil {
			break
		}
		select {
		case <-time.After(leaseLook):
		case <-ctx.Done():
			err = errors.New("it is still there")
		}
	}
	if ignoreNotFound(err) != nil {
		return fmt.Errorf("end the runner's pod %s/%s: %w; what the run made is left", c.namespace, p.Name, err)
	}
	return nil
}

// removeRunner removes what a runner was handed, and its Lease.
func (c *cluster) removeRunner(ctx context.Context, of runner) error {
	core, mine := c.set.CoreV1(), of.selector()
	var errs []error
	remove := func(kind string, o metav1.Object, from interface {
		Delete(context.Context, string, metav1.DeleteOptions) error
	}) {
		if err := of.owns(o.GetLabels()); err != nil {
			errs = append(errs, fmt.Errorf("%s %s/%s: %w", kind, c.namespace, o.GetName(), err))
			return
		}
		uid := o.GetUID()
		err := from.Delete(ctx, o.GetName(), metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
		errs = append(errs, ignoreNotFound(err))
	}
	configs, err := core.ConfigMaps(c.namespace).List(ctx, mine)
	errs = append(errs, err)
	for i := range configs.Items {
		remove("ConfigMap", &configs.Items[i], core.ConfigMaps(c.namespace))
	}
	secrets, err := core.Secrets(c.namespace).List(ctx, mine)
	errs = append(errs, err)
	for i := range secrets.Items {
		remove("Secret", &secrets.Items[i], core.Secrets(c.namespace))
	}
	leases, err := c.set.CoordinationV1().Leases(c.namespace).List(ctx, mine)
	if !apierrors.IsForbidden(err) {
		errs = append(errs, err)
	}
	for i := range leases.Items {
		remove("Lease", &leases.Items[i], c.set.CoordinationV1().Leases(c.namespace))
	}
	return errors.Join(errs...)
}
