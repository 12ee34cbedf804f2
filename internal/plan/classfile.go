package plan

import (
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/plan/validate"
)

// Kinds of classes.
const (
	storageKind    = "StorageClass"
	snapshotKind   = "VolumeSnapshotClass"
	groupKind      = "VolumeGroupSnapshotClass"
	attributesKind = "VolumeAttributesClass"
)

// snapshotClass has the fields of a VolumeSnapshotClass or a
// VolumeGroupSnapshotClass that CNSBench uses.
type snapshotClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Driver            string            `json:"driver"`
	Parameters        map[string]string `json:"parameters,omitempty"`
	DeletionPolicy    string            `json:"deletionPolicy"`
}

// classFile is a class in a document of a file. The field of its kind is set; snapshot
// stands for both kinds of snapshot class.
type classFile struct {
	doc                *parse.Document
	kind, name, driver string
	storage            *storagev1.StorageClass
	snapshot           *engine.SnapshotClass
	attributes         *storagev1.VolumeAttributesClass
}

// decodeClass decodes a class. It returns nil if the document is not one of its kind.
func decodeClass(d *parse.Document, kind string) (*classFile, []Problem) {
	f := &classFile{doc: d, kind: kind}
	var wrong []Problem
	driverField, policy := "driver", "Delete"
	switch kind {
	case storageKind:
		f.storage = &storagev1.StorageClass{}
		wrong = validate.Strict(d, f.storage)
		f.name, f.driver, driverField = f.storage.Name, f.storage.Provisioner, "provisioner"
	case attributesKind:
		f.attributes = &storagev1.VolumeAttributesClass{}
		wrong = validate.Strict(d, f.attributes)
		f.name, f.driver, driverField = f.attributes.Name, f.attributes.DriverName, "driverName"
	default:
		var sc snapshotClass
		wrong = validate.Strict(d, &sc)
		f.name, f.driver, policy = sc.Name, sc.Driver, sc.DeletionPolicy
		f.snapshot = &engine.SnapshotClass{Name: sc.Name, Driver: sc.Driver, Parameters: sc.Parameters,
			Retain: policy == "Retain", Metadata: sc.Annotations[sidecar.ExtraMetadata] == "true"}
	}
	if len(wrong) > 0 {
		return nil, wrong
	}
	if policy != "Delete" && policy != "Retain" {
		wrong = append(wrong, d.Problem("deletionPolicy", "Delete or Retain", "%q is not a deletionPolicy", policy))
	}
	if f.name == "" {
		wrong = append(wrong, d.Problem("metadata", "", "metadata.name is missing"))
	}
	if f.driver == "" {
		wrong = append(wrong, d.Problem("", "such as null"+driverSuffix, "%s is missing: it names the driver",
			driverField))
	}
	return f, wrong
}
