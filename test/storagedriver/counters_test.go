package storagedriver_test

import (
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/test/rotation"
	"github.com/cnsbench/cnsbench/test/storagedriver/counters"
)

// TestReadCounters checks that direct reads below the object size are reads of the primary OSDs, one for one: what
// figures of CNSBench are checked against, and that no cache lies between. It runs alone: others would be counted too.
func TestReadCounters(t *testing.T) {
	c := cephUp(t)
	all := []string{"cephfs-r3", "rbd-r3", "rbd-r1-xfs", "rbd-r3/block"}
	for _, name := range all {
		t.Run(name, func(t *testing.T) {
			rotation.Turn(t, 2, all, name)
			d := driverOf(t, name)
			v, _ := d.create("counters", 384*mib, nil)
			d.mount(v)
			d.write(v, "file", 32*mib)
			before, err := counters.Read(c.dir)
			if err != nil {
				t.Fatal(err)
			}
			const reads, size = 2000, 4096
			readDirect(t, d.path(v, "file"), reads, size, 32*mib)
			after, err := counters.Read(c.dir)
			if err != nil {
				t.Fatal(err)
			}
			got := after.Since(before)
			t.Logf("%d reads of %d bytes: %+v", reads, size, got)
			for what, pair := range map[string][2]int64{"reads": {got.Reads, reads}, "bytes": {got.ReadBytes, reads * size}} {
				if off := math.Abs(float64(pair[0])/float64(pair[1]) - 1); off > 0.02 {
					t.Errorf("%s: the OSDs counted %d of %d: %.1f %% off, want 2 %% at most", what, pair[0], pair[1], 100*off)
				}
			}
			d.unmount(v)
			d.remove(v)
		})
	}
}

// readDirect reads blocks at random places past the page cache.
func readDirect(t *testing.T, path string, reads, size, span int) {
	t.Helper()
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECT, 0)
	if err != nil {
		t.Fatal(&os.PathError{Op: "open", Path: path, Err: err})
	}
	defer unix.Close(fd)
	buffer, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE) // aligned
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(buffer) }()
	for range reads {
		if n, err := unix.Pread(fd, buffer, int64(rand.IntN(span/size))*int64(size)); err != nil || n != size {
			t.Fatalf("read %d bytes: %v", n, err)
		}
	}
}
