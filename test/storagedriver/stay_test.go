package storagedriver_test

import (
	"os"
	"strings"
	"testing"
)

// TestStay stages and publishes volumes in the directory $STORAGEDRIVER_TEST_STAY and leaves them there, for the test
// that taking a cluster down undoes them (make storage-test).
func TestStay(t *testing.T) {
	dir := os.Getenv("STORAGEDRIVER_TEST_STAY")
	if dir == "" {
		t.Skip("run by make storage-test")
	}
	for _, name := range []string{"cephfs-r1", "rbd-r1", "rbd-r3-xfs", "rbd-r1/block", "gluster-replica"} {
		t.Run(name, func(t *testing.T) {
			d := driverOf(t, name)
			d.dir = dir
			v, _ := d.create("stay-"+strings.ReplaceAll(name, "/", "-"), 384*mib, nil)
			d.mount(v)
			d.write(v, "file", mib)
		})
	}
}
