package ceph

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
)

// RBDNode attaches images as loop devices (export) and mounts them. Like ceph-csi it stages below the staging path, at
// the volume's id.
type RBDNode struct {
	csikit.Node
	clusters *Clusters
	dir      string
	freeze   bool
	freezing sync.Mutex // a snapshot and a clone of one volume freeze it one after the other
}

// NewRBDNode returns the node service; dir is for its own files. With freeze, file systems are frozen for snapshots;
// ceph-csi does not do that.
func NewRBDNode(c *Clusters, dir string, freeze bool) *RBDNode {
	n := &RBDNode{clusters: c, dir: dir, freeze: freeze}
	n.Staged = func(staging, volumeID string) (string, error) {
		path := filepath.Join(staging, volumeID)
		m, err := hostfs.At(path)
		if err == nil && m == nil {
			err = status.Errorf(codes.FailedPrecondition, "volume %s is not staged at %s", volumeID, staging)
		}
		return path, err
	}
	n.Types = []csi.NodeServiceCapability_RPC_Type{csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME,
		csi.NodeServiceCapability_RPC_EXPAND_VOLUME, csi.NodeServiceCapability_RPC_GET_VOLUME_STATS,
		csi.NodeServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER}
	return n
}

func (n *RBDNode) exportDir(uuid string) string { return filepath.Join(n.dir, "rbd", uuid) }

// exports returns all exports of this node.
func (n *RBDNode) exports() ([]*export, error) {
	dirs, err := filepath.Glob(n.exportDir("*"))
	var all []*export
	for _, dir := range dirs {
		e, loadErr := loadExport(dir)
		err = errors.Join(err, loadErr)
		if e != nil {
			all = append(all, e)
		}
	}
	return all, err
}

// Recover thaws what an earlier process may have left frozen.
func (n *RBDNode) Recover() error {
	all, err := n.exports()
	for _, e := range all {
		if thawErr := e.thaw(); thawErr != nil && !errors.Is(thawErr, os.ErrNotExist) {
			err = errors.Join(err, thawErr)
		}
	}
	return err
}

// UnstageAll unmounts and detaches every volume of this node, CephFS and RBD.
func (n *RBDNode) UnstageAll() error {
	all, err := n.exports()
	for _, e := range all {
		if e.Device != "" {
			err = errors.Join(err, e.thaw(), e.unmountDevice())
		}
		err = errors.Join(err, e.detach())
	}
	return errors.Join(err, csikit.UnstageAll("ceph-fuse", n.clusters.conf,
		func(args []string) string { return args[1] }))
}

// frozen calls f with the volume's file system frozen, if it is mounted here.
func (n *RBDNode) frozen(uuid string, f func() error) error {
	e, err := loadExport(n.exportDir(uuid))
	if err != nil {
		return err
	}
	if e == nil || e.FSType == "" || !n.freeze {
		return f()
	}
	dir, err := os.Open(e.Staging)
	if err != nil {
		return err
	}
	defer dir.Close()
	n.freezing.Lock()
	defer n.freezing.Unlock()
	if err := hostfs.Freeze(dir); err != nil {
		return err
	}
	err = f()
	return errors.Join(err, hostfs.Thaw(dir))
}

// NodeStageVolume implements csi.NodeServer.
func (n *RBDNode) NodeStageVolume(ctx context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse,
	error) {
	if err := csikit.CheckStage(req, true); err != nil {
		return nil, err
	}
	creds, err := userCredentials(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	p, r, err := n.clusters.find(req.GetVolumeId(), creds, ofVolumes)
	if err != nil {
		return nil, internal(err)
	}
	if r == nil {
		return nil, notFound("volume %s not found", req.GetVolumeId())
	}
	defer p.close()
	return &csi.NodeStageVolumeResponse{}, internal(n.stage(ctx, req, p, *r, creds))
}

func (n *RBDNode) stage(ctx context.Context, req *csi.NodeStageVolumeRequest, p *pool, r record,
	creds credentials) error {
	point := filepath.Join(req.GetStagingTargetPath(), req.GetVolumeId())
	if m, err := hostfs.At(point); err != nil || m != nil {
		return err
	}
	e, err := loadExport(n.exportDir(r.UUID))
	if err != nil {
		return err
	}
	if e != nil { // an attempt that a kill has ended
		if err := e.detach(); err != nil {
			return err
		}
	}
	e = &export{dir: n.exportDir(r.UUID), Staging: point}
	if err := e.attach(ctx, n.clusters.conf, p.name, volumePrefix+r.UUID, creds, isReadOnly(req)); err != nil {
		return err
	}
	if req.GetVolumeCapability().GetBlock() != nil {
		err = hostfs.Bind(e.Device, point, false)
	} else {
		err = e.mount(ctx, req)
	}
	if err != nil {
		return errors.Join(err, hostfs.Unmount(point, csikit.Patience), hostfs.RemovePoint(point), e.detach())
	}
	return e.save()
}

func isReadOnly(req *csi.NodeStageVolumeRequest) bool {
	switch req.GetVolumeCapability().GetAccessMode().GetMode() {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY:
		return true
	}
	return false
}

// mount makes the file system, if there is none, mounts it, and grows it to the device's size.
func (e *export) mount(ctx context.Context, req *csi.NodeStageVolumeRequest) error {
	fsType, size, err := fileSystem(e.Device)
	if err != nil {
		return err
	}
	if fsType == "" {
		fsType = req.GetVolumeCapability().GetMount().GetFsType()
		if fsType == "" {
			fsType = "ext4"
		}
		if err := mkfs(ctx, fsType, e.Device, req.GetVolumeContext()["mkfsOptions"]); err != nil {
			return err
		}
		if _, size, err = fileSystem(e.Device); err != nil {
			return err
		}
	}
	e.FSType = fsType
	device, err := csikit.DeviceSize(e.Device)
	if err != nil {
		return err
	}
	grows := size < device && !isReadOnly(req)
	if grows && fsType == "ext4" {
		if err := growUnmounted(ctx, e.Device); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(e.Staging, 0o755); err != nil {
		return err
	}
	args := []string{"-t", fsType, "-o", e.mountOptions(req), e.Device, e.Staging}
	if err := hostfs.Run(ctx, "mount", args...); err != nil {
		return err
	}
	if grows && fsType == "xfs" {
		return hostfs.Run(ctx, "xfs_growfs", "-d", e.Staging)
	}
	return nil
}

func (e *export) mountOptions(req *csi.NodeStageVolumeRequest) string {
	options := append([]string{"_netdev"}, req.GetVolumeCapability().GetMount().GetMountFlags()...)
	if isReadOnly(req) {
		options = append(options, "ro")
	}
	if e.FSType == "xfs" {
		options = append(options, "nouuid") // clones have their source's UUID
	}
	return strings.Join(options, ",")
}

// mkfs makes a file system with the options that are ceph-csi's defaults.
func mkfs(ctx context.Context, fsType, device, options string) error {
	if options == "" {
		options = map[string]string{"ext4": "-m0 -Enodiscard,lazy_itable_init=1,lazy_journal_init=1", "xfs": "-K"}[fsType]
	}
	return hostfs.Run(ctx, "mkfs."+fsType, append(strings.Fields(options), device)...)
}

// growUnmounted grows an unmounted ext4 file system; resize2fs requires a check first.
func growUnmounted(ctx context.Context, device string) error {
	err := hostfs.Run(ctx, "e2fsck", "-f", "-p", device)
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 { // it replayed the journal
		err = nil
	}
	if err != nil {
		return err
	}
	return hostfs.Run(ctx, "resize2fs", device)
}

// NodeUnstageVolume implements csi.NodeServer.
func (n *RBDNode) NodeUnstageVolume(_ context.Context,
	req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	if err := csikit.CheckUnstage(req); err != nil {
		return nil, err
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	o, err := parseID(req.GetVolumeId())
	if err != nil {
		return nil, notFound("volume %s not found", req.GetVolumeId())
	}
	point := filepath.Join(req.GetStagingTargetPath(), req.GetVolumeId())
	if err := csikit.CheckUnpublished(point); err != nil {
		return nil, err
	}
	if err := errors.Join(hostfs.Unmount(point, csikit.Patience), hostfs.RemovePoint(point)); err != nil {
		return nil, internal(err)
	}
	e, err := loadExport(n.exportDir(o.uuid))
	if err != nil || e == nil {
		return &csi.NodeUnstageVolumeResponse{}, err
	}
	return &csi.NodeUnstageVolumeResponse{}, internal(e.detach())
}

// NodeExpandVolume implements csi.NodeServer. A mounted ext4 grows only if the driver has CAP_SYS_RESOURCE.
func (n *RBDNode) NodeExpandVolume(ctx context.Context,
	req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse, error) {
	if req.GetVolumeId() == "" || req.GetVolumePath() == "" {
		return nil, invalid("volume ID or volume path missing in request")
	}
	release, err := n.Locks.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	o, err := parseID(req.GetVolumeId())
	if err != nil {
		return nil, notFound("volume %s not found", req.GetVolumeId())
	}
	e, err := loadExport(n.exportDir(o.uuid))
	if err != nil {
		return nil, err
	}
	if e == nil {
		return nil, notFound("volume %s is not staged", req.GetVolumeId())
	}
	size := roundSize(req.GetCapacityRange().GetRequiredBytes())
	if err := e.grow(size); err != nil {
		return nil, internal(err)
	}
	return &csi.NodeExpandVolumeResponse{CapacityBytes: size}, internal(e.growFileSystem(ctx))
}

func (e *export) growFileSystem(ctx context.Context) error {
	fsType, size, err := fileSystem(e.Device)
	if err != nil || e.FSType == "" {
		return err
	}
	device, err := csikit.DeviceSize(e.Device)
	switch {
	case err != nil || size >= device:
		return err
	case fsType == "xfs":
		return hostfs.Run(ctx, "xfs_growfs", "-d", e.Staging)
	case !hostfs.HasCapability(unix.CAP_SYS_RESOURCE):
		return status.Error(codes.FailedPrecondition, "growing a mounted ext4 needs CAP_SYS_RESOURCE, which the driver "+
			"lacks; it grows when the volume is staged again")
	}
	return hostfs.Run(ctx, "resize2fs", e.Device)
}
