package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/agent"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// parserDir has a parser script and its input.
	parserDir    = "/cnsbench"
	parserVolume = "cnsbench-parser"
	parserName   = "parser" // of the container
	// parserTmpSize limits /tmp of a parser.
	parserTmpSize        = "256Mi"
	parserRemovalTimeout = 30 * time.Second
	podPollInterval      = 500 * time.Millisecond
)

var _ engine.Parser = (*Engine)(nil)

// Parse runs a script in a pod; see engine.Parser. Its agent fetches script and file from the runner and returns
// the output, so that they need not fit into API objects.
func (e *Engine) Parse(ctx context.Context, p engine.ParseRequest) ([]byte, error) {
	if e.Agents == nil || e.Tracker == nil {
		return nil, engine.Errorf("NotOpen", "the engine was not opened: no parser is run")
	}
	script := filepath.Join(e.Session.Dir, p.Name+".script")
	if err := os.WriteFile(script, []byte(p.Script.Text), 0o600); err != nil {
		return nil, engine.Errorf("ParserFailed", "%s", err.Error()).Wrap(err)
	}
	defer os.Remove(script) // the session's directory is removed later
	data, err := os.Stat(p.File)
	if err != nil {
		return nil, engine.Errorf("ParserFailed", "%s", err.Error()).Wrap(err)
	}
	r := &capturedRun{engine: e, object: p.Name, container: parserName, capture: agent.NewCapture(engine.MaxPrinted)}
	pod := e.parserPod(ctx, p, data.Size())
	command := pod.Spec.Containers[0].Command
	end, err := r.run(ctx, pod,
		[]agent.InputFile{{Source: script, Path: command[0], Mode: 0o755},
			{Source: p.File, Path: command[1], Mode: 0o444}}, op.NewTrace(e.Session.Clock))
	var coded *engine.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeExec {
		err = fmt.Errorf("%w (its first line asks for %q, in image %s)", err, p.Script.Interpreter(), p.Script.Image)
	}
	printed, err := r.capture.Outcome(end, err)
	return printed, errors.Join(err, r.remove(ctx))
}

// capturedRun is a pod of one container whose output the runner keeps in memory: of a script, or of a check.
type capturedRun struct {
	engine    *Engine
	object    string // its name in the run
	container string
	capture   *agent.Capture
	session   *agent.Session
}

func (r *capturedRun) name() string { return r.engine.Name(r.object) }

// run creates the pod and returns how its container ended; milestones go to tr. The error says why it did not run to
// its end.
func (r *capturedRun) run(ctx context.Context, pod *corev1.Pod, files []agent.InputFile, tr *op.Trace) (op.ContainerEnd,
	error) {
	none := op.ContainerEnd{}
	var err error
	r.session, err = r.engine.Agents.Expect(agent.ID{Instance: r.object, Container: r.container},
		agent.Options{Sample: -1, MaxOutput: agent.CaptureOutput, Sink: r.capture, Files: files})
	if err != nil {
		return none, err
	}
	pr := r.engine.NewProvision()
	delivery := r.delivery(&pod.Spec)
	delivery.Deliver(&pod.Spec, r.engine.Image, []string{r.container})
	pr.AddPod(r.object, 1, pod.Spec.InitContainers)
	if err := r.create(ctx, pod, delivery, tr); err != nil {
		pr.Feed.Close()
		return none, err
	}
	go func() {
		a := pods.AgentReady{Pod: pod.Name, Ready: op.Milestone{Source: "agent"}}
		a.Ready.At, a.Ready.Err, a.Failure = r.session.Started(ctx)
		pr.Feed.Put(a)
	}()
	err = pr.Wait(ctx, tr)
	if err == nil {
		select {
		case <-r.session.Done():
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		return none, fmt.Errorf("it was killed: %w", context.Cause(ctx))
	}
	if err != nil {
		return none, err
	}
	end := r.session.End()
	if end.Failure != nil {
		return none, end.Failure
	}
	return end.ContainerEnd, nil
}

// delivery returns how the agent gets into the pod.
func (r *capturedRun) delivery(spec *corev1.PodSpec) podspec.Delivery {
	d := r.engine.Delivery
	if d == podspec.DeliverBaked { // into workload images only
		d = podspec.DeliverInit
	}
	return d.For(spec, r.engine.Image, []string{r.container})
}

// create creates the Secret with the agent's token and the pod.
func (r *capturedRun) create(ctx context.Context, pod *corev1.Pod, delivery podspec.Delivery, tr *op.Trace) error {
	e := r.engine
	public, _ := r.session.SecretEnv()
	delivery.Wrap(&pod.Spec.Containers[0], public, pod.Name)
	podspec.SetTerminationMessages(&pod.Spec)
	if err := e.Session.PodTemplate.Apply(pod); err != nil {
		return err
	}
	secret := &corev1.Secret{ObjectMeta: e.Meta(metav1.ObjectMeta{}, "", r.object),
		StringData: map[string]string{r.container: r.session.Token()}}
	if err := errors.Join(e.LedgerAdd(api.Pods, pod.Name), e.LedgerAdd(api.Secrets, pod.Name)); err != nil {
		return err
	}
	if _, err := e.Create(ctx, api.Secrets, secret); err != nil {
		return err
	}
	answered, err := e.Create(ctx, api.Pods, pod)
	if err == nil {
		tr.MarkAt(op.Acked, answered, 0, "runner")
	}
	return err
}

// remove deletes what create created and waits until it is gone, outside of its time.
func (r *capturedRun) remove(ctx context.Context) error {
	e := r.engine
	if r.session == nil {
		return nil
	}
	r.session.Abandon(errors.New("the command has ended"))
	e.Agents.Forget(r.object)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parserRemovalTimeout)
	defer cancel()
	err := errors.Join(e.Delete(ctx, api.Pods, r.name()), e.Delete(ctx, api.Secrets, r.name()))
	for err == nil {
		_, err = e.Client.Get(ctx, api.Pods, e.Namespace, r.name(), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return errors.Join(e.LedgerDone(api.Pods, r.name()), e.LedgerDone(api.Secrets, r.name()))
		}
		select {
		case <-time.After(podPollInterval):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return fmt.Errorf("pod %s may be left: %w", r.name(), err)
}

// parserPod returns a pod that meets the restricted Pod Security Standard, whatever user the image has.
func (e *Engine) parserPod(ctx context.Context, p engine.ParseRequest, size int64) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: e.Meta(metav1.ObjectMeta{}, "", p.Name)}
	no := false
	scratch := func(name string, limit resource.Quantity) corev1.Volume {
		return corev1.Volume{Name: name,
			VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}
	}
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		TerminationGracePeriodSeconds: new(int64(1)),
		Volumes: []corev1.Volume{
			scratch(parserVolume, *resource.NewQuantity(size+int64(len(p.Script.Text))+1<<20, resource.BinarySI)),
			scratch("tmp", resource.MustParse(parserTmpSize)),
		},
		Containers: []corev1.Container{{
			Name: parserName, Image: p.Script.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{path.Join(parserDir, "parser"),
				path.Join(parserDir, "output", filepath.Base(p.File))},
			VolumeMounts: []corev1.VolumeMount{{Name: parserVolume, MountPath: parserDir},
				{Name: "tmp", MountPath: "/tmp"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"),
					corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
					corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
			SecurityContext: podspec.Restricted(),
		}},
	}
	if until, ok := ctx.Deadline(); ok { // even if the runner is lost
		pod.Spec.ActiveDeadlineSeconds = new(max(1, int64(time.Until(until)/time.Second)+1))
	}
	return pod
}
