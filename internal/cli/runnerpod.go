package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/operator"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/report/html"
	"github.com/cnsbench/cnsbench/internal/report/terminal"
)

const (
	labelRunner = "cnsbench.dev/runner" // not the run's own: its clean-up must not remove its runner
	runnerDir   = "/bundle"
	runnerFiles = "/etc/cnsbench"
	runnerPort  = 7070
	// runnerGrace is how long a runner that is asked to end may clean up.
	runnerGrace = 10 * time.Minute
	// startWithin is how long the runner's pod may take to run.
	startWithin = 5 * time.Minute
	// besideRuntime is for set-up, clean-up and fetching the bundle, and longestRun
	// for a run that ends with its workloads: both bound what is forgotten.
	besideRuntime = 6 * time.Hour
	longestRun    = 7 * 24 * time.Hour
	// minPatience leaves time to renew.
	minPatience = 4 * time.Second
	// lastWordsWithin is how long the rest of a failed runner's log may take.
	lastWordsWithin = 3 * time.Second
)

// podRun is a run whose runner is a pod, seen from the command that started it.
type podRun struct {
	*streams
	*cluster
	flags *runFlags
	plan  *plan.Plan
	id    string
	// identity of the run, which the pod takes over.
	identity owned.Identity
	// carried are files of this machine that the plan is made of.
	carried *carried
	configs []string // ConfigMaps that were made
	// owner is the Lease, with which all that was made for the runner goes.
	owner   []metav1.OwnerReference
	account string // that was made for the runner; empty: the Benchmark's
}

// runInPod starts a runner in the user's namespace, shows its log, copies its
// bundle while that grows, and removes it.
func runInPod(ctx context.Context, s *streams, f *runFlags, on *cluster, p *plan.Plan, files []plan.File) error {
	beside, err := carry(p, files[0].Name)
	if err != nil {
		return err
	}
	r := &podRun{streams: s, cluster: on, flags: f, plan: p, carried: beside, id: newRunID()}
	r.identity = on.identity(r.id)
	if f.out == "" {
		f.out = fmt.Sprintf("cnsbench-%s-%s", p.Name, time.Now().Format("20060102-150405"))
	}
	if err := r.announce(files); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	renewing, err := r.own(ctx)
	if err != nil {
		return failed(errors.Join(err, bundle.Withdraw(f.out)))
	}
	defer renewing()
	defer r.remove(context.WithoutCancel(ctx))
	if err := r.start(ctx, files); err != nil {
		return failed(err)
	}
	fmt.Fprintf(s.err, "runner: pod %s/%s\n", on.namespace, r.name())
	code, err := r.follow(ctx)
	if err != nil && bundle.Announced(f.out) { // nothing has come
		return failed(err)
	}
	return r.report(code, err)
}

// announce says in the bundle's directory, before anything is made, what the run
// is: a clean-up finds what it has made whenever this command is killed.
func (r *podRun) announce(files []plan.File) error {
	described := describeRun(r.id, r.plan, files, op.NewClock(), planFacts(r.plan, r.flags.args(), ""))
	described.Engine, described.Identity = r.flags.engine, r.identity
	return bundle.Announce(r.flags.out, described)
}

// identityKey is where the runner's ConfigMap has the identity of its run.
const identityKey = "identity.json"

// proxyTokenKey is where the runner's Secret has the token for CSI proxies.
const proxyTokenKey = "token"

func (r *podRun) name() string { return runnerName(r.id) }

func runnerName(run string) string { return "cnsb-" + run + "-runner" }

func (r *podRun) meta() metav1.ObjectMeta {
	labels := map[string]string{labelRunner: r.id, names.LabelIdentity: r.identity.Proof()}
	return metav1.ObjectMeta{Name: r.name(), Namespace: r.namespace, Labels: labels, OwnerReferences: r.owner}
}

// start makes the ConfigMaps with the files and the pod, and waits until it runs.
func (r *podRun) start(ctx context.Context, files []plan.File) error {
	identity, err := json.Marshal(r.identity)
	if err != nil {
		return err
	}
	config := &corev1.ConfigMap{ObjectMeta: r.meta(), Data: map[string]string{identityKey: string(identity)}}
	var paths []string
	for i, f := range files {
		key := fmt.Sprintf("%02d.yaml", i)
		config.Data[key] = string(f.Data)
		paths = append(paths, runnerFiles+"/"+key)
	}
	if err := r.hand(ctx, config); err != nil {
		return err
	}
	for i, p := range r.carried.pieces {
		config := &corev1.ConfigMap{ObjectMeta: r.meta(), BinaryData: map[string][]byte{"piece": p.data}}
		config.Name = fmt.Sprintf("%s-file-%d", r.name(), i)
		if err := r.hand(ctx, config); err != nil {
			return err
		}
	}
	if r.flags.cluster.createRBAC {
		account, err := r.createRights(ctx)
		if err != nil {
			return err
		}
		r.account = account
	}
	pod := r.pod(paths)
	r.carried.mount(&pod.Spec, r.configs[1:])
	if token := os.Getenv(envProxyToken); token != "" && len(r.flags.cluster.proxies) > 0 {
		secret := &corev1.Secret{ObjectMeta: r.meta(), StringData: map[string]string{proxyTokenKey: token}}
		if _, err := r.set.CoreV1().Secrets(r.namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("hand the proxies' token to the runner: %w", err)
		}
		c := &pod.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: envProxyToken, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: r.name()}, Key: proxyTokenKey}}})
	}
	if _, err := r.set.CoreV1().Pods(r.namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("start the runner: %w", err)
	}
	return r.running(ctx)
}

// hand makes a ConfigMap for the runner, which remove takes away.
func (r *podRun) hand(ctx context.Context, config *corev1.ConfigMap) error {
	r.configs = append(r.configs, config.Name)
	if _, err := r.set.CoreV1().ConfigMaps(r.namespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("hand the files to the runner: %w", err)
	}
	return nil
}

// arguments are the runner's: what shapes the run here shapes it there.
func (r *podRun) arguments(paths []string) []string {
	args := append([]string{"run"}, paths...)
	args = append(args, "--engine", engineKubernetes, "--runner", runnerLocal, "--namespace", r.namespace,
		"--run-id", r.id, "--run-identity", runnerFiles+"/"+identityKey,
		"--runner-lease", r.name(), "--image", r.flags.cluster.image, "--agent", r.flags.cluster.delivery,
		"--out", filepath.Join(runnerDir, r.namespace, r.id), "--serve", fmt.Sprintf("127.0.0.1:%d", runnerPort))
	for _, set := range r.flags.set {
		args = append(args, "--set", set)
	}
	if r.flags.strict {
		args = append(args, "--strict")
	}
	if r.flags.keep {
		args = append(args, "--keep")
	}
	if r.flags.cluster.concurrent {
		args = append(args, "--concurrent")
	}
	for _, at := range r.flags.cluster.metrics {
		args = append(args, "--metrics", at)
	}
	for _, at := range r.flags.cluster.proxies {
		args = append(args, "--csi-proxy", at)
	}
	return append(args, r.carried.flags...)
}

func (r *podRun) pod(paths []string) *corev1.Pod {
	grace, user, yes, no := int64(runnerGrace/time.Second), int64(65532), true, false
	p := &corev1.Pod{ObjectMeta: r.meta(), Spec: corev1.PodSpec{
		ActiveDeadlineSeconds: new(int64(r.longest() / time.Second)),
		RestartPolicy:         corev1.RestartPolicyNever, TerminationGracePeriodSeconds: &grace,
		ServiceAccountName: cmp.Or(r.account, r.plan.Benchmark.Spec.ServiceAccountName),
		SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, RunAsUser: &user, FSGroup: &user,
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		Containers: []corev1.Container{{
			Name: "runner", Image: r.flags.cluster.image, ImagePullPolicy: corev1.PullIfNotPresent, Command: []string{"/cnsbench"}, Args: r.arguments(paths),
			Env:             []corev1.EnvVar{{Name: "CNSBENCH_ADVERTISE", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}},
			SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
			VolumeMounts:    []corev1.VolumeMount{{Name: "bundle", MountPath: runnerDir}, {Name: "files", MountPath: runnerFiles}, {Name: "tmp", MountPath: "/tmp"}},
		}},
		Volumes: []corev1.Volume{
			{Name: "bundle", VolumeSource: operator.BundleVolume(&r.plan.Benchmark.Spec)},
			{Name: "tmp", VolumeSource: operator.ScratchVolume()},
			{Name: "files", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: r.name()}}}},
		},
	}}
	c := &p.Spec.Containers[0]
	c.Env = append(c.Env, corev1.EnvVar{Name: envNoSummary, Value: "1"})
	p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
	return p
}

// longest is after how long the cluster ends a runner that nothing else has ended.
func (r *podRun) longest() time.Duration {
	if r.plan.Runtime > 0 {
		return r.plan.Runtime + r.plan.Grace + besideRuntime
	}
	return longestRun
}

// running waits until the runner's container has started.
func (r *podRun) running(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	last := "it was not seen"
	for {
		p, err := r.set.CoreV1().Pods(r.namespace).Get(ctx, r.name(), metav1.GetOptions{})
		if err == nil {
			if p.Status.Phase == corev1.PodRunning || p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed {
				return nil
			}
			var hopeless bool
			if last, hopeless = waiting(p); hopeless {
				return fmt.Errorf("the runner's pod does not start: %s", last)
			}
		} else if ctx.Err() == nil {
			last = err.Error()
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the runner's pod %s/%s does not run: %s", r.namespace, r.name(), last)
		}
	}
}

// waiting says what a pod that does not run waits for, and whether in vain.
func waiting(p *corev1.Pod) (why string, hopeless bool) {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
			why = "it is not scheduled: " + c.Message
		}
	}
	for _, c := range p.Status.ContainerStatuses {
		if w := c.State.Waiting; w != nil {
			why = strings.TrimSpace(w.Reason + ": " + w.Message)
			switch w.Reason {
			case "ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "CreateContainerConfigError", "CreateContainerError":
				return fmt.Sprintf("image %s: %s", c.Image, why), true
			}
		}
	}
	return why, false
}

// follow shows the log and copies the bundle until the runner has closed it.
// An interrupt asks the runner to end, which it does cleanly.
func (r *podRun) follow(ctx context.Context) (code int, err error) {
	whole, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	logged := make(chan struct{})
	logs, stopLogs := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(logged); r.log(logs) }()
	defer func() {
		time.AfterFunc(lastWordsWithin, stopLogs)
		if err != nil {
			<-logged // why it failed is in it
		}
		stopLogs()
	}()
	asked := context.AfterFunc(ctx, func() {
		fmt.Fprintln(r.err, "\nasking the runner to end and to clean up")
		if err := r.set.CoreV1().Pods(r.namespace).Delete(whole, r.name(), metav1.DeleteOptions{}); err != nil {
			fmt.Fprintln(r.err, "ask the runner to end:", err)
		}
	})
	defer asked()
	lost := r.watchLoss(whole, cancel)
	err = r.copy(whole)
	if reason := <-lost(); reason != "" {
		err = errors.Join(errors.New(reason), err)
	}
	if err != nil {
		return exitFailed, err
	}
	b, err := bundle.Open(r.flags.out)
	if err != nil {
		return exitFailed, err
	}
	return b.Run.ExitCode, nil
}

// watchLoss ends the copying when the runner's pod is gone or has ended without
// closing its bundle. The returned function gives the reason, empty if none.
func (r *podRun) watchLoss(ctx context.Context, cancel func()) func() <-chan string {
	reason, done := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			p, err := r.set.CoreV1().Pods(r.namespace).Get(ctx, r.name(), metav1.GetOptions{})
			switch {
			case ctx.Err() != nil:
				return
			case apierrors.IsNotFound(err):
				reason <- "the runner's pod is gone"
			case err == nil && (p.Status.Phase == corev1.PodFailed || p.Status.Phase == corev1.PodSucceeded):
				reason <- "the runner's pod has ended: " + endOf(p)
			default:
				continue
			}
			time.Sleep(2 * time.Second) // the copy may be about to finish
			cancel()
			return
		}
	}()
	return func() <-chan string {
		cancel()
		<-done
		close(reason)
		return reason
	}
}

func endOf(p *corev1.Pod) string {
	for _, c := range p.Status.ContainerStatuses {
		if t := c.State.Terminated; t != nil {
			return fmt.Sprintf("%s, exit code %d %s", t.Reason, t.ExitCode, t.Message)
		}
	}
	return p.Status.Reason + " " + p.Status.Message
}

// log repeats the runner's own words, as soon as there are any.
func (r *podRun) log(ctx context.Context) {
	for {
		stream, err := r.set.CoreV1().Pods(r.namespace).GetLogs(r.name(), &corev1.PodLogOptions{Follow: true}).Stream(ctx)
		if err == nil {
			n, _ := io.Copy(r.err, stream)
			_ = stream.Close()
			if n > 0 { // it ends with the pod
				return
			}
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return
		}
	}
}

// copy mirrors the bundle through port-forwards, one for each connection, from
// when the runner offers it until the runner has closed it.
func (r *podRun) copy(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return forward(ctx, r.cluster, r.name(), runnerPort)
	}}}
	defer client.CloseIdleConnections()
	service := &server.Client{URL: "http://runner", HTTP: client}
	remote, err := service.Run(r.namespace, r.id)
	if err != nil {
		return err
	}
	for {
		if _, err = remote.Info(ctx); err == nil {
			break
		}
		select {
		case <-time.After(300 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the runner does not offer its bundle: %w", err)
		}
	}
	_, err = server.Pull(ctx, remote, r.flags.out, server.Options{Log: func(line string) { fmt.Fprintln(r.err, line) }})
	return err
}

// remove takes the runner away; what the run made was the runner's to remove,
// or else is removed here.
func (r *podRun) remove(ctx context.Context) {
	pods, configs := r.set.CoreV1().Pods(r.namespace), r.set.CoreV1().ConfigMaps(r.namespace)
	mine := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", r.name()).String()}
	grace := int64(1)
	_ = pods.Delete(ctx, r.name(), metav1.DeleteOptions{GracePeriodSeconds: &grace})
	for _, name := range r.configs {
		_ = configs.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if len(r.flags.cluster.proxies) > 0 { // else the garbage collector would do it
		_ = r.set.CoreV1().Secrets(r.namespace).Delete(ctx, r.name(), metav1.DeleteOptions{})
	}
	if list, err := pods.List(ctx, mine); err == nil && len(list.Items) > 0 {
		time.Sleep(2 * time.Second)
	}
	if r.flags.cluster.createRBAC {
		if err := r.removeRights(ctx, r.name(), nil); err != nil {
			fmt.Fprintf(r.err, "the runner's ServiceAccount and roles (%s) could not be removed: %v\n", r.name(), err)
		}
	}
	_ = r.set.CoordinationV1().Leases(r.namespace).Delete(ctx, r.name(), metav1.DeleteOptions{})
	if r.flags.keep {
		return
	}
	if err := cleanRun(ctx, r.cluster, r.id, r.identity); err != nil {
		fmt.Fprintf(r.err, "not everything of run %s could be removed: %v\n", r.id, err)
		return
	}
	if err := bundle.Withdraw(r.flags.out); err != nil {
		fmt.Fprintln(r.err, err)
	}
}

// report shows the summary of the bundle that was copied, and says where it is.
func (r *podRun) report(code int, err error) error {
	b, open := bundle.Open(r.flags.out)
	if open != nil {
		return failed(errors.Join(err, open))
	}
	err = errors.Join(err, r.summary(b))
	if err != nil {
		return failed(err)
	}
	if code == exitOK {
		return nil
	}
	return &exit{code: code}
}

func (r *podRun) summary(b *bundle.Bundle) error {
	s, err := summary.Make(b)
	if err != nil {
		return err
	}
	page := filepath.Join(b.Dir, bundle.ReportFile)
	if err := writeFile(page, func(w io.Writer) error { return html.Write(w, b, s) }); err != nil {
		return err
	}
	if r.flags.output == "json" {
		return quietPipe(writeJSON(r.out, s))
	}
	err = quietPipe(terminal.Write(r.out, s, terminalOptions(r.out)))
	fmt.Fprintf(r.out, "\nbundle: %s\nreport: %s\n", b.Dir, page)
	return err
}
