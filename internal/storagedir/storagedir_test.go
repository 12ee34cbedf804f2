package storagedir

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCompareRoom: classes of one backend share its pool and nothing else; what a
// pool can take of the disk is at most its size.
func TestCompareRoom(t *testing.T) {
	const gib = int64(1) << 30
	inPool := func(name string, asked, pool int64) Class {
		return Class{StorageClass: name, Backend: "loopfile", Volumes: 1, Bytes: asked * gib, PoolBytes: pool * gib}
	}
	onDisk := func(name string, asked int64) Class {
		return Class{StorageClass: name, Backend: "hostdir", Volumes: 1, Bytes: asked}
	}
	const pool, disk = ": set driver.cnsbench.dev/pool-size in the StorageClass",
		"disk has 8Gi free: take smaller or fewer volumes, or another --storage-dir"
	tests := []struct {
		name    string
		classes []Class
		want    []string
	}{
		{"a small pool beside a class without one", []Class{inPool("a", 3, 1), onDisk("b", gib)},
			[]string{"the volumes of a ask for 3Gi, the pool of loopfile has 1Gi" + pool}},
		{"one pool for two", []Class{inPool("a", 3, 4), inPool("b", 2, 4)},
			[]string{"the volumes of a, b ask for 5Gi, the pool of loopfile has 4Gi" + pool}},
		{"a pool larger than the disk", []Class{inPool("a", 9, 16), onDisk("b", 0)},
			[]string{"the volumes of a can take 9Gi, " + disk}},
		{"together", []Class{inPool("a", 2, 4), onDisk("b", 7*gib)},
			[]string{"the volumes of a, b can take 9Gi, " + disk}},
		{"no overflow", []Class{onDisk("a", math.MaxInt64), onDisk("b", math.MaxInt64)},
			[]string{"the volumes of a, b can take 9223372036854775807, " + disk}},
		{"all fits", []Class{inPool("a", 2, 4), onDisk("b", 6*gib)}, nil},
	}
	for _, tt := range tests {
		r := Room{Device: "disk", FreeBytes: 8 * gib, Pools: map[string]int64{}, Classes: tt.classes}
		for _, c := range tt.classes {
			if c.PoolBytes > 0 {
				r.Pools[c.Backend] = c.PoolBytes
			}
		}
		r.compare()
		if diff := cmp.Diff(tt.want, r.Warnings); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
}
