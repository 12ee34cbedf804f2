// Package podrunner runs a Benchmark in a pod of the user's namespace: it starts the runner's pod, copies the
// bundle while it grows, and removes the pod. A Lease, which the command renews, owns everything made for the pod.
package podrunner

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/cluster"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/status"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/podtemplate"
	"github.com/cnsbench/cnsbench/internal/runner/inputs"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/runner/runnerpod"
)

const (
	// Label has the run's ID on the objects of its runner. It is not the run's own label, because the clean-up
	// of a run must not remove its runner.
	Label = "cnsbench.dev/runner"
	// NoSummaryVariable is set for a runner whose bundle is copied: the command that started it prints the
	// summary, with paths of its own machine.
	NoSummaryVariable = "CNSBENCH_NO_SUMMARY"

	identityKey = "identity.json" // of the runner's ConfigMap
	tokenKey    = "token"         // of the runner's Secret: the token for CSI proxies
	bundlePort  = 7070
	// grace is how long a runner may clean up after a request to end.
	grace = 10 * time.Minute
	// startTimeout is how long the pod may take to start.
	startTimeout = 5 * time.Minute
	// besideRuntime is for set-up, clean-up and copying the bundle; maxRun is for a run that ends with its
	// workloads. Both limit the life of a forgotten pod.
	besideRuntime = 6 * time.Hour
	maxRun        = 7 * 24 * time.Hour
)

// Runner is the pod of one run, as the command that starts it sees it.
type Runner struct {
	*cluster.Cluster
	Flags    runflags.Flags // of this command
	Plan     *plan.Plan
	Files    []plan.File
	Inputs   *inputs.Packed
	ID       string
	Identity owned.Identity
	Log      io.Writer

	configs []string                // ConfigMaps that exist
	owner   []metav1.OwnerReference // the Lease
	account string                  // created for the runner; empty: the Benchmark's
	unlease func()                  // stops the renewal
}

// Name is the name of the pod and of its other objects.
func (r *Runner) Name() string { return name(r.ID) }

func name(run string) string { return "cnsb-" + run + "-runner" }

func (r *Runner) meta() metav1.ObjectMeta {
	labels := map[string]string{Label: r.ID, names.LabelIdentity: r.Identity.Proof()}
	return metav1.ObjectMeta{Name: r.Name(), Namespace: r.Namespace, Labels: labels, OwnerReferences: r.owner}
}

// Start creates the ConfigMaps with the files and the pod, and waits until the pod runs. Own comes first.
func (r *Runner) Start(ctx context.Context) error {
	paths, err := r.createConfigs(ctx)
	if err != nil {
		return err
	}
	if r.Flags.CreateRBAC {
		if r.account, err = r.createRights(ctx); err != nil {
			return err
		}
	}
	pod, err := r.pod(paths)
	if err != nil {
		return err
	}
	if token := os.Getenv(runflags.ProxyTokenVariable); token != "" && len(r.Flags.Proxies) > 0 {
		secret := &corev1.Secret{ObjectMeta: r.meta(), StringData: map[string]string{tokenKey: token}}
		if _, err := r.Set.CoreV1().Secrets(r.Namespace).Create(ctx, secret, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("create the Secret with the token for CSI proxies: %w", err)
		}
		c := &pod.Spec.Containers[0]
		c.Env = append(c.Env, corev1.EnvVar{Name: runflags.ProxyTokenVariable, ValueFrom: &corev1.EnvVarSource{
			SecretKeyRef: &corev1.SecretKeySelector{
				LocalObjectReference: corev1.LocalObjectReference{Name: r.Name()}, Key: tokenKey}}})
	}
	if _, err := r.Set.CoreV1().Pods(r.Namespace).Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the runner's pod: %w%s", err, podtemplate.Hint(err.Error()))
	}
	return r.started(ctx)
}

// createConfigs creates the ConfigMap with the Benchmark and one for each piece of its inputs. It returns the
// paths of the Benchmark's files in the pod.
func (r *Runner) createConfigs(ctx context.Context) (paths []string, err error) {
	identity, err := json.Marshal(r.Identity)
	if err != nil {
		return nil, err
	}
	config := &corev1.ConfigMap{ObjectMeta: r.meta(), Data: map[string]string{identityKey: string(identity)}}
	for i, f := range r.Files {
		key := fmt.Sprintf("%02d.yaml", i)
		config.Data[key] = string(f.Data)
		paths = append(paths, runnerpod.FilesDir+"/"+key)
	}
	if err := r.createConfig(ctx, config); err != nil {
		return nil, err
	}
	for i, p := range r.Inputs.Pieces {
		config := &corev1.ConfigMap{ObjectMeta: r.meta(), BinaryData: map[string][]byte{inputs.Key: p.Data}}
		config.Name = r.inputConfig(i)
		if err := r.createConfig(ctx, config); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

func (r *Runner) inputConfig(i int) string { return fmt.Sprintf("%s-file-%d", r.Name(), i) }

func (r *Runner) createConfig(ctx context.Context, config *corev1.ConfigMap) error {
	r.configs = append(r.configs, config.Name)
	if _, err := r.Set.CoreV1().ConfigMaps(r.Namespace).Create(ctx, config, metav1.CreateOptions{}); err != nil {
		return fmt.Errorf("create the ConfigMap with the runner's files: %w", err)
	}
	return nil
}

// args are the runner's arguments: the flags that shape the run, with the paths of the pod.
func (r *Runner) args(paths []string) []string {
	f := r.Flags
	f.Runner, f.Namespace, f.RunID, f.Lease = "local", r.Namespace, r.ID, r.Name()
	f.Identity = runnerpod.FilesDir + "/" + identityKey
	f.Out = filepath.Join(runnerpod.BundleDir, r.Namespace, r.ID)
	f.Serve = fmt.Sprintf("127.0.0.1:%d", bundlePort)
	f.Files = r.Inputs.Files
	return append(append([]string{"run"}, paths...), f.Args(runflags.Runner)...)
}

func (r *Runner) pod(paths []string) (*corev1.Pod, error) {
	account := r.account
	if account == "" {
		account = r.Plan.Benchmark.Spec.ServiceAccountName
	}
	o := runnerpod.Options{Image: r.Flags.Image, ServiceAccount: account, Args: r.args(paths),
		Env:   []corev1.EnvVar{{Name: NoSummaryVariable, Value: "1"}},
		Grace: grace, Deadline: r.deadline(), Files: r.Name(), Spec: &r.Plan.Benchmark.Spec}
	for i, p := range r.Inputs.Pieces {
		o.Inputs = append(o.Inputs, runnerpod.Input{ConfigMap: r.inputConfig(i), Key: inputs.Key, Path: p.Path})
	}
	pod := &corev1.Pod{ObjectMeta: r.meta(), Spec: runnerpod.Spec(o)}
	pod.Annotations = runnerpod.Annotations()
	return pod, r.Plan.PodTemplate.Apply(pod)
}

// deadline is after how long the cluster ends the pod.
func (r *Runner) deadline() time.Duration {
	if r.Plan.Runtime > 0 {
		return r.Plan.Queue.Limit + r.Plan.Runtime + r.Plan.Grace + besideRuntime
	}
	return maxRun
}

// started waits until the pod's container has started.
func (r *Runner) started(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	last := "the pod was not seen"
	for {
		p, err := r.Set.CoreV1().Pods(r.Namespace).Get(ctx, r.Name(), metav1.GetOptions{})
		if err == nil {
			if p.Status.Phase == corev1.PodRunning || ended(p) {
				return nil
			}
			if err := status.PodError(p); err != nil {
				return fmt.Errorf("the runner's pod cannot start: %w", err)
			}
			last = status.PodPending(p)
		} else if ctx.Err() == nil {
			last = err.Error()
		}
		select {
		case <-time.After(200 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the runner's pod %s/%s does not run: %s", r.Namespace, r.Name(), last)
		}
	}
}

func ended(p *corev1.Pod) bool {
	return p.Status.Phase == corev1.PodSucceeded || p.Status.Phase == corev1.PodFailed
}

// Remove deletes the pod and everything made for it, and what the run has left on the cluster unless --keep; the Lease
// last. The error says what is left.
func (r *Runner) Remove(ctx context.Context) error {
	pods, configs := r.Set.CoreV1().Pods(r.Namespace), r.Set.CoreV1().ConfigMaps(r.Namespace)
	_ = pods.Delete(ctx, r.Name(), metav1.DeleteOptions{GracePeriodSeconds: new(int64(1))})
	for _, name := range r.configs {
		_ = configs.Delete(ctx, name, metav1.DeleteOptions{})
	}
	if len(r.Flags.Proxies) > 0 { // sooner than the garbage collector
		_ = r.Set.CoreV1().Secrets(r.Namespace).Delete(ctx, r.Name(), metav1.DeleteOptions{})
	}
	this := metav1.ListOptions{FieldSelector: fields.OneTermEqualSelector("metadata.name", r.Name()).String()}
	if list, err := pods.List(ctx, this); err == nil && len(list.Items) > 0 {
		time.Sleep(2 * time.Second)
	}
	if r.Flags.CreateRBAC {
		if err := removeRights(ctx, r.Cluster, r.Name(), nil); err != nil {
			fmt.Fprintf(r.Log, "remove the runner's ServiceAccount and roles (%s): %v\n", r.Name(), err)
		}
	}
	var left error
	if !r.Flags.Keep {
		left = Teardown(ctx, r.Cluster, r.ID, r.Identity)
	}
	if r.unlease != nil {
		r.unlease()
	}
	_ = r.Set.CoordinationV1().Leases(r.Namespace).Delete(ctx, r.Name(), metav1.DeleteOptions{})
	switch {
	case left != nil:
		return fmt.Errorf("not everything of run %s was removed: %w", r.ID, left)
	case r.Flags.Keep:
		return nil
	}
	return bundle.Withdraw(r.Flags.Out)
}

// Teardown removes what a run has left on a cluster. Without the run's identity its label decides.
func Teardown(ctx context.Context, on *cluster.Cluster, run string, own owned.Identity) error {
	o := kubernetes.Options{Config: on.Config, Namespace: on.Namespace, Identity: own}
	return kubernetes.New(o).TeardownRun(ctx, run)
}
