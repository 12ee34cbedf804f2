//go:build e2e

package kubernetes

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/test/enginetest"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// testBed returns the config of the test bed; the test is skipped without one.
func testBed(t *testing.T) *rest.Config {
	t.Helper()
	path := os.Getenv("KUBECONFIG")
	if path == "" {
		t.Skip("no KUBECONFIG: make testbed-up makes a cluster and says where its kubeconfig is")
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// namespace creates a namespace for the test.
func namespace(t *testing.T, c *api.Client, prefix string) string {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: prefix}}
	if _, err := c.Create(t.Context(), api.Namespaces, "", ns, ns); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if _, err := c.Delete(context.WithoutCancel(t.Context()), api.Namespaces, "", ns.Name,
			metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return ns.Name
}

// TestConformance runs the conformance suite on each driver of the test bed in parallel: it mostly waits for the
// cluster.
func TestConformance(t *testing.T) {
	t.Parallel()
	config := testBed(t)
	t.Cleanup(func() { // once all have ended: classes of attributes are the cluster's
		client, err := api.New(config, op.NewClock())
		if err != nil {
			t.Fatal(err)
		}
		if left := labelled(t, client, core.VolumeAttributesClasses, ""); len(left) > 0 {
			t.Errorf("left behind: %v", left)
		}
	})
	const nothing = "null keeps nothing"
	for _, tt := range []struct {
		class    string
		skip     map[string]string
		detached bool                              // the driver has no attachments
		shared   corev1.PersistentVolumeAccessMode // by which pods of one instance share a volume
		forgets  bool
	}{
		{class: "null", forgets: true,
			skip: map[string]string{"workload": nothing, "shared": nothing, "modify": "null has other parameters"}},
		{class: "hostdir", detached: true, skip: map[string]string{"group": "hostdir has no group snapshots",
			"modify": "hostdir cannot modify", "resize": "hostdir cannot grow"}},
		{class: "loopfile-xfs", shared: corev1.ReadWriteOnce}, // they are placed on one node
		{class: "btrfs", detached: true,
			skip: map[string]string{"group": "btrfs has no group snapshots", "modify": "btrfs cannot modify"}},
	} {
		t.Run(tt.class, func(t *testing.T) {
			rotation.Turn(t, 2, []string{"null", "hostdir", "loopfile-xfs", "btrfs"}, tt.class)
			t.Parallel()
			client, err := api.New(config, op.NewClock())
			if err != nil {
				t.Fatal(err)
			}
			ns := namespace(t, client, "conformance-")
			target := enginetest.Target{
				New: func(*testing.T) engine.Engine {
					return New(Options{Config: config, Namespace: ns, Image: productImage()})
				},
				Dead: func(_ *testing.T, own owned.Identity) engine.Engine {
					own.Namespace, own.Server = ns, config.Host
					return New(Options{Config: config, Namespace: ns, Image: productImage(), Identity: own})
				},
				StorageClass:  storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: tt.class}},
				SnapshotClass: engine.SnapshotClass{Name: snapshotClass(tt.class)},
				Unobserved: map[string]bool{op.Published: true, op.Unpublished: true, op.Staged: true,
					op.Attached: tt.detached, op.Detached: tt.detached},
				DetachLosesData: tt.forgets,
				Modification:    map[string]string{"freezeHold": "1ms"},
				NeedsAll:        true, Shared: tt.shared,
				Timeout: 2 * time.Minute, Size: "320Mi", Skip: tt.skip,
				Leaks: func(t *testing.T) []string { return leaks(t, client, ns) },
			}
			enginetest.Run(t, target)
		})
	}
}

func productImage() string {
	if image := os.Getenv("CNSBENCH_IMAGE"); image != "" {
		return image
	}
	return "localhost/cnsbench:dev"
}

func snapshotClass(class string) string { return strings.TrimSuffix(class, "-xfs") }

// leaks lists objects of a namespace with a run's label, and the volumes that back them.
func leaks(t *testing.T, c *api.Client, ns string) []string {
	t.Helper()
	var left []string
	for _, k := range []api.Kind{api.Pods, api.PersistentVolumeClaims, api.ConfigMaps, api.Secrets, core.Services,
		api.VolumeSnapshots} {
		left = append(left, labelled(t, c, k, ns)...)
	}
	list, _, err := c.List(context.WithoutCancel(t.Context()), api.PersistentVolumes, "", metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if pv := o.(*corev1.PersistentVolume); pv.Spec.ClaimRef != nil && pv.Spec.ClaimRef.Namespace == ns {
			left = append(left, "persistentvolume "+pv.Name)
		}
	}
	return left
}

// labelled lists the objects of a kind that runs of this suite made; others may use the cluster too.
func labelled(t *testing.T, c *api.Client, k api.Kind, ns string) (found []string) {
	t.Helper()
	list, _, err := c.List(context.WithoutCancel(t.Context()), k, ns, metav1.ListOptions{LabelSelector: names.LabelRun})
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range list {
		if strings.HasPrefix(o.GetName(), "cnsb-t") {
			found = append(found, k.Resource+" "+o.GetName())
		}
	}
	return found
}
