// Package podspec changes the specs of pods: it adds the agent, limits output volumes and sets affinities.
package podspec

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// Delivery is how the agent gets into a pod.
type Delivery string

// The deliveries; see docs/design/kubernetes.md.
const (
	DeliverAuto  Delivery = "auto"  // the engine chooses by what the cluster can do
	DeliverInit  Delivery = "init"  // an init container copies it to an emptyDir
	DeliverImage Delivery = "image" // the product's image is mounted as a volume
	DeliverBaked Delivery = "baked" // the workload's image has it at /cnsbench-agent
)

// ParseDelivery parses the value of the --agent flag.
func ParseDelivery(s string) (Delivery, error) {
	switch d := Delivery(s); d {
	case DeliverAuto, DeliverInit, DeliverImage, DeliverBaked:
		return d, nil
	}
	return "", fmt.Errorf("invalid agent delivery %q: want auto, init, image or baked", s)
}

const (
	// AgentInit is the name of the init container that copies the agent, and of the volume with the agent.
	AgentInit = "cnsbench-agent"
	agentDir  = "/.cnsbench"
	// AgentBinary is the agent's path in the product's image.
	AgentBinary = "/cnsbench-agent"
)

// agentPath is the agent's path in the workload's containers.
func (d Delivery) agentPath() string {
	if d == DeliverBaked {
		return AgentBinary
	}
	return agentDir + AgentBinary
}

// For returns the delivery for a pod: the product's image has the agent.
func (d Delivery) For(spec *corev1.PodSpec, image string, wrapped []string) Delivery {
	for i := range spec.Containers {
		if c := &spec.Containers[i]; slices.Contains(wrapped, c.Name) && c.Image != image {
			return d
		}
	}
	return DeliverBaked
}

// Deliver adds the agent to the wrapped containers of a pod.
func (d Delivery) Deliver(spec *corev1.PodSpec, image string, wrapped []string) {
	if d == DeliverBaked || len(wrapped) == 0 {
		return
	}
	volume := corev1.Volume{Name: AgentInit}
	if d == DeliverImage {
		volume.Image = &corev1.ImageVolumeSource{Reference: image, PullPolicy: corev1.PullIfNotPresent}
	} else {
		volume.EmptyDir = &corev1.EmptyDirVolumeSource{SizeLimit: sizeLimit(agentVolumeSize)}
		spec.InitContainers = append([]corev1.Container{{
			Name: AgentInit, Image: image, ImagePullPolicy: corev1.PullIfNotPresent,
			Command:         []string{AgentBinary, "install", agentDir},
			VolumeMounts:    []corev1.VolumeMount{{Name: AgentInit, MountPath: agentDir}},
			SecurityContext: Restricted(), Resources: Resources(),
		}}, spec.InitContainers...)
	}
	spec.Volumes = append(spec.Volumes, volume)
	for i := range spec.Containers {
		if c := &spec.Containers[i]; slices.Contains(wrapped, c.Name) {
			c.VolumeMounts = append(c.VolumeMounts,
				corev1.VolumeMount{Name: AgentInit, MountPath: agentDir, ReadOnly: true})
		}
	}
}

// Resources returns the requests and limits of the product's containers in and beside workloads, which a quota may
// demand: the agent's memory does not grow with what it does.
func Resources() corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("5m"),
			corev1.ResourceMemory: resource.MustParse("16Mi")},
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
			corev1.ResourceMemory: resource.MustParse("128Mi")},
	}
}

// Wrap runs a container's command under the agent.
func (d Delivery) Wrap(c *corev1.Container, public []string, secret string) {
	c.Command = append([]string{d.agentPath(), "wrap", "--log-dir", "none", "--"}, append(c.Command, c.Args...)...)
	c.Args = nil
	SetAgentEnv(c, public, secret)
}

// User is the non-root user of the product's containers.
const User = 65532

// Restricted returns the security context of the Pod Security Standard "restricted".
func Restricted() *corev1.SecurityContext {
	no, yes, user := false, true, int64(User)
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no, RunAsNonRoot: &yes, RunAsUser: &user, ReadOnlyRootFilesystem: &yes,
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// SetTerminationMessages has the kubelet report the end of a failed container's log, unless the container sets a
// policy.
func SetTerminationMessages(spec *corev1.PodSpec) {
	for _, list := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range list {
			if list[i].TerminationMessagePolicy == "" {
				list[i].TerminationMessagePolicy = corev1.TerminationMessageFallbackToLogsOnError
			}
		}
	}
}

// SetAgentEnv passes the runner's address and the token to a container's agent.
func SetAgentEnv(c *corev1.Container, public []string, secret string) {
	for _, kv := range public {
		k, v, _ := strings.Cut(kv, "=")
		c.Env = append(c.Env, corev1.EnvVar{Name: k, Value: v})
	}
	c.Env = append(c.Env,
		corev1.EnvVar{Name: protocol.EnvToken, ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{
			LocalObjectReference: corev1.LocalObjectReference{Name: secret}, Key: c.Name}}})
}
