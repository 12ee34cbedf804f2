package podlogs

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// pod returns a running pod; containers are "NAME IMAGE ARGUMENT…".
func pod(name string, containers ...string) *corev1.Pod {
	namespace, name, _ := strings.Cut(name, "/")
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	for _, c := range containers {
		words := strings.Fields(c)
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: words[0], Image: words[1], Args: words[2:]})
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses,
			corev1.ContainerStatus{Name: words[0], ContainerID: "containerd://" + words[0]})
	}
	return p
}

func TestChoose(t *testing.T) {
	controller := pod("disk/controller", "prov registry/csi-provisioner:v6", "driver disk:v1 --name=disk.example",
		"probe registry/livenessprobe:v2")
	node := pod("disk/node", "reg registry/csi-node-driver-registrar:v2 --kubelet-registration-path=/p/disk.example/s",
		"driver disk:v1")
	unnamed := pod("disk/resizer", "resize registry/csi-resizer:v2")
	other := pod("other/controller", "prov registry/csi-provisioner:v6", "driver other:v1 --name=other.example")
	mixed := pod("disk/other", "att registry/csi-attacher:v4 --x=other.example")
	snapshots := pod("kube-system/snap", "sc registry/snapshot-controller:v8")
	manager := pod("kube-system/kcm", "kcm registry/kube-controller-manager:v1.36")
	web := pod("default/web", "web nginx")
	server := pod("bench/server", "nfs nfs:v1", "side sh:v1")
	server.Spec.Containers[1].Env = []corev1.EnvVar{{Name: protocol.EnvRunner, Value: "tls:…"}}
	waiting := pod("kube-system/new", "sc registry/snapshot-controller:v8")
	waiting.Status.ContainerStatuses[0].ContainerID = ""
	all := []*corev1.Pod{node, server, web, other, mixed, manager, snapshots, unnamed, waiting, controller}
	mine := func(p *corev1.Pod) bool { return p.Namespace == "bench" }
	tests := []struct {
		name    string
		pods    []*corev1.Pod
		drivers []string
		want    []string
		note    string
	}{
		{"the driver's, controllers first", all, []string{"disk.example"}, []string{"kube-system/kcm/kcm",
			"kube-system/snap/sc", "disk/resizer/resize", "disk/controller/prov", "disk/controller/driver",
			"disk/node/reg", "disk/node/driver", "bench/server/nfs"}, ""},
		{"a driver that no pod names", []*corev1.Pod{controller, web}, []string{"new.example"},
			[]string{"disk/controller/prov", "disk/controller/driver"}, "no pod names new.example"},
		{"nothing serves", []*corev1.Pod{web}, []string{"disk.example"}, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			list, notes := choose(tt.pods, tt.drivers, []string{"other.example"}, mine)
			var got []string
			for _, c := range list {
				got = append(got, c.source())
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
			if text := strings.Join(notes, "; "); tt.note == "" && text != "" || !strings.Contains(text, tt.note) {
				t.Errorf("notes %q, want %q", text, tt.note)
			}
		})
	}
}

// TestChooseBounds checks that of a large cluster the controllers are read, and that the rest is counted.
func TestChooseBounds(t *testing.T) {
	var pods []*corev1.Pod
	for i := range 100 {
		pods = append(pods, pod(fmt.Sprint("disk/node", i), "reg csi-node-driver-registrar:v2 /p/disk.example/s"))
	}
	pods = append(pods, pod("disk/controller", "prov csi-provisioner:v6"))
	list, notes := choose(pods, []string{"disk.example"}, nil, func(*corev1.Pod) bool { return false })
	if len(list) != maxContainers || list[0].pod != "controller" {
		t.Errorf("%d containers, the first of %s", len(list), list[0].pod)
	}
	if len(notes) != 1 || !strings.Contains(notes[0], "61 more containers") {
		t.Errorf("notes %q", notes)
	}
}
