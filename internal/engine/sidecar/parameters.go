package sidecar

import (
	"maps"
	"slices"
	"strings"
)

// Prefix is that of the parameters of classes that are for the sidecars. Drivers do not receive them.
const Prefix = "csi.storage.k8s.io/"

const fsTypeKey = Prefix + "fstype"

// ExtraMetadata is the annotation of a class by which its drivers receive the names of objects as parameters, as with
// the sidecars' flag --extra-create-metadata; its value is "true".
const ExtraMetadata = "cnsbench.dev/extra-create-metadata"

// Parameters that --extra-create-metadata adds.
const (
	pvcNameKey           = Prefix + "pvc/name"
	pvcNamespaceKey      = Prefix + "pvc/namespace"
	pvNameKey            = Prefix + "pv/name"
	snapshotNameKey      = Prefix + "volumesnapshot/name"
	snapshotNamespaceKey = Prefix + "volumesnapshot/namespace"
	contentNameKey       = Prefix + "volumesnapshotcontent/name"
)

// ForDriver returns the parameters of a class that its driver receives: those without the sidecars' prefix.
func ForDriver(parameters map[string]string) map[string]string {
	kept := maps.Clone(parameters)
	maps.DeleteFunc(kept, func(k, _ string) bool { return strings.HasPrefix(k, Prefix) })
	return kept
}

// VolumeMetadata returns the parameters that csi-provisioner adds with --extra-create-metadata.
func VolumeMetadata(pv, namespace, pvc string) map[string]string {
	return map[string]string{pvcNameKey: pvc, pvcNamespaceKey: namespace, pvNameKey: pv}
}

// SnapshotMetadata returns the parameters that csi-snapshotter adds with --extra-create-metadata.
func SnapshotMetadata(content, namespace, snapshot string) map[string]string {
	return map[string]string{snapshotNameKey: snapshot, snapshotNamespaceKey: namespace, contentNameKey: content}
}

// FSType returns the file system that a StorageClass asks for; empty: the driver chooses. csi-provisioner also reads
// the key without prefix, in any case.
func FSType(parameters map[string]string) string {
	if t, ok := parameters[fsTypeKey]; ok {
		return t
	}
	for k, v := range parameters {
		if strings.EqualFold(k, "fstype") {
			return v
		}
	}
	return ""
}

// Unknown returns the parameters with the sidecars' prefix that no sidecar knows, sorted. A sidecar refuses a class
// with one.
func Unknown(parameters map[string]string, kinds []Secret) []string {
	known := Known(kinds)
	var unknown []string
	for k := range parameters {
		if strings.HasPrefix(k, Prefix) && !slices.Contains(known, k) {
			unknown = append(unknown, k)
		}
	}
	slices.Sort(unknown)
	return unknown
}

// Known returns the parameters that sidecars read of a class with the given kinds of secrets.
func Known(kinds []Secret) []string {
	known := []string{fsTypeKey}
	for _, kind := range kinds {
		known = append(known, kind.Parameter(), kind.namespaceKey())
	}
	return known
}
