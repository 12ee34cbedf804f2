package wrap

import (
	"fmt"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// counted are the file systems whose reads from a device the kernel counts at the process that reads (read_bytes of
// proc_pid_io(5)) and at its control group (io.stat): those on a block device, and those in memory, which have none.
// On others the reads are of a server or of another process: FUSE, also of a block device, NFS, CephFS, SMB, 9p, ZFS.
var counted = []uint32{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.F2FS_SUPER_MAGIC,
	unix.OVERLAYFS_SUPER_MAGIC, unix.TMPFS_MAGIC, unix.RAMFS_MAGIC, unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC,
	unix.REISERFS_SUPER_MAGIC, unix.NILFS_SUPER_MAGIC, unix.OCFS2_SUPER_MAGIC, unix.SQUASHFS_MAGIC,
	unix.EROFS_SUPER_MAGIC_V1, 0x01161970 /* gfs2 */, 0x3153464a /* jfs */, 0xca451a4e /* bcachefs */}

// uncountedNames has the names of the most common others.
var uncountedNames = map[uint32]string{unix.FUSE_SUPER_MAGIC: "FUSE", unix.NFS_SUPER_MAGIC: "NFS",
	unix.CEPH_SUPER_MAGIC: "CephFS", unix.CIFS_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.V9FS_MAGIC: "9p",
	unix.AFS_SUPER_MAGIC: "AFS", 0x2fc12fc1: "ZFS", 0x0bd00bd0: "Lustre", 0x47504653: "GPFS", 0x19830326: "BeeGFS"}

// uncounted says why the reads of a session from its volumes are not known from the counters of its processes; empty:
// they are. It must be called once the volumes respond.
func (s *session) uncounted() op.Unobserved {
	volumes := slices.Clone(s.welcome.Volumes)
	for _, p := range s.welcome.Probes {
		volumes = append(volumes, protocol.CanaryVolume{Name: p.Volume, Path: p.Path})
	}
	if s.welcome.Canary != nil {
		volumes = append(volumes, s.welcome.Canary.Volumes...)
	}
	for _, v := range volumes {
		if name, ok := uncountedAt(v.Path); ok {
			return op.FileSystemOf(name)
		}
	}
	return ""
}

// uncountedAt returns the name of the file system at path if its reads are not counted. A block device is not on one.
func uncountedAt(path string) (name string, ok bool) {
	var file unix.Stat_t
	var fs unix.Statfs_t
	if unix.Stat(path, &file) != nil || file.Mode&unix.S_IFMT == unix.S_IFBLK || unix.Statfs(path, &fs) != nil {
		return "", false
	}
	magic := uint32(fs.Type)
	if slices.Contains(counted, magic) {
		return "", false
	}
	if name = uncountedNames[magic]; name == "" {
		name = fmt.Sprintf("type %#x", magic)
	}
	return name, true
}
