package csikit

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

// Patience is how long the unmounting of a busy mount is repeated.
const Patience = 10 * time.Second

// Node publishes what is staged by bind mounts, and answers statistics.
type Node struct {
	csi.UnimplementedNodeServer
	Locks Locks
	// Staged is the file or directory to publish of a volume staged at a path, and whether it is a block device.
	Staged func(staging, volumeID string) (source string, err error)
	// Types are the node's capabilities.
	Types []csi.NodeServiceCapability_RPC_Type
}

// NodeGetCapabilities implements csi.NodeServer.
func (n *Node) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse,
	error) {
	return NodeCapabilities(n.Types...), nil
}

// NodeGetInfo implements csi.NodeServer.
func (n *Node) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	host, err := os.Hostname()
	return &csi.NodeGetInfoResponse{NodeId: host}, err
}

// NodePublishVolume implements csi.NodeServer.
func (n *Node) NodePublishVolume(_ context.Context, req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse,
	error) {
	switch {
	case req.GetVolumeCapability() == nil:
		return nil, status.Error(codes.InvalidArgument, "volume capability missing in request")
	case req.GetVolumeId() == "":
		return nil, status.Error(codes.InvalidArgument, "volume ID missing in request")
	case req.GetTargetPath() == "":
		return nil, status.Error(codes.InvalidArgument, "target path missing in request")
	case req.GetStagingTargetPath() == "":
		return nil, status.Error(codes.InvalidArgument, "staging target path missing in request")
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	source, err := n.Staged(req.GetStagingTargetPath(), req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	m, err := hostfs.At(req.GetTargetPath())
	if err != nil || m != nil {
		return &csi.NodePublishVolumeResponse{}, err
	}
	if req.GetVolumeCapability().GetAccessMode().GetMode() == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
		if err := CheckUnpublished(source); err != nil {
			return nil, err
		}
	}
	if err := os.MkdirAll(filepath.Dir(req.GetTargetPath()), 0o750); err != nil {
		return nil, err
	}
	return &csi.NodePublishVolumeResponse{}, hostfs.Bind(source, req.GetTargetPath(), req.GetReadonly())
}

// NodeUnpublishVolume implements csi.NodeServer.
func (n *Node) NodeUnpublishVolume(_ context.Context,
	req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID missing in request")
	}
	if req.GetTargetPath() == "" {
		return nil, status.Error(codes.InvalidArgument, "target path missing in request")
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	if err := hostfs.Unmount(req.GetTargetPath(), Patience); err != nil {
		return nil, err
	}
	return &csi.NodeUnpublishVolumeResponse{}, hostfs.RemovePoint(req.GetTargetPath())
}

// NodeGetVolumeStats implements csi.NodeServer.
func (n *Node) NodeGetVolumeStats(_ context.Context,
	req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if req.GetVolumeId() == "" || req.GetVolumePath() == "" {
		return nil, status.Error(codes.InvalidArgument, "volume ID or volume path missing in request")
	}
	info, err := os.Stat(req.GetVolumePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "nothing at %s", req.GetVolumePath())
	} else if err != nil {
		return nil, err
	}
	if info.Mode()&fs.ModeDevice != 0 {
		size, err := DeviceSize(req.GetVolumePath())
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES, Total: size}}}, err
	}
	m, err := hostfs.At(req.GetVolumePath())
	if err != nil {
		return nil, err
	}
	if m == nil {
		return nil, status.Errorf(codes.NotFound, "%s is not mounted", req.GetVolumePath())
	}
	var st unix.Statfs_t
	if err := unix.Statfs(req.GetVolumePath(), &st); err != nil {
		return nil, os.NewSyscallError("statfs", err)
	}
	return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: int64(st.Blocks) * st.Bsize, Available: int64(st.Bavail) * st.Bsize,
			Used: int64(st.Blocks-st.Bfree) * st.Bsize},
		// CephFS states no number of free inodes: what statfs answers is passed on, as ceph-csi does.
		{Unit: csi.VolumeUsage_INODES, Total: int64(st.Files), Available: int64(st.Ffree), Used: int64(st.Files - st.Ffree)},
	}}, nil
}

// DeviceSize returns the bytes of a block device.
func DeviceSize(path string) (int64, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	return f.Seek(0, 2)
}

// CheckStage validates a stage request as ceph-csi does; withSecrets demands secrets.
func CheckStage(req *csi.NodeStageVolumeRequest, withSecrets bool) error {
	switch {
	case req.GetVolumeCapability() == nil:
		return status.Error(codes.InvalidArgument, "volume capability missing in request")
	case req.GetVolumeId() == "":
		return status.Error(codes.InvalidArgument, "volume ID missing in request")
	case req.GetStagingTargetPath() == "":
		return status.Error(codes.InvalidArgument, "staging target path missing in request")
	case withSecrets && len(req.GetSecrets()) == 0:
		return status.Error(codes.InvalidArgument, "stage secrets cannot be nil or empty")
	}
	if info, err := os.Stat(req.GetStagingTargetPath()); err != nil || !info.IsDir() {
		return status.Errorf(codes.InvalidArgument, "staging path %s does not exist on node", req.GetStagingTargetPath())
	}
	return nil
}

// CheckUnstage validates an unstage request.
func CheckUnstage(req *csi.NodeUnstageVolumeRequest) error {
	if req.GetVolumeId() == "" {
		return status.Error(codes.InvalidArgument, "volume ID missing in request")
	}
	if req.GetStagingTargetPath() == "" {
		return status.Error(codes.InvalidArgument, "staging target path missing in request")
	}
	return nil
}

// CheckUnpublished fails if what is mounted at a staging path is also mounted elsewhere.
func CheckUnpublished(staging string) error {
	staged, err := hostfs.At(staging)
	if err != nil || staged == nil {
		return err
	}
	mounts, err := hostfs.AllMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		if m.Major == staged.Major && m.Minor == staged.Minor && m.Root == staged.Root &&
			m.Mountpoint != staged.Mountpoint {
			return status.Errorf(codes.FailedPrecondition, "the volume is published at %s", m.Mountpoint)
		}
	}
	return nil
}

// UnmountAll removes every mount of the file system or device with this number, the latest first.
func UnmountAll(major, minor int) error {
	mounts, err := hostfs.AllMounts()
	if err != nil {
		return err
	}
	var problems []error
	for _, m := range mounts {
		if m.Major == major && m.Minor == minor {
			problems = append(problems, hostfs.Unmount(m.Mountpoint, Patience))
		}
	}
	return errors.Join(problems...)
}
