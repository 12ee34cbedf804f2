package operator

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
	"github.com/cnsbench/cnsbench/internal/podtemplate"
	"github.com/cnsbench/cnsbench/internal/runner/runflags"
	"github.com/cnsbench/cnsbench/internal/runner/runnerpod"
)

const (
	specKey = "benchmark.yaml"
	// resultsAudience is the token audience that package bundle/server expects.
	resultsAudience = "cnsbench-results"

	// grace is the termination grace period of a runner, in which it cleans up.
	grace = 5 * time.Minute
	// unreachableAfter is how long, in seconds, a runner stays bound to a node that does not respond. It is long enough
	// for a restart of the kubelet.
	unreachableAfter int64 = 60
	// cleanupDeadline is the time limit of one clean-up Job, in seconds.
	cleanupDeadline int64 = 900
)

// runnerArgs returns the arguments of a runner's container.
func (c *Config) runnerArgs(b *v1alpha1.Benchmark) []string {
	f := runflags.Flags{Engine: "kubernetes", Runner: "local", InCluster: true, RunID: RunID(b), Image: c.Image,
		Out: runnerpod.BundleDir + "/run", PushPin: c.ResultsPin}
	f.Namespace = b.Namespace
	if c.ResultsURL != "" {
		f.Push, f.PushToken = c.ResultsURL, runnerpod.TokenFile
	}
	return append([]string{"run", runnerpod.FilesDir + "/" + specKey}, f.Args(runflags.Runner)...)
}

// cleanupArgs returns the arguments of the container that removes the remaining objects of a run.
func cleanupArgs(b *v1alpha1.Benchmark) []string {
	return []string{"cleanup", "--engine", "kubernetes", "--namespace", b.Namespace, "--run", RunID(b)}
}

// configMap returns the ConfigMap with the Benchmark as a file. It is immutable because the runner would execute a
// changed file with its own rights.
func configMap(b *v1alpha1.Benchmark) (*corev1.ConfigMap, error) {
	text, err := yaml.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": "Benchmark",
		"metadata": map[string]string{"name": b.Name, "namespace": b.Namespace},
		"spec":     b.Spec,
	})
	if err != nil {
		return nil, err
	}
	return &corev1.ConfigMap{
		ObjectMeta: objectMeta(b, runnerName(b), roleRunner),
		Immutable:  new(true),
		Data:       map[string]string{specKey: string(text)},
	}, nil
}

// runnerJob returns the Job of a runner. It does not retry, because a lost run cannot continue.
func (c *Config) runnerJob(b *v1alpha1.Benchmark) *batchv1.Job {
	o := c.podOptions(b, c.runnerArgs(b))
	o.Grace, o.Files, o.Spec = grace, runnerName(b), &b.Spec
	if c.ResultsURL != "" {
		o.Audience = resultsAudience
	}
	pod := podSpec(o)
	pod.PriorityClassName, pod.Affinity = c.PriorityClass, c.affinity(b)
	pod.Tolerations = []corev1.Toleration{evictAfter(corev1.TaintNodeNotReady), evictAfter(corev1.TaintNodeUnreachable)}

	job := jobOf(b, runnerName(b), roleRunner, pod)
	job.Spec.BackoffLimit = new(int32(0))
	// Otherwise a second runner could start while the first one terminates.
	job.Spec.PodReplacementPolicy = new(batchv1.Failed)
	return job
}

// evictAfter returns a toleration of a taint for unreachableAfter.
func evictAfter(taint string) corev1.Toleration {
	return corev1.Toleration{Key: taint, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute,
		TolerationSeconds: new(unreachableAfter)}
}

// cleanupJob returns the Job that removes the remaining objects of a run with the rights of its runner.
func (c *Config) cleanupJob(b *v1alpha1.Benchmark) *batchv1.Job {
	job := jobOf(b, cleanupName(b), roleCleanup, podSpec(c.podOptions(b, cleanupArgs(b))))
	job.Spec.BackoffLimit = new(int32(3))
	job.Spec.ActiveDeadlineSeconds = new(cleanupDeadline)
	return job
}

func jobOf(b *v1alpha1.Benchmark, name, role string, pod corev1.PodSpec) *batchv1.Job {
	meta, annotations := objectMeta(b, name, role), runnerpod.Annotations()
	annotations[annotationBenchmark] = b.Name
	made := extended(b, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: annotations}, Spec: pod})
	return &batchv1.Job{
		ObjectMeta: meta,
		Spec:       batchv1.JobSpec{Template: corev1.PodTemplateSpec{ObjectMeta: made.ObjectMeta, Spec: made.Spec}},
	}
}

// extended merges the podTemplate of a Benchmark into a pod that the operator creates, without what would give its user
// the operator's right to create privileged pods. A wrong template is reported by the runner.
func extended(b *v1alpha1.Benchmark, pod *corev1.Pod) *corev1.Pod {
	if b.Spec.PodTemplate == nil {
		return pod
	}
	t, err := podtemplate.Parse(b.Spec.PodTemplate.Raw)
	made := pod.DeepCopy()
	if err != nil || t.WithoutPrivileges().Apply(made) != nil {
		return pod
	}
	return made
}

func objectMeta(b *v1alpha1.Benchmark, name, role string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: b.Namespace,
		Labels: map[string]string{labelManaged: managedBy, labelRunner: RunID(b), labelRole: role},
		OwnerReferences: []metav1.OwnerReference{
			*metav1.NewControllerRef(b, v1alpha1.GroupVersion.WithKind("Benchmark"))},
	}
}

func (c *Config) podOptions(b *v1alpha1.Benchmark, args []string) runnerpod.Options {
	return runnerpod.Options{Image: c.Image, ServiceAccount: b.Spec.ServiceAccountName, Args: args}
}

// podSpec returns the pod of a runner. It sets the termination message to the file in which the runner writes its
// result.
func podSpec(o runnerpod.Options) corev1.PodSpec {
	pod := runnerpod.Spec(o)
	pod.Containers[0].TerminationMessagePath = runnerstatus.EndFile
	pod.Containers[0].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
	return pod
}

// affinity returns preferences that keep the runner away from the pods of its own run and from the measured nodes.
func (c *Config) affinity(b *v1alpha1.Benchmark) *corev1.Affinity {
	apart := corev1.PodAffinityTerm{TopologyKey: corev1.LabelHostname, LabelSelector: &metav1.LabelSelector{
		MatchLabels: map[string]string{"cnsbench.dev/run": RunID(b)}}}
	terms := []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: apart}}
	a := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: terms}}
	if c.AvoidNodes.Key == "" {
		return a
	}
	away := corev1.NodeSelectorRequirement{Key: c.AvoidNodes.Key, Operator: corev1.NodeSelectorOpDoesNotExist}
	if c.AvoidNodes.Value != "" {
		away.Operator, away.Values = corev1.NodeSelectorOpNotIn, []string{c.AvoidNodes.Value}
	}
	nodes := corev1.PreferredSchedulingTerm{Weight: 100, Preference: corev1.NodeSelectorTerm{
		MatchExpressions: []corev1.NodeSelectorRequirement{away}}}
	a.NodeAffinity = &corev1.NodeAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{nodes}}
	return a
}
