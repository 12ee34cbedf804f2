package plan

import (
	"slices"
	"strings"
)

// driverSuffix is the suffix of the names of the built-in drivers.
const driverSuffix = ".csi.cnsbench.dev"

// backends are the names of the built-in drivers without driverSuffix.
var backends = []string{"null", "hostdir", "loopfile", "btrfs"}

// xfsClass is the class of loopfile with xfs.
const xfsClass = "loopfile-xfs"

// Features that some built-in drivers lack, as worded in messages.
const (
	canBlock  = "has no raw block volumes"
	canGroup  = "has no group snapshots"
	canModify = "cannot modify volumes"
	canLimit  = "has no block device to which an I/O limit could apply"
)

// lacks lists, by driver, the features that a built-in driver would reject during the
// run. It must match internal/csi/csidriver: the interfaces that the backends
// implement and the volumes that their shape methods reject.
var lacks = map[string]map[string]bool{
	"hostdir" + driverSuffix: {canBlock: true, canGroup: true, canModify: true},
	"btrfs" + driverSuffix:   {canBlock: true, canGroup: true, canModify: true, canLimit: true},
}

// lacksOnCluster lists what built-in drivers lack on a cluster only: null publishes a file in place of a device.
// Container runtimes refuse it, and the kubelet cannot unmap it.
var lacksOnCluster = map[string]map[string]bool{"null" + driverSuffix: {canBlock: true}}

// modifiable has a parameter that volumes of a built-in driver can be modified to.
var modifiable = map[string]map[string]string{
	"null" + driverSuffix:     {"iops": "1000"},
	"loopfile" + driverSuffix: {"readAheadKiB": "256"},
}

// ModifiableParameters returns parameters that volumes of a built-in driver can be modified to, for a trial of that.
// Of a built-in driver that cannot, they are any; of another driver nil.
func ModifiableParameters(driver string) map[string]string {
	if lacks[driver][canModify] {
		return map[string]string{"iops": "1000"}
	}
	return modifiable[driver]
}

// cannotGrow ends the message about a class without allowVolumeExpansion.
const cannotGrow = "does not let its volumes grow"

// NotOffered reports whether a problem is that a driver or its StorageClass does not offer something.
func NotOffered(p Problem) bool {
	for _, words := range []string{canBlock, canGroup, canModify, cannotGrow} {
		if strings.Contains(p.Message, words) {
			return true
		}
	}
	return false
}

// BuiltInClasses are the StorageClasses that engine local has without a document.
func BuiltInClasses() []string { return append(slices.Clone(backends), xfsClass) }
