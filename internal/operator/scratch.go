package operator

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// What the volumes of a runner's pod may hold until the kubelet evicts it: much more
// than any run needs, and less than the disk of a node.
const (
	// bundleRoom is for all of a bundle but the output of workloads: 16 GiB are the
	// events of fifty million operations.
	bundleRoom = 16 << 30
	// outputRoom is for that output where the spec does not bound it: the default of
	// maxOutput.perRun, of a Benchmark that an older CRD has let through.
	outputRoom = 1 << 30
	// mostOutput is the greatest perRun that a runner takes.
	mostOutput = 1 << 40
	// scratchRoom is for /tmp.
	scratchRoom = 2 << 30
)

// BundleVolume is what a runner writes its bundle to.
func BundleVolume(spec *v1alpha1.BenchmarkSpec) corev1.VolumeSource {
	output := int64(outputRoom)
	if m := spec.MaxOutput; m != nil && m.PerRun != nil {
		output = min(max(0, m.PerRun.Value()), mostOutput)
	}
	return emptyDir(bundleRoom + output)
}

// ScratchVolume is the /tmp of a runner.
func ScratchVolume() corev1.VolumeSource { return emptyDir(scratchRoom) }

func emptyDir(limit int64) corev1.VolumeSource {
	return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{SizeLimit: resource.NewQuantity(limit, resource.BinarySI)}}
}
