package core

import (
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
)

// Services is the kind Service.
var Services = api.Kind{Version: "v1", Resource: "services", Name: "Service", Namespaced: true,
	New: func() api.Object { return new(corev1.Service) }}

// VolumeAttributesClasses is the kind VolumeAttributesClass, which is GA since Kubernetes 1.34.
var VolumeAttributesClasses = api.Kind{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattributesclasses",
	Name: "VolumeAttributesClass",
	New:  func() api.Object { return new(storagev1.VolumeAttributesClass) }}

// Leases is the kind Lease.
var Leases = api.Kind{Group: "coordination.k8s.io", Version: "v1", Resource: "leases", Name: "Lease", Namespaced: true,
	New: func() api.Object { return new(coordinationv1.Lease) }}

// LeaseName returns the name of the Lease of a driver.
func LeaseName(driver string) string {
	return "cnsbench-" + strings.ToLower(strings.ReplaceAll(driver, "_", "-"))
}

// LabelledKinds lists the kinds that a run creates and labels, dependents first.
func LabelledKinds(groupVersion string) []api.Kind {
	kinds := []api.Kind{api.Pods}
	if groupVersion != "" {
		kinds = append(kinds, api.VolumeGroupSnapshots(groupVersion))
	}
	return append(kinds, api.VolumeSnapshots, api.PersistentVolumeClaims, Services, api.ConfigMaps, api.Secrets,
		api.VolumeAttachments, VolumeAttributesClasses)
}

// ControllerKinds lists the kinds of manifest that a clean-up finds by label when no ledger lists them.
func ControllerKinds() []api.Kind {
	var list []api.Kind
	for _, k := range []api.Kind{
		{Group: "apps", Resource: "deployments", Name: "Deployment"}, {Group: "apps", Resource: "statefulsets",
			Name: "StatefulSet"},
		{Group: "apps", Resource: "daemonsets", Name: "DaemonSet"}, {Group: "batch", Resource: "cronjobs",
			Name: "CronJob"}, {Group: "batch", Resource: "jobs", Name: "Job"},
	} {
		k.Version, k.Namespaced, k.JSON, k.New = "v1", true, true, func() api.Object { return new(api.Any) }
		list = append(list, k)
	}
	return list
}

// SnapshotGroup is the API group of snapshots.
const SnapshotGroup = "snapshot.storage.k8s.io"

// ProvisionedBy is the annotation that external-provisioner sets on a PersistentVolume.
const ProvisionedBy = "pv.kubernetes.io/provisioned-by"

// CreatedFor says whether a volume can have been provisioned for a claim of this age. A volume that is older than
// its claim was not.
func CreatedFor(claim metav1.Time, pv *corev1.PersistentVolume) bool {
	return !pv.CreationTimestamp.Add(clockSkew).Before(claim.Time)
}

// clockSkew is the largest clock difference allowed between two API servers.
const clockSkew = 5 * time.Second

// CordonKind is the kind of ledger entries that is no API resource: a node to uncordon.
const CordonKind = "cordon"

// Annotations of objects that the run changed but did not create. Their value is Run.Mark.
const (
	CordonAnnotation   = "cnsbench.dev/cordoned" // of a node that the run cordoned
	RetainedAnnotation = "cnsbench.dev/behind"   // of a retained volume or content
)

// Propagation returns how the objects of manifests of a kind are deleted: in the foreground, with their dependents.
// Those of COSI have none, and are deleted in the background (nil): the garbage collector's change of an object that is
// deleted in the foreground causes a conflict in COSI's sidecar between the deletion of a Secret and the removal of an
// access's finalizer, which then stays (v0.2.2).
func Propagation(k api.Kind) *metav1.DeletionPropagation {
	if k.Group == engine.BucketGroup {
		return nil
	}
	return new(metav1.DeletePropagationForeground)
}
