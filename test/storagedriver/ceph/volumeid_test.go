package ceph

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestObjectID(t *testing.T) {
	o := objectID{cluster: "cnsbench", location: 17, uuid: newUUID()}
	const prefix = "0001-0008-cnsbench-0000000000000011-"
	if id := o.String(); id != prefix+o.uuid {
		t.Errorf("%s, want %s and the UUID", id, prefix)
	}
	// As the real ceph-csi made it (https://github.com/rook/rook/issues/4873).
	const real = "0001-0010-rook-ceph-system-0000000000000001-a41e0a8d-5c2e-11ea-a5ae-529c7eb8cd1e"
	for _, id := range []string{o.String(), real} {
		back, err := parseID(id)
		if err != nil || back.String() != id {
			t.Errorf("%s: %+v, %v", id, back, err)
		}
	}
	for _, id := range []string{"", "x", "0001-0008-cnsbench", prefix, strings.Replace(o.String(), "0008", "0007", 1),
		strings.Replace(o.String(), "0001", "0002", 1), o.String() + "x", "0001-ffff-" + o.uuid} {
		if back, err := parseID(id); err == nil {
			t.Errorf("%q was taken for %+v", id, back)
		}
	}
}

func TestRoundSize(t *testing.T) {
	for size, want := range map[int64]int64{0: mib, 1: mib, mib: mib, mib + 1: 2 * mib, gib - 1: gib, gib: gib,
		gib + 1: 2 * gib} {
		if got := roundSize(size); got != want {
			t.Errorf("%d: %d, want %d", size, got, want)
		}
	}
}

// TestSuperblock reads what the real programs wrote.
func TestSuperblock(t *testing.T) {
	for fsType, args := range map[string][]string{"ext4": {"-q"}, "xfs": {"-q"}, "": nil} {
		t.Run(fsType, func(t *testing.T) {
			image := filepath.Join(t.TempDir(), "image")
			const size = 384 * mib
			if err := os.WriteFile(image, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(image, size); err != nil {
				t.Fatal(err)
			}
			if fsType != "" {
				if out, err := exec.Command("mkfs."+fsType, append(args, image)...).CombinedOutput(); err != nil {
					t.Skipf("mkfs.%s: %v: %s", fsType, err, out)
				}
			}
			got, bytes, err := fileSystem(image)
			if err != nil || got != fsType || fsType != "" && bytes != size {
				t.Errorf("%q of %d bytes, %v; want %q of %d", got, bytes, err, fsType, size)
			}
		})
	}
}
