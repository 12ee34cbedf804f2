package names

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
)

func TestApply(t *testing.T) {
	refs := References{Claims: map[string]string{"w-0-data": "X-data"},
		ConfigMaps: map[string]string{"w-0-cfg": "X-cfg"},
		Secrets:    map[string]string{"w-0-key": "X-key"}, Services: map[string]string{"w-0-db": "X-db"}}
	spec := corev1.PodSpec{
		Subdomain: "w-0-db",
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "w-0-data"}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "somebody-elses"}}}},
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "w-0-key"}}},
		},
		Containers: []corev1.Container{{
			Env:     []corev1.EnvVar{{Name: "SERVICE_DB", Value: "w-0-db"}, {Name: "OTHER", Value: "w-0-db"}},
			EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "w-0-cfg"}}}},
		}},
	}
	refs.Apply(&spec)
	got := []string{spec.Subdomain, spec.Volumes[0].PersistentVolumeClaim.ClaimName, spec.Volumes[1].ConfigMap.Name,
		spec.Volumes[2].Secret.SecretName, spec.Containers[0].Env[0].Value, spec.Containers[0].Env[1].Value, spec.Containers[0].EnvFrom[0].ConfigMapRef.Name}
	if diff := cmp.Diff([]string{"X-db", "X-data", "somebody-elses", "X-key", "X-db", "w-0-db", "X-cfg"},
		got); diff != "" {
		t.Error(diff)
	}
}
