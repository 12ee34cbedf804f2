package machine

import (
	"math"
	"os"
	"syscall"
)

// Space is how large and how full a file system is. -1: it does not say.
type Space struct {
	Bytes, UsedBytes, FreeBytes    int64 // free: for users other than root
	Inodes, UsedInodes, FreeInodes int64
}

// SpaceOf reads the space of the file system that holds a path.
func SpaceOf(path string) (Space, error) {
	var st syscall.Statfs_t
	if err := syscall.Statfs(path, &st); err != nil {
		return Space{}, os.NewSyscallError("statfs", err)
	}
	return spaceOf(&st), nil
}

// spaceOf reads statfs(2). Blocks are of the fragment size; Bsize is the best size of an I/O, which is larger on FUSE and
// network file systems. What a file system does not count is 0 of 0 (btrfs: inodes; FUSE: all) or all ones (CephFS,
// GlusterFS: free inodes).
func spaceOf(st *syscall.Statfs_t) Space {
	unit := st.Frsize
	if unit <= 0 {
		unit = st.Bsize
	}
	bytes := func(blocks uint64) int64 { return amount(blocks, st.Blocks, unit) }
	inodes := func(n uint64) int64 { return amount(n, st.Files, 1) }
	return Space{
		Bytes: bytes(st.Blocks), UsedBytes: bytes(used(st.Blocks, st.Bfree)), FreeBytes: bytes(st.Bavail),
		Inodes: inodes(st.Files), UsedInodes: inodes(used(st.Files, st.Ffree)), FreeInodes: inodes(st.Ffree),
	}
}

// used is what is not free; all ones if that is not known.
func used(of, free uint64) uint64 {
	if free > of {
		return math.MaxUint64
	}
	return of - free
}

// amount returns the bytes of n units of a size; -1: the file system does not say.
func amount(n, of uint64, unit int64) int64 {
	if of == 0 || n > of || unit <= 0 || of > uint64(math.MaxInt64/unit) {
		return -1
	}
	return int64(n) * unit
}
