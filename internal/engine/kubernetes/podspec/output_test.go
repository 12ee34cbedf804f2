package podspec

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/engine"
)

func TestLimitOutput(t *testing.T) {
	empty := func(name string, change ...func(*corev1.EmptyDirVolumeSource)) corev1.Volume {
		v := corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
		for _, f := range change {
			f(v.EmptyDir)
		}
		return v
	}
	given := func(e *corev1.EmptyDirVolumeSource) { e.SizeLimit = new(resource.MustParse("7Mi")) }
	memory := func(e *corev1.EmptyDirVolumeSource) { e.Medium = corev1.StorageMediumMemory }
	spec := func() *corev1.PodSpec {
		return &corev1.PodSpec{
			Volumes: []corev1.Volume{empty("out"), empty("logs"), empty("results"), empty("data"), empty("mine", given),
				empty("shm", memory),
				{Name: "config", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{}}}},
			Containers: []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: "out", MountPath: "/output/"},
				{Name: "logs", MountPath: "/logs"},
				{Name: "data", MountPath: "/data"}, {Name: "mine", MountPath: "/mine"}, {Name: "shm",
					MountPath: "/shm"}}},
				{VolumeMounts: []corev1.VolumeMount{{Name: "results", MountPath: "/var/results"}}}},
		}
	}
	p := &engine.Pod{Outputs: []string{"/logs/*.log", "/var/results/of/x.json", "/mine/x", "/shm/x", "/database"}}
	limits := func(spec *corev1.PodSpec) map[string]string {
		all := map[string]string{}
		for _, v := range spec.Volumes {
			if v.EmptyDir != nil && v.EmptyDir.SizeLimit != nil {
				all[v.Name] = v.EmptyDir.SizeLimit.String()
			}
		}
		return all
	}
	bounded := spec()
	LimitOutput(bounded, p, 256<<20)
	want := map[string]string{"out": "1536Mi", "logs": "1536Mi", "results": "1536Mi", "mine": "7Mi"}
	if diff := cmp.Diff(want, limits(bounded)); diff != "" {
		t.Error(diff)
	}
	unbounded := spec()
	LimitOutput(unbounded, p, 0)
	if diff := cmp.Diff(map[string]string{"mine": "7Mi"}, limits(unbounded)); diff != "" {
		t.Error(diff)
	}
}

// TestDeliverLimitsVolume: the volume of the agent's binary has a limit.
func TestDeliverLimitsVolume(t *testing.T) {
	spec := &corev1.PodSpec{Containers: []corev1.Container{{Name: "c"}}}
	DeliverInit.Deliver(spec, "image", []string{"c"})
	if e := spec.Volumes[0].EmptyDir; e == nil || e.SizeLimit == nil || e.SizeLimit.String() != "64Mi" {
		t.Errorf("%+v", spec.Volumes[0])
	}
}
