package component

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestOf(t *testing.T) {
	for _, tt := range []struct {
		image, command, want string
		sidecar, operates    bool
	}{
		{"registry.k8s.io/sig-storage/csi-provisioner:v6.1.0", "", "csi-provisioner", true, true},
		{"public.ecr.aws/eks-distro/kubernetes-csi/external-provisioner:v5", "", "csi-provisioner", true, true},
		{"public.ecr.aws/eks-distro/kubernetes-csi/external-attacher:v4", "", "csi-attacher", true, true},
		{"rancher/mirrored-sig-storage-csi-resizer:v1", "", "csi-resizer", true, true},
		{"public.ecr.aws/eks-distro/kubernetes-csi/external-snapshotter/csi-snapshotter:v8", "", "csi-snapshotter", true,
			true},
		{"public.ecr.aws/eks-distro/kubernetes-csi/external-snapshotter/snapshot-controller:v8", "", "snapshot-controller",
			false, true},
		{"registry.k8s.io/sig-storage/csi-node-driver-registrar:v2", "", Registrar, true, false},
		{"public.ecr.aws/eks-distro/kubernetes-csi/node-driver-registrar:v2", "", Registrar, true, false},
		{"registry.k8s.io/sig-storage/livenessprobe:v2", "", Prober, true, false},
		{"registry.k8s.io/sig-storage/csi-external-health-monitor-controller:v0", "", "external-health-monitor", true, false},
		{"busybox", "/bin/csi-attacher", "csi-attacher", true, true},
		{"registry.k8s.io/kube-scheduler:v1.36", "", "kube-scheduler", false, true},
		{"registry.k8s.io/etcd:3.6", "", "etcd", false, false},
		{"registry.k8s.io/sig-storage/hostpathplugin:v1", "/hostpathplugin", "", false, false},
	} {
		got := Of(&corev1.Container{Image: tt.image, Command: []string{tt.command}})
		if got.Name != tt.want || got.Sidecar != tt.sidecar || got.Operates != tt.operates {
			t.Errorf("%s %s: %+v, want %s", tt.image, tt.command, got, tt.want)
		}
	}
}
