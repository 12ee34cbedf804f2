package ceph

import (
	"bytes"
	"encoding/binary"
)

// superblock reads the type and size of a file system from the first 4 KiB of its device (ext4: struct
// ext4_super_block at 1024; XFS: struct xfs_dsb at 0).
func superblock(head []byte) (string, int64) {
	const ext = 1024
	switch {
	case binary.LittleEndian.Uint16(head[ext+0x38:]) == 0xef53:
		blocks := int64(binary.LittleEndian.Uint32(head[ext+4:])) | int64(binary.LittleEndian.Uint32(head[ext+0x150:]))<<32
		return "ext4", blocks << (10 + binary.LittleEndian.Uint32(head[ext+0x18:]))
	case bytes.HasPrefix(head, []byte("XFSB")):
		return "xfs", int64(binary.BigEndian.Uint32(head[4:])) * int64(binary.BigEndian.Uint64(head[8:]))
	}
	return "", 0
}
