// Package runnerpod builds the pod of a runner. The command line and the operator use it: the same container,
// security context and volumes, whichever of them starts the runner.
package runnerpod

import (
	"cmp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

const (
	// Container is the name of the runner's container.
	Container = "runner"
	// FilesDir has the keys of Options.Files as files.
	FilesDir = "/etc/cnsbench"
	// InputsDir has the files of Options.Inputs.
	InputsDir = "/etc/cnsbench-files"
	// BundleDir is the volume for bundles.
	BundleDir = "/bundle"

	tokenDir  = "/var/run/secrets/cnsbench.dev/results"
	tokenName = "token"
	// TokenFile has the token for Options.Audience.
	TokenFile = tokenDir + "/" + tokenName

	user int64 = 65532 // the image's
	// tokenSeconds is the lifetime of a token, which the kubelet renews.
	tokenSeconds int64 = 3600
)

// Size limits of the pod's volumes: the kubelet evicts a pod that exceeds one. They are far above what a run
// needs and below the size of a node's disk.
const (
	// bundleBytes is for the bundle without the output of workloads: the events of fifty million operations.
	bundleBytes = 16 << 30
	// outputBytes is the default of maxOutput.perRun, for a Benchmark that an older CRD admitted.
	outputBytes = 1 << 30
	// maxOutputBytes is the largest maxOutput.perRun that a runner accepts.
	maxOutputBytes = 1 << 40
	scratchBytes   = 2 << 30 // of /tmp
)

// Options describe the pod of a runner, or of a clean-up.
type Options struct {
	Image string
	// ServiceAccount is the account's name; empty means default.
	ServiceAccount string
	// Args are the arguments of /cnsbench.
	Args []string
	Env  []corev1.EnvVar
	// Grace is the time to clean up after a request to end; 0 is the cluster's default.
	Grace time.Duration
	// Deadline ends the pod in any case; 0 is never.
	Deadline time.Duration
	// Files is the ConfigMap with the Benchmark; empty for a pod that runs none.
	Files string
	// Spec is the Benchmark's, which bounds the size of the bundle; nil for a pod that runs none.
	Spec *v1alpha1.BenchmarkSpec
	// Inputs are parts of files that the Benchmark names.
	Inputs []Input
	// Audience is that of the token for the results service; empty: none.
	Audience string
}

// Input is one key of a ConfigMap as a file.
type Input struct {
	ConfigMap, Key string
	Path           string // below InputsDir
}

// Resources returns the requests and limits of a runner, which a quota may demand. The CPU request keeps the loop of
// the run from starving. The memory limit is fixed, because the memory use of a runner is constant.
func Resources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("128Mi")},
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("2"),
			corev1.ResourceMemory: resource.MustParse("1Gi")},
	}
}

// Annotations keep autoscalers from evicting the pod.
func Annotations() map[string]string {
	return map[string]string{
		"cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
		"karpenter.sh/do-not-disrupt":                    "true",
	}
}

// Spec builds the pod. It satisfies the Pod Security Standard "restricted".
func Spec(o Options) corev1.PodSpec {
	p := corev1.PodSpec{
		ServiceAccountName: cmp.Or(o.ServiceAccount, "default"),
		RestartPolicy:      corev1.RestartPolicyNever,
		SecurityContext: &corev1.PodSecurityContext{
			RunAsNonRoot: new(true), RunAsUser: new(user), RunAsGroup: new(user), FSGroup: new(user),
			SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
		},
		Containers: []corev1.Container{{
			Name: Container, Image: o.Image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command: []string{"/cnsbench"}, Args: o.Args,
			Env: append([]corev1.EnvVar{podIP("CNSBENCH_ADVERTISE")}, o.Env...),
			SecurityContext: &corev1.SecurityContext{
				AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
				Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
			},
			Resources: Resources(),
		}},
	}
	if o.Grace > 0 {
		p.TerminationGracePeriodSeconds = new(int64(o.Grace / time.Second))
	}
	if o.Deadline > 0 {
		p.ActiveDeadlineSeconds = new(int64(o.Deadline / time.Second))
	}
	mount(&p, "tmp", "/tmp", emptyDir(scratchBytes))
	if o.Spec != nil {
		mount(&p, "bundle", BundleDir, emptyDir(bundleLimit(o.Spec)))
	}
	if o.Files != "" {
		mount(&p, "files", FilesDir, corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: o.Files}}})
	}
	if len(o.Inputs) > 0 {
		mount(&p, "inputs", InputsDir, inputs(o.Inputs))
	}
	if o.Audience != "" {
		mount(&p, "results-token", tokenDir, token(o.Audience))
	}
	return p
}

// mount adds a volume to the pod and mounts it into the container. Volumes other than emptyDir are read-only.
func mount(p *corev1.PodSpec, name, path string, source corev1.VolumeSource) {
	p.Volumes = append(p.Volumes, corev1.Volume{Name: name, VolumeSource: source})
	c := &p.Containers[0]
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: name, MountPath: path, ReadOnly: source.EmptyDir == nil})
}

func emptyDir(limit int64) corev1.VolumeSource {
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
		SizeLimit: resource.NewQuantity(limit, resource.BinarySI)}}
}

func bundleLimit(spec *v1alpha1.BenchmarkSpec) int64 {
	output := int64(outputBytes)
	if m := spec.MaxOutput; m != nil && m.PerRun != nil {
		output = min(max(0, m.PerRun.Value()), maxOutputBytes)
	}
	return bundleBytes + output
}

func inputs(list []Input) corev1.VolumeSource {
	all := &corev1.ProjectedVolumeSource{}
	for _, in := range list {
		all.Sources = append(all.Sources, corev1.VolumeProjection{ConfigMap: &corev1.ConfigMapProjection{
			LocalObjectReference: corev1.LocalObjectReference{Name: in.ConfigMap},
			Items:                []corev1.KeyToPath{{Key: in.Key, Path: in.Path}}}})
	}
	return corev1.VolumeSource{Projected: all}
}

// token is a ServiceAccount token that only the audience accepts.
func token(audience string) corev1.VolumeSource {
	return corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
		ServiceAccountToken: &corev1.ServiceAccountTokenProjection{
			Audience: audience, ExpirationSeconds: new(tokenSeconds), Path: tokenName}}}}}
}

func podIP(name string) corev1.EnvVar {
	return corev1.EnvVar{Name: name, ValueFrom: &corev1.EnvVarSource{
		FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.podIP"}}}
}
