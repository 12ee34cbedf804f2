package kubernetes

import (
	"context"
	"errors"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/provision"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	checkerName   = "check" // of the container
	checkerVolume = "data"
	checkerPath   = "/data" // a directory, or a device
)

// check reads a volume that no workload uses, in a pod of the product's image, and keeps the report as an output of the
// op. The op ends when all blocks are read; the pod is removed after it.
func (e *Engine) check(ctx context.Context, r engine.Request, tr *op.Trace) error {
	v := e.Volume(r.Target.Name)
	switch {
	case v == nil:
		return core.NotFound(r.Target)
	case v.Object.Owner != "":
		return engine.Errorf("FailedPrecondition", "volume %s belongs to workload %s, which checks it itself",
			v.Object.Name, v.Object.Owner)
	}
	tr.On("", v.Object.Name)
	node, err := e.nodeOfHolder(v)
	if err != nil {
		return err
	}
	run := &capturedRun{engine: e, object: r.Name, container: checkerName,
		capture: agent.NewCapture(engine.MaxPrinted)}
	begun := op.NewTrace(e.Session.Clock)
	end, err := run.run(ctx, e.checkerPod(ctx, r, v, node), nil, begun)
	report, err := run.capture.Outcome(end, err)
	markCheck(run, begun, tr, err == nil)
	err = errors.Join(err, run.remove(ctx))
	var failed *engine.Error
	switch {
	case errors.As(err, &failed):
		return engine.Errorf("IO", "check of %s: %s", v.Object.Name, failed.Message).Wrap(err)
	case err != nil:
		return err
	}
	e.Session.Sink.Output(r.Name, engine.CheckOutput, engine.CheckFile, report)
	return nil
}

// markCheck marks the milestones of a checker's pod, and its end.
func markCheck(run *capturedRun, begun, tr *op.Trace, read bool) {
	var pod op.Op
	begun.Fill(&pod)
	for _, m := range pod.Milestones {
		if slices.Contains([]string{op.Acked, op.Scheduled, op.Running}, m.Name) {
			tr.MarkAt(m.Name, m.At, m.Err, m.Source)
		}
	}
	if read {
		end := run.session.End()
		tr.MarkAt(op.Checked, end.At, end.Err, "agent")
		tr.EndedAt(end.At)
	}
}

// nodeOfHolder returns the node on which a volume is attached for the run; empty: it is not attached.
func (e *Engine) nodeOfHolder(v *pods.Volume) (string, error) {
	if v.Holder == nil {
		return "", nil
	}
	claim, ok := e.Tracker.Latest(tracker.Claim.Key(v.Name)).(*corev1.PersistentVolumeClaim)
	if ok && slices.Contains(claim.Spec.AccessModes, corev1.ReadWriteOncePod) {
		return "", engine.Errorf("FailedPrecondition", "volume %s has access mode ReadWriteOncePod and is in use by the "+
			"pod that holds it: leave attach out, or use ReadWriteOnce", v.Object.Name)
	}
	live := v.Holder.Live()
	if live == nil {
		return "", engine.Errorf("FailedPrecondition", "the pod that holds volume %s has ended", v.Object.Name)
	}
	return live.Spec.NodeName, nil
}

// checkerPod returns a pod that reads a volume. Its image has the agent.
func (e *Engine) checkerPod(ctx context.Context, r engine.Request, v *pods.Volume, node string) *corev1.Pod {
	no, user, onMismatch := false, int64(podspec.User), corev1.FSGroupChangeOnRootMismatch
	c := corev1.Container{Name: checkerName, Image: e.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command:         []string{engine.Program, "integrity", "check", checkerPath},
		SecurityContext: provision.VolumeSecurity(v.Block), Resources: podspec.Resources()}
	pod := &corev1.Pod{ObjectMeta: e.Meta(metav1.ObjectMeta{}, r.Action, r.Name)}
	if v.Block {
		c.VolumeDevices = []corev1.VolumeDevice{{Name: checkerVolume, DevicePath: checkerPath}}
	} else {
		c.VolumeMounts = []corev1.VolumeMount{{Name: checkerVolume, MountPath: checkerPath, ReadOnly: true}}
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &user, FSGroupChangePolicy: &onMismatch}
	}
	pod.Spec.RestartPolicy = corev1.RestartPolicyNever
	pod.Spec.AutomountServiceAccountToken, pod.Spec.EnableServiceLinks = &no, &no
	pod.Spec.TerminationGracePeriodSeconds = new(int64(1))
	pod.Spec.Containers = []corev1.Container{c}
	claim := &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name, ReadOnly: v.ReadOnly}
	pod.Spec.Volumes = []corev1.Volume{{Name: checkerVolume,
		VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: claim}}}
	if until, ok := ctx.Deadline(); ok { // even if the runner is lost
		pod.Spec.ActiveDeadlineSeconds = new(max(1, int64(time.Until(until)/time.Second)+1))
	}
	if node != "" { // a volume with access by one node
		podspec.RequireNode(pod, corev1.NodeSelectorOpIn, node)
	}
	return pod
}
