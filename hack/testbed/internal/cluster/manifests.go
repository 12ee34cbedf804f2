package cluster

import (
	"fmt"
	"strings"

	"github.com/cnsbench/cnsbench/hack/testbed/internal/settings"
)

// class is a StorageClass and its snapshot classes.
type class struct {
	name    string
	driver  settings.Driver
	fsType  string
	grouped bool // the driver offers group snapshots
}

func classes() []class {
	var all []class
	for _, d := range settings.Drivers() {
		c := class{name: d.Backend, driver: d, grouped: d.Backend == "null" || d.Backend == "loopfile"}
		if d.Backend == "loopfile" {
			c.fsType = "ext4"
			xfs := c
			xfs.name, xfs.fsType = "loopfile-xfs", "xfs"
			all = append(all, xfs)
		}
		all = append(all, c)
	}
	return all
}

// driverManifests are the CSIDriver of each driver, and the classes: Immediate ones by the driver's name, and with the
// suffix -wffc those that wait for the first consumer. Names are quoted: YAML takes null for nothing.
func driverManifests() string {
	var b strings.Builder
	for _, d := range settings.Drivers() {
		fmt.Fprintf(&b, `---
apiVersion: storage.k8s.io/v1
kind: CSIDriver
metadata: {name: "%s"}
spec: {attachRequired: %t, podInfoOnMount: false, fsGroupPolicy: ReadWriteOnceWithFSType, volumeLifecycleModes: [Persistent]}
`, d.Name(), d.Attaches)
	}
	for _, c := range classes() {
		b.WriteString(c.storageClass("", "Immediate") + c.storageClass("-wffc", "WaitForFirstConsumer"))
		fmt.Fprintf(&b, `---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshotClass
metadata: {name: "%s"}
driver: %s
deletionPolicy: Delete
`, c.name, c.driver.Name())
		if c.grouped {
			fmt.Fprintf(&b, `---
apiVersion: groupsnapshot.storage.k8s.io/%s
kind: VolumeGroupSnapshotClass
metadata: {name: "%s"}
driver: %s
deletionPolicy: Delete
`, groupVersion, c.name, c.driver.Name())
		}
	}
	return b.String()
}

func (c class) storageClass(suffix, mode string) string {
	parameters := "{}"
	if c.fsType != "" {
		parameters = "{csi.storage.k8s.io/fstype: " + c.fsType + "}"
	}
	return fmt.Sprintf(`---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: "%s%s"}
provisioner: %s
parameters: %s
volumeBindingMode: %s
reclaimPolicy: Delete
allowVolumeExpansion: true
`, c.name, suffix, c.driver.Name(), parameters, mode)
}
