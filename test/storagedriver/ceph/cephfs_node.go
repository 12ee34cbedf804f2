package ceph

import (
	"context"
	"errors"
	"os"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
)

// fuseType is the type of a mount by ceph-fuse in the mount table.
const fuseType = "fuse.ceph-fuse"

// CephFSNode mounts subvolumes with ceph-fuse, because not every kernel has the client.
type CephFSNode struct {
	csikit.Node
	controller *CephFS
	dir        string
}

// NewCephFSNode returns the node service; dir is for its own files.
func NewCephFSNode(c *CephFS, dir string) *CephFSNode {
	n := &CephFSNode{controller: c, dir: dir}
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

// NodeStageVolume implements csi.NodeServer.
func (n *CephFSNode) NodeStageVolume(ctx context.Context,
	req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse, error) {
	if err := csikit.CheckStage(req, true); err != nil {
		return nil, err
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	creds, err := adminCredentials(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	f, r, err := n.controller.openVolume(req.GetVolumeId(), creds)
	if err != nil {
		return nil, internal(err)
	}
	if r == nil {
		return nil, notFound("volume %s not found", req.GetVolumeId())
	}
	defer f.close()
	if m, err := hostfs.At(req.GetStagingTargetPath()); err != nil || m != nil {
		return &csi.NodeStageVolumeResponse{}, err
	}
	root, err := f.SubVolumePath(f.name, group, volumePrefix+r.UUID)
	if err != nil {
		return nil, internal(err)
	}
	return &csi.NodeStageVolumeResponse{}, internal(n.mount(ctx, f, root, req.GetStagingTargetPath(), creds))
}

func (n *CephFSNode) mount(ctx context.Context, f *filesystem, root, target string, creds credentials) error {
	key, err := keyFile(n.dir, creds)
	if err != nil {
		return err
	}
	defer os.Remove(key)
	clusters := n.controller.clusters
	err = csikit.Launch(ctx, n.dir, "ceph-fuse", target, "-c", clusters.conf, "-m", clusters.monitors[f.cluster], "-n",
		"client."+creds.id, "--keyfile="+key, "-r", root, "--client_mds_namespace="+f.name)
	if err != nil {
		return err
	}
	m, err := hostfs.At(target)
	if err == nil && (m == nil || m.FSType != fuseType) {
		err = errors.New("ceph-fuse succeeded and has mounted nothing")
	}
	return err
}

// NodeUnstageVolume implements csi.NodeServer.
func (n *CephFSNode) NodeUnstageVolume(_ context.Context,
	req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := csikit.CheckUnstage(req); err != nil {
		return nil, err
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	return &csi.NodeUnstageVolumeResponse{}, internal(csikit.UnmountFuse("ceph-fuse", req.GetStagingTargetPath()))
}

// keyFile writes a user's key to a file for a program, which takes no key as an argument that others could read.
func keyFile(dir string, creds credentials) (string, error) {
	f, err := os.CreateTemp(dir, "key-*")
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(creds.key)
	return f.Name(), errors.Join(err, f.Close())
}
