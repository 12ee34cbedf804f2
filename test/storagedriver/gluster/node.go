package gluster

import (
	"context"
	"errors"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
)

// Node mounts the directories, each with a client of its own.
type Node struct {
	csikit.Node
	controller       *Controller
	server, dir, log string
}

// NewNode returns the node service; dir is for its own files, log its clients' log.
func NewNode(c *Controller, server, dir, log string) *Node {
	n := &Node{controller: c, server: server, dir: dir, log: log}
	n.Staged = func(staging, volumeID string) (string, error) {
		m, err := hostfs.At(staging)
		if err == nil && (m == nil || m.FSType != fuseType) {
			err = status.Errorf(codes.FailedPrecondition, "volume %s is not staged at %s", volumeID, staging)
		}
		return staging, err
	}
	n.Types = []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_GET_VOLUME_STATS, csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER}
	return n
}

// marker is the argument by which the clients of a driver are known.
func (n *Node) marker() string { return "--log-file=" + n.log }

// NodeStageVolume implements csi.NodeServer.
func (n *Node) NodeStageVolume(ctx context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse,
	error) {
	if err := csikit.CheckStage(req, false); err != nil {
		return nil, err
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	r, err := n.controller.load(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, status.Errorf(codes.NotFound, "volume %s not found", req.GetVolumeId())
	}
	target := req.GetStagingTargetPath()
	if m, err := hostfs.At(target); err != nil || m != nil {
		return &csi.NodeStageVolumeResponse{}, err
	}
	err = csikit.Launch(ctx, n.dir, "glusterfs", n.marker(), "--volfile-server="+n.server, "--volfile-id="+split(r.ID),
		"--subdir-mount="+dir(r.ID), target)
	if err != nil {
		return nil, err
	}
	m, err := hostfs.At(target)
	if err == nil && (m == nil || m.FSType != fuseType) {
		err = errors.New("glusterfs succeeded and has mounted nothing; see " + n.log)
	}
	return &csi.NodeStageVolumeResponse{}, err
}

// NodeUnstageVolume implements csi.NodeServer.
func (n *Node) NodeUnstageVolume(_ context.Context, req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse,
	error) {
	if err := csikit.CheckUnstage(req); err != nil {
		return nil, err
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	return &csi.NodeUnstageVolumeResponse{}, csikit.UnmountFuse("glusterfs", req.GetStagingTargetPath())
}

// UnstageAll unmounts every volume of this machine.
func (n *Node) UnstageAll() error {
	return csikit.UnstageAll("glusterfs", n.marker(), func(args []string) string { return args[len(args)-1] })
}
