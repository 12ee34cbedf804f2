//go:build e2e

package kubernetes

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestNothingIsLeft checks that the cluster has no object of a run and the drivers have no volume
// or snapshot. It runs after all other tests and chaos, on a test bed without other users (set by
// hack/e2e.sh).
func TestNothingIsLeft(t *testing.T) {
	if os.Getenv("CNSBENCH_TESTBED_IS_OURS") == "" {
		t.Skip("runs after all other tests, on a cluster without other users: CNSBENCH_TESTBED_IS_OURS is not set")
	}
	bed := newBed(t)
	var left []string
	empty := poll(2*time.Minute, time.Second, func() bool {
		left = append(bed.objectsLeft(t), storageLeft(t)...)
		return len(left) == 0
	})
	if empty {
		return
	}
	t.Errorf("left, two minutes after the last test:\n%s", strings.Join(left, "\n"))
}

// objectsLeft lists objects that runs create, the objects behind them, and namespaces.
func (bed *testBed) objectsLeft(t *testing.T) (left []string) {
	t.Helper()
	snapshots := schema.GroupVersion{Group: "snapshot.storage.k8s.io", Version: "v1"}
	buckets := schema.GroupVersion{Group: "objectstorage.k8s.io", Version: "v1alpha1"}
	for _, k := range []struct {
		kind  schema.GroupVersionKind
		label bool // only objects with a run's label; otherwise all
	}{
		{corev1.SchemeGroupVersion.WithKind("Pod"), true},
		{corev1.SchemeGroupVersion.WithKind("ConfigMap"), true},
		{corev1.SchemeGroupVersion.WithKind("Secret"), true},
		{corev1.SchemeGroupVersion.WithKind("Service"), true},
		{corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), false},
		{corev1.SchemeGroupVersion.WithKind("PersistentVolume"), false},
		{storagev1.SchemeGroupVersion.WithKind("VolumeAttachment"), false},
		{snapshots.WithKind("VolumeSnapshot"), false},
		{snapshots.WithKind("VolumeSnapshotContent"), false},
		{buckets.WithKind("BucketAccess"), false},
		{buckets.WithKind("BucketClaim"), false},
		{buckets.WithKind("Bucket"), false},
		{schema.GroupVersionKind{Group: "coordination.k8s.io", Version: "v1", Kind: "Lease"}, true},
	} {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(k.kind)
		var options []client.ListOption
		if k.label {
			options = append(options, client.HasLabels{"cnsbench.dev/run"})
		}
		if err := bed.List(context.Background(), list, options...); err != nil {
			t.Fatal(err)
		}
		for _, o := range list.Items {
			left = append(left, fmt.Sprintf("%s %s/%s", k.kind.Kind, o.GetNamespace(), o.GetName()))
		}
	}
	var spaces corev1.NamespaceList
	if err := bed.List(context.Background(), &spaces); err != nil {
		t.Fatal(err)
	}
	for _, ns := range spaces.Items {
		if ns.Name != metav1.NamespaceDefault && !strings.HasPrefix(ns.Name, "kube-") {
			left = append(left, "namespace "+ns.Name)
		}
	}
	return left
}

// storageLeft lists the files of volumes and snapshots that the drivers still have.
func storageLeft(t *testing.T) (left []string) {
	t.Helper()
	for _, kind := range []string{"volumes", "snapshots"} {
		for _, pattern := range []string{filepath.Join("driver", "*", kind, "*"),
			filepath.Join("driver", "*", "pool", kind, "*")} {
			found, err := filepath.Glob(filepath.Join(testbedDir(), pattern))
			if err != nil {
				t.Fatal(err)
			}
			left = append(left, found...)
		}
	}
	return left
}
