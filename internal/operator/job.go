package operator

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/operator/runnerstatus"
)

const (
	container = "runner"
	specKey   = "benchmark.yaml"
	specDir   = "/etc/cnsbench"
	bundleDir = "/bundle"
	tokenDir  = "/var/run/secrets/cnsbench.dev/results"
	// resultsAudience is that of package results.
	resultsAudience = "cnsbench-results"

	// grace is how long a runner may take to remove what it made once it is told
	// to end.
	grace = 5 * time.Minute
	// unreachableAfter is how long a runner stays bound to a node that does not
	// answer: long enough for a node that restarts its kubelet.
	unreachableAfter int64 = 60
	// cleanupDeadline is how long one attempt to clean up may take.
	cleanupDeadline int64 = 900
)

// runnerArgv is the command of a runner's container.
func (c *Config) runnerArgv(b *v1alpha1.Benchmark) []string {
	argv := []string{"/cnsbench", "run", specDir + "/" + specKey, "--engine", "kubernetes", "--runner", "local", "--in-cluster",
		"--namespace", b.Namespace, "--run-id", RunID(b), "--image", c.Image, "--out", bundleDir + "/run"}
	if c.ResultsURL != "" {
		argv = append(argv, "--push", c.ResultsURL, "--push-token-file", tokenDir+"/token")
	}
	if c.ResultsPin != "" {
		argv = append(argv, "--push-pin", c.ResultsPin)
	}
	return argv
}

// cleanupArgv is the command that removes what a run has left.
func cleanupArgv(b *v1alpha1.Benchmark) []string {
	return []string{"/cnsbench", "cleanup", "--engine", "kubernetes", "--namespace", b.Namespace, "--run", RunID(b)}
}

// configMap has the Benchmark as a file. It cannot be changed, since whoever
// could would act with the rights of the runner.
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

// runnerJob starts one runner, once: a run that was lost cannot be gone on with.
func (c *Config) runnerJob(b *v1alpha1.Benchmark) *batchv1.Job {
	pod := c.podSpec(b, c.runnerArgv(b))
	pod.TerminationGracePeriodSeconds = new(int64(grace.Seconds()))
	pod.PriorityClassName = c.PriorityClass
	pod.Affinity = c.affinity(b)
	pod.Tolerations = []corev1.Toleration{
		{Key: corev1.TaintNodeNotReady, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(unreachableAfter)},
		{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: new(unreachableAfter)},
	}
	pod.Volumes = append(pod.Volumes,
		corev1.Volume{Name: "benchmark", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: runnerName(b)}}}},
		corev1.Volume{Name: "bundle", VolumeSource: BundleVolume(&b.Spec)})
	pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts,
		corev1.VolumeMount{Name: "benchmark", MountPath: specDir, ReadOnly: true},
		corev1.VolumeMount{Name: "bundle", MountPath: bundleDir})
	pod.Containers[0].Resources = c.Resources
	if c.ResultsURL != "" {
		// A token for the results service alone, which could use no other against
		// the runner.
		pod.Volumes = append(pod.Volumes, corev1.Volume{Name: "results-token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: resultsAudience, ExpirationSeconds: new(int64(3600)), Path: "token"}}}}}})
		pod.Containers[0].VolumeMounts = append(pod.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "results-token", MountPath: tokenDir, ReadOnly: true})
	}

	job := jobOf(b, runnerName(b), roleRunner, pod)
	job.Spec.BackoffLimit = new(int32(0))
	// Without it a second runner could start while the first one still ends.
	job.Spec.PodReplacementPolicy = new(batchv1.Failed)
	return job
}

// cleanupJob removes what is left of a run, with the rights of its runner.
func (c *Config) cleanupJob(b *v1alpha1.Benchmark) *batchv1.Job {
	job := jobOf(b, cleanupName(b), roleCleanup, c.podSpec(b, cleanupArgv(b)))
	job.Spec.BackoffLimit = new(int32(3))
	job.Spec.ActiveDeadlineSeconds = new(cleanupDeadline)
	return job
}

func jobOf(b *v1alpha1.Benchmark, name, role string, pod corev1.PodSpec) *batchv1.Job {
	meta := objectMeta(b, name, role)
	return &batchv1.Job{
		ObjectMeta: meta,
		Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: meta.Labels, Annotations: map[string]string{
				annotationBenchmark: b.Name,
				"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
				"karpenter.sh/do-not-disrupt":                    "true",
			}},
			Spec: pod,
		}},
	}
}

func objectMeta(b *v1alpha1.Benchmark, name, role string) metav1.ObjectMeta {
	return metav1.ObjectMeta{
		Name: name, Namespace: b.Namespace,
		Labels:          map[string]string{labelManaged: managedBy, labelRunner: RunID(b), labelRole: role},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(b, v1alpha1.GroupVersion.WithKind("Benchmark"))},
	}
}

// podSpec satisfies the Pod Security Standard "restricted".
func (c *Config) podSpec(b *v1alpha1.Benchmark, argv []string) corev1.PodSpec {
	account := b.Spec.ServiceAccountName
	if account == "" {
		account = "default"
	}
	return corev1.PodSpec{
		ServiceAccountName: account,
		RestartPolicy:      corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(int64(65532)), RunAsGroup: new(int64(65532)), FSGroup: new(int64(65532)),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: container, Image: c.Image, ImagePullPolicy: corev1.PullIfNotPresent, Command: argv,
			Env: []corev1.EnvVar{
				fieldEnv("CNSBENCH_POD_NAME", "metadata.name"), fieldEnv("CNSBENCH_POD_UID", "metadata.uid"),
				fieldEnv("CNSBENCH_ADVERTISE", "status.podIP"), fieldEnv("CNSBENCH_NODE_NAME", "spec.nodeName"),
				{Name: "CNSBENCH_BENCHMARK", Value: b.Name}, {Name: "CNSBENCH_BENCHMARK_UID", Value: string(b.UID)},
			},
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			TerminationMessagePath: runnerstatus.EndFile, TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
			VolumeMounts: []corev1.VolumeMount{{Name: "tmp", MountPath: "/tmp"}},
		}},
		Volumes: []corev1.Volume{{Name: "tmp", VolumeSource: ScratchVolume()}},
	}
}

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// affinity keeps the runner away from the pods of its own run, and from the
// nodes that the operator was told are measured, where that is possible.
func (c *Config) affinity(b *v1alpha1.Benchmark) *corev1.Affinity {
	a := &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
		PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{Weight: 100, PodAffinityTerm: corev1.PodAffinityTerm{
			TopologyKey:   corev1.LabelHostname,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"cnsbench.dev/run": RunID(b)}},
		}}},
	}}
	if c.AvoidNodes.Key == "" {
		return a
	}
	away := corev1.NodeSelectorRequirement{Key: c.AvoidNodes.Key, Operator: corev1.NodeSelectorOpDoesNotExist}
	if c.AvoidNodes.Value != "" {
		away.Operator, away.Values = corev1.NodeSelectorOpNotIn, []string{c.AvoidNodes.Value}
	}
	a.NodeAffinity = &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{
		{Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{away}}},
	}}
	return a
}

// DefaultResources are what a runner asks for: its loop must not starve, and
// its memory stays flat.
func DefaultResources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"), corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits:   corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}
