package disrupt

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/manifests"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Scale sets an object's replicas and waits until as many are ready and the others gone.
func (e *Disruptor) Scale(ctx context.Context, r engine.Request, tr *op.Trace) error {
	s := r.Scale
	m, err := e.Manifests.Target(ctx, r.Target)
	if err != nil {
		return err
	}
	tr.On("", r.Target.Name)
	var set *pods.Set
	if m.HasPods {
		set = e.NewSet(m.Object.Name)
		defer set.Feed.Close()
	}
	if s.Script != nil {
		err = e.runScript(ctx, r, m, tr)
	} else {
		var call api.Call
		call, err = e.Client.Patch(ctx, m.Kind, m.Namespace, m.Name, types.MergePatchType,
			fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, s.Replicas), nil, "scale")
		err = core.APIError(ctx, err)
		tr.MarkAt(op.Acked, call.Answered, 0, "runner")
	}
	switch {
	case err != nil:
		return err
	case set != nil:
		return set.AwaitReplicas(ctx, int(s.Replicas), tr)
	}
	return m.AwaitReplicas(ctx, s.Replicas, tr)
}

const (
	scriptDir            = "/cnsbench"
	scriptFile           = "scale.sh"
	scriptRemovalTimeout = 30 * time.Second
)

// ScriptPod returns the name in the run of the pod of a request's script.
func ScriptPod(r engine.Request) string { return r.Name + "-script" }

// runScript runs a script in a pod with the script's ServiceAccount, and returns when it has succeeded.
func (e *Disruptor) runScript(ctx context.Context, r engine.Request, m *manifests.Manifest, tr *op.Trace) error {
	s, object := r.Scale.Script, ScriptPod(r)
	config := &corev1.ConfigMap{ObjectMeta: e.Meta(metav1.ObjectMeta{}, r.Action, object),
		Data: map[string]string{scriptFile: s.Text}}
	mode, no, yes := int32(0o555), false, true // the script uses the API
	pod := &corev1.Pod{ObjectMeta: e.Meta(metav1.ObjectMeta{}, r.Action, object), Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: s.ServiceAccount,
		AutomountServiceAccountToken: &yes,
		EnableServiceLinks:           &no, TerminationGracePeriodSeconds: new(int64(1)),
		Volumes: []corev1.Volume{{Name: "script",
			VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: config.Name}, DefaultMode: &mode}}}},
		Containers: []corev1.Container{{Name: "script", Image: s.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{scriptDir + "/" + scriptFile, m.Name,
				strconv.Itoa(int(r.Scale.Replicas))},
			Env: []corev1.EnvVar{{Name: "NAMESPACE", Value: m.Namespace},
				{Name: "KIND", Value: m.Kind.Name}, {Name: "RESOURCE", Value: m.Kind.String()}},
			VolumeMounts:             []corev1.VolumeMount{{Name: "script", MountPath: scriptDir, ReadOnly: true}},
			TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			SecurityContext:          podspec.Restricted()}},
	}}
	if err := e.Session.PodTemplate.Apply(pod); err != nil {
		return err
	}
	if _, err := e.Create(ctx, api.ConfigMaps, config); err != nil {
		return err
	}
	f := e.Tracker.Follow(tracker.Pod.Key(pod.Name))
	defer f.Close()
	call, err := e.Client.Create(ctx, api.Pods, e.Namespace, pod, nil)
	if err != nil {
		return core.APIError(ctx, err)
	}
	tr.MarkAt(op.Acked, call.Answered, 0, "runner")
	err = untilSucceeded(ctx, f, pod.Name, call.UID, tr)
	return errors.Join(err, e.removeScript(ctx, pod.Name))
}

// ScriptEnded is the milestone at which a script has ended.
const ScriptEnded = "scripted"

func untilSucceeded(ctx context.Context, f *tracker.Feed, name string, uid types.UID, tr *op.Trace) error {
	last := &corev1.Pod{}
	for {
		v, err := f.Next(ctx)
		if err != nil {
			return engine.Errorf("Waiting", "the script's pod %s has not ended: %s", name,
				status.PodPending(last)).Wrap(err)
		}
		ev, ok := v.(watch.Event)
		if !ok || ev.Object.GetUID() != uid {
			continue
		}
		last = ev.Object.(*corev1.Pod)
		if ev.Type == watch.Deleted {
			return engine.Errorf("Deleted", "the script's pod %s was deleted before it had ended", name)
		}
		if last.Status.Phase == corev1.PodSucceeded {
			tr.MarkAt(ScriptEnded, ev.At, ev.Err, "watch")
			return nil
		}
		if err := status.PodError(last); err != nil {
			return engine.Errorf("ScriptFailed", "%s", err.Message).Wrap(err)
		}
	}
}

// removeScript does not wait until the pod is gone; the clean-up does.
func (e *Disruptor) removeScript(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), scriptRemovalTimeout)
	defer cancel()
	return errors.Join(e.DeletePod(ctx, name, 0), e.Delete(ctx, api.ConfigMaps, name))
}
