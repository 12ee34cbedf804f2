// Package api is the engine's client for the Kubernetes API: the kinds that it uses, their encodings (protobuf for
// built-in kinds, JSON for custom resources), and timed requests.
//
// A Call is one request: there is no client-side rate limit, no retry on 429 and no compression. Requests that
// net/http repeats by itself are counted.
package api

import (
	"net/url"
	"reflect"
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

// kind returns the kind whose objects have type T.
func kind[T any, P interface {
	*T
	Object
}](group, version, resource string) Kind {
	return Kind{Group: group, Version: version, Resource: resource, Name: reflect.TypeFor[T]().Name(),
		New: func() Object { return P(new(T)) }}
}

func (k Kind) namespaced() Kind { k.Namespaced = true; return k }

func (k Kind) json() Kind { k.JSON = true; return k }

// Built-in kinds. Treat them as constants.
var (
	Pods                   = kind[corev1.Pod]("", "v1", "pods").namespaced()
	PersistentVolumeClaims = kind[corev1.PersistentVolumeClaim]("", "v1", "persistentvolumeclaims").namespaced()
	PersistentVolumes      = kind[corev1.PersistentVolume]("", "v1", "persistentvolumes")
	VolumeAttachments      = kind[storagev1.VolumeAttachment]("storage.k8s.io", "v1", "volumeattachments")
	Events                 = kind[corev1.Event]("", "v1", "events").namespaced()
	Nodes                  = kind[corev1.Node]("", "v1", "nodes")
	Namespaces             = kind[corev1.Namespace]("", "v1", "namespaces")
	ConfigMaps             = kind[corev1.ConfigMap]("", "v1", "configmaps").namespaced()
	Secrets                = kind[corev1.Secret]("", "v1", "secrets").namespaced()
	StorageClasses         = kind[storagev1.StorageClass]("storage.k8s.io", "v1", "storageclasses")
	CSIDrivers             = kind[storagev1.CSIDriver]("storage.k8s.io", "v1", "csidrivers")
)

const (
	snapshotGroup      = "snapshot.storage.k8s.io"
	groupSnapshotGroup = "groupsnapshot.storage.k8s.io"
)

// Kinds of the external snapshotter. Treat them as constants.
var (
	VolumeSnapshots        = kind[VolumeSnapshot](snapshotGroup, "v1", "volumesnapshots").namespaced().json()
	VolumeSnapshotContents = kind[VolumeSnapshotContent](snapshotGroup, "v1", "volumesnapshotcontents").json()
	VolumeSnapshotClasses  = kind[VolumeSnapshotClass](snapshotGroup, "v1", "volumesnapshotclasses").json()
)

// VolumeGroupSnapshots is the kind in the version that the cluster serves: "v1beta1", "v1beta2" or "v1".
func VolumeGroupSnapshots(version string) Kind {
	return kind[VolumeGroupSnapshot](groupSnapshotGroup, version, "volumegroupsnapshots").namespaced().json()
}

// VolumeGroupSnapshotClasses is the kind in the version that the cluster serves.
func VolumeGroupSnapshotClasses(version string) Kind {
	k := kind[VolumeSnapshotClass](groupSnapshotGroup, version, "volumegroupsnapshotclasses").json()
	k.Name = "VolumeGroupSnapshotClass"
	return k
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
