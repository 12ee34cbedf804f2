package podrunner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Owner identifies the runner of a run, for a clean-up.
type Owner struct {
	Run string // its ID
	// Proof is on the objects of the run; empty: the user names the run, and its label decides.
	Proof string
}

// check refuses labels that are not of the run's runner.
func (o Owner) check(labels map[string]string) error {
	switch {
	case labels[Label] != o.Run:
		return owned.Refuse("it does not carry the label of the runner of run %s", o.Run)
	case o.Proof != "" && labels[names.LabelIdentity] != o.Proof:
		return owned.Refuse("it carries the label of the runner of run %s, and not the proof of its identity", o.Run)
	}
	return nil
}

func (o Owner) selector() metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: Label + "=" + o.Run}
}

// Pods lists the pods that Stop would delete; refused joins the reasons for those that it would leave.
func (o Owner) Pods(ctx context.Context, on *cluster.Cluster) (names []string, refused error, err error) {
	pods, err := on.Set.CoreV1().Pods(on.Namespace).List(ctx, o.selector())
	if err != nil {
		return nil, nil, fmt.Errorf("find the runner's pod: %w", err)
	}
	for _, p := range pods.Items {
		if err := o.check(p.Labels); err != nil {
			refused = errors.Join(refused, fmt.Errorf("pod %s: %w", p.Name, err))
			continue
		}
		names = append(names, p.Name)
	}
	return names, refused, nil
}

// Stop ends the runner of a run, before what the run made is removed. It refuses while the run continues, and
// deletes the pod of a runner whose command is gone, with everything made for it.
func (o Owner) Stop(ctx context.Context, on *cluster.Cluster, log io.Writer) error {
	mine := o.selector()
	lease, err := renewed(ctx, on, mine.LabelSelector)
	if err != nil {
		return err
	}
	if lease != "" {
		return fmt.Errorf("run %s is in progress: the command that started it renews Lease %s/%s; interrupt that command",
			o.Run, on.Namespace, lease)
	}
	pods, err := on.Set.CoreV1().Pods(on.Namespace).List(ctx, mine)
	if err != nil {
		return fmt.Errorf("find the runner's pod: %w", err)
	}
	for i := range pods.Items {
		p := &pods.Items[i]
		if err := o.check(p.Labels); err != nil {
			return fmt.Errorf("pod %s/%s: %w", on.Namespace, p.Name, err)
		}
		fmt.Fprintf(log, "asking runner pod %s/%s to end and to remove what it made\n", on.Namespace, p.Name)
		if err := endPod(ctx, on, p); err != nil {
			return err
		}
	}
	if lease, err = renewed(ctx, on, names.LabelRun+"="+o.Run); err != nil {
		return err
	}
	if lease != "" {
		return fmt.Errorf("run %s is in progress: its runner renews Lease %s/%s; end it first: "+
			"interrupt the command, or delete the Benchmark", o.Run, on.Namespace, lease)
	}
	return errors.Join(o.removeObjects(ctx, on), removeRights(ctx, on, name(o.Run), o.check))
}

// endPod deletes a runner's pod and waits until it is gone.
func endPod(ctx context.Context, on *cluster.Cluster, p *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, grace+time.Minute)
	defer cancel()
	pods := on.Set.CoreV1().Pods(on.Namespace)
	err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &p.UID}})
	for err == nil {
		if _, err = pods.Get(ctx, p.Name, metav1.GetOptions{}); err != nil {
			break
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			err = errors.New("it still exists")
		}
	}
	if ignoreNotFound(err) != nil {
		return fmt.Errorf("end the runner's pod %s/%s: %w; what the run made is left", on.Namespace, p.Name, err)
	}
	return nil
}

// removeObjects deletes what was made for a runner, and its Lease.
func (o Owner) removeObjects(ctx context.Context, on *cluster.Cluster) error {
	core, mine, n := on.Set.CoreV1(), o.selector(), on.Namespace
	configs, err := core.ConfigMaps(n).List(ctx, mine)
	errs := []error{err}
	for i := range configs.Items {
		errs = append(errs, o.remove(ctx, &configs.Items[i], "ConfigMap", core.ConfigMaps(n)))
	}
	secrets, err := core.Secrets(n).List(ctx, mine)
	errs = append(errs, err)
	for i := range secrets.Items {
		errs = append(errs, o.remove(ctx, &secrets.Items[i], "Secret", core.Secrets(n)))
	}
	leases, err := on.Set.CoordinationV1().Leases(n).List(ctx, mine)
	if !apierrors.IsForbidden(err) {
		errs = append(errs, err)
	}
	for i := range leases.Items {
		errs = append(errs, o.remove(ctx, &leases.Items[i], "Lease", on.Set.CoordinationV1().Leases(n)))
	}
	return errors.Join(errs...)
}

func (o Owner) remove(ctx context.Context, object metav1.Object, kind string, from interface {
	Delete(context.Context, string, metav1.DeleteOptions) error
}) error {
	if err := o.check(object.GetLabels()); err != nil {
		return fmt.Errorf("%s %s/%s: %w", kind, object.GetNamespace(), object.GetName(), err)
	}
	uid := object.GetUID()
	opts := metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}
	return ignoreNotFound(from.Delete(ctx, object.GetName(), opts))
}
