package lease

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/turns"
)

// labelOf returns the value of the labels for a driver.
func labelOf(driver string) string {
	return strings.TrimPrefix(core.LeaseName(driver), core.LeaseName(""))
}

// queue is the waiting of a run for its drivers. A run that waits has a ticket for each of its drivers: a Lease that it
// renews, until it has all drivers. Package turns has the order of the runs.
type queue struct {
	h       *Holder
	policy  engine.Queue
	began   time.Time
	tickets []string              // names
	renewed time.Time             // the tickets
	seen    map[types.UID]renewal // of holders and tickets of other runs
	said    string                // what the run waits for
}

// renewal is when a Lease was seen to be renewed, by this machine's clock. The clocks of two machines are not compared.
type renewal struct {
	at      *metav1.MicroTime
	since   time.Time
	changed bool // since it was first seen
}

// enqueue starts to wait. A run that an operator started has its tickets at once, so that the operator sees it.
func (h *Holder) enqueue(ctx context.Context) (*queue, error) {
	q := &queue{h: h, policy: h.run.Session.Queue, began: time.Now(), seen: map[types.UID]renewal{}}
	if q.policy.Operated && q.policy.Policy == v1alpha1.QueueWait {
		return q, q.takeTickets(ctx)
	}
	return q, nil
}

// takeTickets creates the tickets that are missing. An attempt before this one may have created one without an answer.
func (q *queue) takeTickets(ctx context.Context) error {
	e := q.h.run
	now, life := metav1.NowMicro(), int32(Duration/time.Second)
	for _, driver := range q.h.drivers[len(q.tickets):] {
		name := core.LeaseName(driver) + "-" + e.Session.RunID
		if err := e.LedgerAddLease(name); err != nil {
			return err
		}
		ticket := &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: e.Namespace,
				Labels: e.Labels(map[string]string{turns.LabelWaitsFor: labelOf(driver)}, "")},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &e.Session.RunID, LeaseDurationSeconds: &life,
				AcquireTime: &now, RenewTime: &now},
		}
		_, err := e.Client.Create(ctx, core.Leases, e.Namespace, ticket, nil)
		if err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("queue for driver %s: create the Lease %s/%s: %w", driver, e.Namespace, name, err)
		}
		q.tickets = append(q.tickets, name)
	}
	q.renewed = time.Now()
	return nil
}

// leave removes the tickets.
func (q *queue) leave(ctx context.Context) error {
	e := q.h.run
	var errs []error
	for _, name := range q.tickets {
		_, err := e.Client.Delete(context.WithoutCancel(ctx), core.Leases, e.Namespace, name, metav1.DeleteOptions{})
		if err == nil || apierrors.IsNotFound(err) {
			err = e.LedgerDone(core.Leases, name)
		}
		errs = append(errs, err)
	}
	q.say("")
	return errors.Join(errs...)
}

// acquire returns when the Lease of a driver is held or joined.
func (q *queue) acquire(ctx context.Context, driver string) error {
	e, name := q.h.run, core.LeaseName(driver)
	if err := e.LedgerAddLease(name); err != nil {
		return err
	}
	for {
		done, err := q.try(ctx, driver)
		if done || err != nil && !q.outage(err) {
			return err
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// outage reports whether an error is one of a connection or of a server that is not there, through which a run waits.
func (q *queue) outage(err error) bool {
	var status apierrors.APIStatus
	var own *engine.Error
	if q.tickets == nil || time.Since(q.began) > q.policy.Limit || errors.As(err, &own) ||
		errors.As(err, &status) && status.Status().Code < 500 {
		return false
	}
	q.say(err.Error())
	return true
}

// try makes one attempt to hold or join the Lease of a driver.
func (q *queue) try(ctx context.Context, driver string) (done bool, err error) {
	e := q.h.run
	s := standing{driver: driver}
	if q.policy.Policy != v1alpha1.QueueShare {
		if s.tickets, err = q.liveTickets(ctx, driver); err != nil {
			return false, err
		}
	}
	if s.turn, err = q.turn(ctx); err != nil {
		return false, err
	}
	s.findPlace(e.Session.RunID)
	if s.place == 0 && s.turn {
		err := q.h.create(ctx, driver)
		if err == nil || !apierrors.IsAlreadyExists(err) {
			return err == nil, wrap(err, "acquire the Lease %s/%s of driver %s", e.Namespace, core.LeaseName(driver), driver)
		}
	}
	s.holder = new(coordinationv1.Lease)
	_, err = e.Client.Get(ctx, core.Leases, e.Namespace, core.LeaseName(driver), s.holder)
	if apierrors.IsNotFound(err) {
		s.holder = nil
	} else if err != nil {
		return false, fmt.Errorf("read the Lease %s/%s: %w", e.Namespace, core.LeaseName(driver), err)
	}
	if s.holder != nil { // it keeps its tickets until it has all of its drivers
		s.tickets = slices.DeleteFunc(s.tickets, func(id string) bool { return id == holderOfLease(s.holder) })
		s.findPlace(e.Session.RunID)
	}
	return q.behind(ctx, &s)
}

// standing is where a run stands for a driver.
type standing struct {
	driver  string
	tickets []string              // run IDs, in their order
	place   int                   // in tickets; 0: first
	turn    bool                  // among the namespaces
	holder  *coordinationv1.Lease // nil: none
}

// findPlace finds the place of a run, which is the last if it has no ticket.
func (s *standing) findPlace(run string) {
	if s.place = slices.Index(s.tickets, run); s.place < 0 {
		s.place = len(s.tickets)
	}
}

// behind acts on a driver that the run cannot have now.
func (q *queue) behind(ctx context.Context, s *standing) (done bool, err error) {
	e := q.h.run
	if l := s.holder; l != nil {
		seen := q.see(l)
		switch {
		case holderOfLease(l) == e.Session.RunID:
			return true, nil
		case q.policy.Policy == v1alpha1.QueueShare:
			return true, q.h.join(ctx, l.Name, l)
		case !seen.changed && time.Since(seen.since) > Duration:
			return false, wrap(removeLease(ctx, e, l), "take over the expired Lease %s/%s", e.Namespace, l.Name)
		case !seen.changed && q.policy.Policy == v1alpha1.QueueFail:
			return false, nil // its run may be dead: see whether it is renewed
		}
	}
	switch {
	case q.policy.Policy == v1alpha1.QueueShare:
		return false, nil // the holder has just ended
	case q.policy.Policy == v1alpha1.QueueFail && (s.holder != nil || s.place > 0):
		return false, errors.Join(engine.Errorf("InUse", "%s, and two runs at once would affect each other's results: "+
			"wait until it ends, set spec.queue to Wait, or pass --concurrent to share the driver", s),
			e.LedgerDone(core.Leases, core.LeaseName(s.driver)))
	case q.policy.Policy == v1alpha1.QueueFail:
		return false, nil
	case time.Since(q.began) > q.policy.Limit:
		return false, errors.Join(engine.Errorf("InUse", "%s after %v in the queue (spec.queueLimit)", s, q.policy.Limit),
			e.LedgerDone(core.Leases, core.LeaseName(s.driver)))
	case len(q.tickets) < len(q.h.drivers):
		return false, q.takeTickets(ctx)
	}
	q.say(s.String())
	return false, q.renew(ctx)
}

// String says whom the run waits for.
func (s *standing) String() string {
	var who string
	switch {
	case s.holder != nil:
		who = fmt.Sprintf("%s is using driver %s", describeHolder(s.holder), s.driver)
	case s.place > 0:
		who = fmt.Sprintf("run %s is next for driver %s", s.tickets[0], s.driver)
	default:
		return fmt.Sprintf("a run in another namespace is using driver %s", s.driver)
	}
	return fmt.Sprintf("%s; place %d in the queue", who, s.place+1)
}

// say notes in the log and in the live line what the run waits for.
func (q *queue) say(what string) {
	if what == q.said {
		return
	}
	q.said = what
	q.h.run.Session.Sink.Log(engine.WaitsSource, engine.WaitLine("run "+q.h.run.Session.RunID, what))
}

// liveTickets returns the IDs of the runs that wait for a driver, in their order.
func (q *queue) liveTickets(ctx context.Context, driver string) ([]string, error) {
	e := q.h.run
	list, _, err := e.Client.List(ctx, core.Leases, e.Namespace,
		metav1.ListOptions{LabelSelector: turns.LabelWaitsFor}) // of all drivers, for their order
	if err != nil {
		return nil, fmt.Errorf("list the Leases of runs that wait for driver %s: %w", driver, err)
	}
	var live []coordinationv1.Lease
	waits := map[string]bool{} // for the driver
	for _, o := range list {
		l := o.(*coordinationv1.Lease)
		id := l.Labels[names.LabelRun]
		if seen := q.see(l); id == e.Session.RunID || time.Since(seen.since) <= Duration {
			live = append(live, *l)
			waits[id] = waits[id] || l.Labels[turns.LabelWaitsFor] == labelOf(driver)
		}
	}
	return slices.DeleteFunc(turns.Order(live), func(id string) bool { return !waits[id] }), nil
}

// see notes whether a Lease was renewed since it was last seen.
func (q *queue) see(l *coordinationv1.Lease) renewal {
	before, known := q.seen[l.UID]
	if !known || !before.at.Equal(l.Spec.RenewTime) {
		q.seen[l.UID] = renewal{at: l.Spec.RenewTime, since: time.Now(), changed: known}
	}
	return q.seen[l.UID]
}

// renew renews the tickets if that is due.
func (q *queue) renew(ctx context.Context) error {
	if time.Since(q.renewed) < RenewInterval {
		return nil
	}
	e := q.h.run
	for _, name := range q.tickets {
		l := new(coordinationv1.Lease)
		if _, err := e.Client.Get(ctx, core.Leases, e.Namespace, name, l); err != nil {
			return fmt.Errorf("renew the Lease %s/%s, with which this run waits: %w", e.Namespace, name, err)
		}
		if err := patchRenewal(ctx, e, l); err != nil {
			return fmt.Errorf("renew the Lease %s/%s, with which this run waits: %w", e.Namespace, name, err)
		}
	}
	q.renewed = time.Now()
	return nil
}

// turn reports whether it is the run's turn among those of other namespaces.
func (q *queue) turn(ctx context.Context) (bool, error) {
	e := q.h.run
	if !q.policy.Operated || q.policy.Policy != v1alpha1.QueueWait {
		return true, nil
	}
	list, _, err := e.Client.List(ctx, api.ConfigMaps, e.Namespace,
		metav1.ListOptions{FieldSelector: "metadata.name=" + turns.ConfigMap(e.Session.RunID)})
	return len(list) > 0, wrap(err, "read the ConfigMap with which the operator gives this run its turn")
}

// wrap returns an error with what was done; nil for nil.
func wrap(err error, doing string, args ...any) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf(doing+": %w", append(args, err)...)
}
