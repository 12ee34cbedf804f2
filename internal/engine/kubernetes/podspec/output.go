package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/engine"
)

const (
	// agentRoom is what the volume may hold that the agent is copied to: it has a few
	// MiB.
	agentVolumeSize = 64 << 20
	// outputRoom is what a volume for output may hold beside twice what is kept of it.
	outputReserve = 1 << 30
	// outputDir is where pods of role workload have a volume for output.
	outputDir = "/output"
)

// boundOutput gives the emptyDirs of a pod that are for its output a limit, so that
// no tool fills the disk of a node: the kubelet evicts a pod that is beyond it. One
// that its author has given is left.
func LimitOutput(spec *corev1.PodSpec, p *engine.Pod, kept int64) {
	if kept == 0 {
		return
	}
	for i := range spec.Volumes {
		v := &spec.Volumes[i]
		if v.EmptyDir == nil || v.EmptyDir.SizeLimit != nil || v.EmptyDir.Medium != corev1.StorageMediumDefault {
			continue
		}
		isOutput := func(m corev1.VolumeMount) bool { return m.Name == v.Name && forOutput(m.MountPath, p.Outputs) }
		if slices.ContainsFunc(spec.Containers, func(c corev1.Container) bool { return slices.ContainsFunc(c.VolumeMounts, isOutput) }) {
			v.EmptyDir.SizeLimit = sizeLimit(2*kept + outputReserve)
		}
	}
}

// forOutput says whether what is mounted there is for output: by its name, or
// because output files are in it.
func forOutput(path string, outputs []string) bool {
	dir := strings.TrimSuffix(path, "/")
	return dir == outputDir || slices.ContainsFunc(outputs, func(file string) bool { return strings.HasPrefix(file, dir+"/") })
}

// sizeLimit is a number of bytes as manifests have it.
func sizeLimit(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }
