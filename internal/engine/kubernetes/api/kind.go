// Package api is the engine's client for the Kubernetes API: the kinds that it uses, their encodings (protobuf for
// built-in kinds, JSON for custom resources), and timed requests.
//
// A Call is one request: there is no client-side rate limit, no retry on 429 and no compression. Requests that
// net/http repeats by itself are counted.
package api

import (
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Object is a typed pointer such as *corev1.Pod or *VolumeSnapshot.
type Object = metav1.Object

// Kind is a kind of object: its resource and its Go type.
type Kind struct {
	Group, Version string // "" and "v1" for the core group
	Resource       string // plural, as in the URL: "pods"
	Name           string // as in manifests: "Pod"
	Namespaced     bool
	// JSON: the server has no protobuf encoding, as for custom resources.
	JSON bool
	// New returns a pointer to an empty object.
	New func() Object
}

// Built-in kinds. Treat them as constants.
var (
	Pods = Kind{Version: "v1", Resource: "pods", Name: "Pod", Namespaced: true,
		New: func() Object { return new(corev1.Pod) }}
	PersistentVolumeClaims = Kind{Version: "v1", Resource: "persistentvolumeclaims", Name: "PersistentVolumeClaim",
		Namespaced: true, New: func() Object { return new(corev1.PersistentVolumeClaim) }}
	PersistentVolumes = Kind{Version: "v1", Resource: "persistentvolumes", Name: "PersistentVolume",
		New: func() Object { return new(corev1.PersistentVolume) }}
	VolumeAttachments = Kind{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments",
		Name: "VolumeAttachment", New: func() Object { return new(storagev1.VolumeAttachment) }}
	Events = Kind{Version: "v1", Resource: "events", Name: "Event", Namespaced: true,
		New: func() Object { return new(corev1.Event) }}
	Nodes = Kind{Version: "v1", Resource: "nodes", Name: "Node",
		New: func() Object { return new(corev1.Node) }}
	Namespaces = Kind{Version: "v1", Resource: "namespaces", Name: "Namespace",
		New: func() Object { return new(corev1.Namespace) }}
	ConfigMaps = Kind{Version: "v1", Resource: "configmaps", Name: "ConfigMap", Namespaced: true,
		New: func() Object { return new(corev1.ConfigMap) }}
	Secrets = Kind{Version: "v1", Resource: "secrets", Name: "Secret", Namespaced: true,
		New: func() Object { return new(corev1.Secret) }}
	StorageClasses = Kind{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses",
		Name: "StorageClass", New: func() Object { return new(storagev1.StorageClass) }}
	CSIDrivers = Kind{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers", Name: "CSIDriver",
		New: func() Object { return new(storagev1.CSIDriver) }}
)

const (
	snapshotGroup      = "snapshot.storage.k8s.io"
	groupSnapshotGroup = "groupsnapshot.storage.k8s.io"
)

// Kinds of the external snapshotter. Treat them as constants.
var (
	VolumeSnapshots = Kind{Group: snapshotGroup, Version: "v1", Resource: "volumesnapshots",
		Name: "VolumeSnapshot", Namespaced: true, JSON: true, New: func() Object { return new(VolumeSnapshot) }}
	VolumeSnapshotContents = Kind{Group: snapshotGroup, Version: "v1", Resource: "volumesnapshotcontents",
		Name: "VolumeSnapshotContent", JSON: true, New: func() Object { return new(VolumeSnapshotContent) }}
	VolumeSnapshotClasses = Kind{Group: snapshotGroup, Version: "v1", Resource: "volumesnapshotclasses",
		Name: "VolumeSnapshotClass", JSON: true, New: func() Object { return new(VolumeSnapshotClass) }}
)

// VolumeGroupSnapshots is the kind in the version that the cluster serves: "v1beta1", "v1beta2" or "v1".
func VolumeGroupSnapshots(version string) Kind {
	return Kind{Group: groupSnapshotGroup, Version: version, Resource: "volumegroupsnapshots",
		Name: "VolumeGroupSnapshot", Namespaced: true, JSON: true,
		New: func() Object { return new(VolumeGroupSnapshot) }}
}

// VolumeGroupSnapshotClasses is the kind in the version that the cluster serves.
func VolumeGroupSnapshotClasses(version string) Kind {
	return Kind{Group: groupSnapshotGroup, Version: version, Resource: "volumegroupsnapshotclasses",
		Name: "VolumeGroupSnapshotClass", JSON: true, New: func() Object { return new(VolumeSnapshotClass) }}
}

// String returns the resource and its group, as kubectl writes them: "volumesnapshots.snapshot.storage.k8s.io". It
// is unique.
func (k Kind) String() string {
	if k.Group == "" {
		return k.Resource
	}
	return k.Resource + "." + k.Group
}

// GVK returns the group, version and kind.
func (k Kind) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: k.Group, Version: k.Version, Kind: k.Name}
}

// Path returns the URL path of the collection or, with a name, of an object and its subresource. The namespace is
// ignored for cluster-scoped kinds; without one, a namespaced kind means all namespaces.
func (k Kind) Path(namespace, name string, subresource ...string) string {
	root := "/apis/" + k.Group + "/" + k.Version
	if k.Group == "" {
		root = "/api/" + k.Version
	}
	parts := []string{root}
	if k.Namespaced && namespace != "" {
		parts = append(parts, "namespaces", url.PathEscape(namespace))
	}
	parts = append(parts, k.Resource)
	if name != "" {
		parts = append(parts, url.PathEscape(name))
		parts = append(parts, subresource...)
	}
	return strings.Join(parts, "/")
}

// MediaType returns the encoding of requests and answers.
func (k Kind) MediaType() string {
	if k.JSON {
		return JSON
	}
	return Protobuf
}
