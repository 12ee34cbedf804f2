package storagedriver_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func glusterUp(t *testing.T) cluster { return upAt(t, "GLUSTER_DIR", "gluster-up") }

// glusterDriver is the driver of a class of examples/ceph/gluster.yaml.
func glusterDriver(t *testing.T, c cluster, name string) *driver {
	d := newDriver(t, filepath.Join(c.dir, "gluster.sock"))
	d.class = classes(t, "../../examples/ceph/gluster.yaml")["StorageClass/"+name]
	if d.class.Kind == "" {
		t.Fatalf("examples/ceph/gluster.yaml has no class %s", name)
	}
	return d
}

// TestGluster takes a volume of each class through its life, and looks for what is left.
func TestGluster(t *testing.T) {
	c := glusterUp(t)
	for _, name := range []string{"gluster-distribute", "gluster-replica", "gluster-disperse"} {
		t.Run(name, func(t *testing.T) {
			d := driverOf(t, name)
			v, _ := d.create(name, 64*mib, nil)
			if again, _ := d.create(name, 64*mib, nil); again.VolumeId != v.VolumeId {
				t.Errorf("a repeated request made another volume: %s, %s", v.VolumeId, again.VolumeId)
			}
			d.mount(v)
			want := d.write(v, "file", dataSize)
			d.expand(v, 128*mib)
			d.unmount(v)
			d.mount(v)
			if got := d.read(v, "file", dataSize); got != want {
				t.Errorf("after a new mount: %s, want %s", got, want)
			}
			d.unmount(v)
			d.remove(v)
			d.remove(v) // idempotent
		})
	}
	t.Run("sanity", func(t *testing.T) { runSanity(t, "gluster-replica") })
	for _, volume := range []string{"distribute", "replica", "disperse"} {
		if left, _ := filepath.Glob(filepath.Join(c.dir, "mnt", volume, "csi", "*")); len(left) > 0 {
			t.Errorf("left: %v", left)
		}
	}
	if out, _ := exec.Command("pgrep", "-a", "-f", "^glusterfs --log-file="+c.dir+"/").Output(); len(out) > 0 {
		t.Errorf("clients are left:\n%s", out)
	}
}
