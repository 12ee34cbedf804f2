package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/engine"
)

const (
	// agentVolumeSize limits the volume of the agent's binary, which has a few MiB.
	agentVolumeSize = 64 << 20
	// outputReserve is added to twice the kept size of output.
	outputReserve = 1 << 30
	// outputDir is the output volume's mount path in pods of role workload.
	outputDir = "/output"
)

// LimitOutput sets a size limit on the emptyDirs of a pod's output, so that a tool cannot fill a node's disk. A
// limit in the manifest is kept.
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
		if slices.ContainsFunc(spec.Containers,
			func(c corev1.Container) bool { return slices.ContainsFunc(c.VolumeMounts, isOutput) }) {
			v.EmptyDir.SizeLimit = sizeLimit(2*kept + outputReserve)
		}
	}
}

// forOutput says whether a mount path holds output: by its name, or because it contains output files.
func forOutput(path string, outputs []string) bool {
	dir := strings.TrimSuffix(path, "/")
	return dir == outputDir ||
		slices.ContainsFunc(outputs, func(file string) bool { return strings.HasPrefix(file, dir+"/") })
}

func sizeLimit(n int64) *resource.Quantity { return resource.NewQuantity(n, resource.BinarySI) }
