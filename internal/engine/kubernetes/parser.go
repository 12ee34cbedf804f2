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
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	// parserDir is where a parser script finds itself and its file.
	parserDir    = "/cnsbench"
	parserVolume = "cnsbench-parser"
	parserName   = "parser" // of the container
	// parserScratch is what a parser has in /tmp.
	parserScratch = "256Mi"
	// parserGone bounds the wait for a parser's pod to be gone.
	parserGone = 30 * time.Second
)

var _ engine.Parser = (*Engine)(nil)

// Parse runs a script as a pod of its own; see engine.Parser. The agent in it
// fetches script and file from the runner and brings back what is printed, so
// that neither has to fit into an object of the API.
func (e *Engine) Parse(ctx context.Context, p engine.ParseRequest) ([]byte, error) {
	if e.agents == nil || e.tracker == nil {
		return nil, &engine.Error{Code: "NotOpen", Message: "the engine was not opened: no parser is run"}
	}
	script := filepath.Join(e.session.Dir, p.Name+".script")
	if err := os.WriteFile(script, []byte(p.Script.Text), 0o600); err != nil {
		return nil, &engine.Error{Code: "ParserFailed", Message: err.Error(), Err: err}
	}
	defer os.Remove(script) // the session's directory is removed later in any case
	data, err := os.Stat(p.File)
	if err != nil {
		return nil, &engine.Error{Code: "ParserFailed", Message: err.Error(), Err: err}
	}
	r := &parserRun{engine: e, object: p.Name, capture: agent.NewCapture(engine.MaxPrinted)}
	pod := e.parserPod(ctx, p, data.Size())
	command := pod.Spec.Containers[0].Command
	end, err := r.run(ctx, pod, []agent.InputFile{{Source: script, Path: command[0], Mode: 0o755}, {Source: p.File, Path: command[1], Mode: 0o444}})
	var coded *engine.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeExec {
		err = fmt.Errorf("%w (its first line asks for %q, in image %s)", err, p.Script.Interpreter(), p.Script.Image)
	}
	printed, err := r.capture.Outcome(end, err)
	return printed, errors.Join(err, r.remove(ctx))
}

// parserRun is one script's pod.
type parserRun struct {
	engine  *Engine
	object  string
	capture *agent.Capture
	session *agent.Session
}

func (r *parserRun) name() string { return r.engine.name(r.object) }

// run makes the pod and returns how the script ended; the error says why it did
// not run, or not to its end.
func (r *parserRun) run(ctx context.Context, pod *corev1.Pod, gifts []agent.InputFile) (op.ContainerEnd, error) {
	none := op.ContainerEnd{}
	var err error
	r.session, err = r.engine.agents.Expect(agent.ID{Instance: r.object, Container: parserName}, agent.Options{Sample: -1, MaxOutput: agent.CaptureOutput, Sink: r.capture, Files: gifts})
	if err != nil {
		return none, err
	}
	b := r.engine.bring()
	b.pod(r.object, 1, true)
	if err := r.create(ctx, pod); err != nil {
		b.feed.close()
		return none, err
	}
	go func() {
		a := arrived{pod: pod.Name, ready: op.Milestone{Source: "agent"}}
		a.ready.At, a.ready.Err, a.failure = r.session.Started(ctx)
		b.feed.put(a)
	}()
	err = b.await(ctx, op.NewTrace(r.engine.session.Clock))
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

// create sends the pod, and before it the Secret with its agent's token.
func (r *parserRun) create(ctx context.Context, pod *corev1.Pod) error {
	e := r.engine
	delivery := e.Delivery
	if delivery == DeliverBaked { // into the images of workloads, which a parser's need not be
		delivery = DeliverInit
	}
	public, _ := r.session.SecretEnv()
	delivery.wrap(&pod.Spec.Containers[0], public, pod.Name)
	delivery.deliver(&pod.Spec, e.Image, []string{parserName})
	lastWords(&pod.Spec)
	secret := &corev1.Secret{ObjectMeta: e.meta(metav1.ObjectMeta{}, "", r.object), StringData: map[string]string{parserName: r.session.Token()}}
	if err := errors.Join(e.owe(api.Pods, pod.Name), e.owe(api.Secrets, pod.Name)); err != nil {
		return err
	}
	if _, err := e.create(ctx, api.Secrets, secret); err != nil {
		return err
	}
	_, err := e.create(ctx, api.Pods, pod)
	return err
}

// remove deletes what create made and returns when it is gone; its time is no
// longer the script's.
func (r *parserRun) remove(ctx context.Context) error {
	e := r.engine
	if r.session == nil {
		return nil
	}
	r.session.Abandon(errors.New("its parser is no longer wanted"))
	e.agents.Forget(r.object)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), parserGone)
	defer cancel()
	err := errors.Join(e.delete(ctx, api.Pods, r.name()), e.delete(ctx, api.Secrets, r.name()))
	for err == nil {
		_, err = e.client.Get(ctx, api.Pods, e.Namespace, r.name(), &corev1.Pod{})
		if apierrors.IsNotFound(err) {
			return errors.Join(e.done(api.Pods, r.name()), e.done(api.Secrets, r.name()))
		}
		select {
		case <-time.After(lookAgain):
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	return fmt.Errorf("the parser's pod %s may be left: %w", r.name(), err)
}

// parserPod meets the restricted Pod Security Standard whatever the image's
// user: the script runs as nobody in particular.
func (e *Engine) parserPod(ctx context.Context, p engine.ParseRequest, size int64) *corev1.Pod {
	pod := &corev1.Pod{ObjectMeta: e.meta(metav1.ObjectMeta{}, "", p.Name)}
	no := false
	scratch := func(name string, limit resource.Quantity) corev1.Volume {
		return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: &limit}}}
	}
	pod.Spec = corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever, AutomountServiceAccountToken: &no, EnableServiceLinks: &no,
		TerminationGracePeriodSeconds: new(int64(1)),
		Volumes: []corev1.Volume{
			scratch(parserVolume, *resource.NewQuantity(size+int64(len(p.Script.Text))+1<<20, resource.BinarySI)),
			scratch("tmp", resource.MustParse(parserScratch)),
		},
		Containers: []corev1.Container{{
			Name: parserName, Image: p.Script.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command:      []string{path.Join(parserDir, "parser"), path.Join(parserDir, "output", filepath.Base(p.File))},
			VolumeMounts: []corev1.VolumeMount{{Name: parserVolume, MountPath: parserDir}, {Name: "tmp", MountPath: "/tmp"}},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"), corev1.ResourceMemory: resource.MustParse("64Mi")},
				Limits:   corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"), corev1.ResourceMemory: resource.MustParse("512Mi")},
			},
			SecurityContext: restricted(),
		}},
	}
	if until, ok := ctx.Deadline(); ok { // also where the runner is lost
		pod.Spec.ActiveDeadlineSeconds = new(max(1, int64(time.Until(until)/time.Second)+1))
	}
	return pod
}
