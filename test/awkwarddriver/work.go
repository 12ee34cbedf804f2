package awkwarddriver

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

// before does what precedes the plain work of a call; req has plain IDs.
func (d *Driver) before(ctx context.Context, c *call, req proto.Message) error {
	switch m := req.(type) {
	case *csi.CreateVolumeRequest:
		return d.checkSource(ctx, c, m.GetVolumeContentSource().GetSnapshot().GetSnapshotId())
	case *csi.DeleteVolumeRequest:
		return d.beforeDelete(ctx, func() error {
			_, err := c.plain.ControllerGetVolume(ctx, &csi.ControllerGetVolumeRequest{VolumeId: m.GetVolumeId()})
			return err
		})
	case *csi.DeleteSnapshotRequest:
		return d.beforeDelete(ctx, func() error {
			_, err := c.plain.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: m.GetSnapshotId()})
			return err
		})
	case *csi.DeleteVolumeGroupSnapshotRequest:
		return d.beforeDelete(ctx, func() error {
			_, err := c.plain.GetVolumeGroupSnapshot(ctx,
				&csi.GetVolumeGroupSnapshotRequest{GroupSnapshotId: m.GetGroupSnapshotId()})
			return err
		})
	case *csi.NodeStageVolumeRequest:
		return d.attach(ctx, c, m.GetVolumeId(), m.GetVolumeCapability())
	case *csi.NodePublishVolumeRequest:
		return d.beforePublish(ctx, c, m)
	case *csi.NodeUnpublishVolumeRequest:
		if d.config.Mounts {
			return hostfs.Unmount(m.GetTargetPath(), time.Second)
		}
	}
	return nil
}

// after does what follows the plain work of a call.
func (d *Driver) after(ctx context.Context, c *call, req proto.Message) error {
	switch m := req.(type) {
	case *csi.NodePublishVolumeRequest:
		if d.config.Mounts {
			return d.mount(m)
		}
	case *csi.NodeUnpublishVolumeRequest:
		return d.unstage(ctx, c, m.GetVolumeId())
	case *csi.NodeUnstageVolumeRequest:
		return d.detach(ctx, c, m.GetVolumeId())
	case *csi.DeleteVolumeRequest:
		return os.RemoveAll(d.dir("data", m.GetVolumeId()))
	}
	return nil
}

// checkSource fails for a snapshot that is not ready to use.
func (d *Driver) checkSource(ctx context.Context, c *call, snapshot string) error {
	if snapshot == "" || d.config.LateReady == 0 {
		return nil
	}
	got, err := c.plain.GetSnapshot(ctx, &csi.GetSnapshotRequest{SnapshotId: snapshot})
	if err == nil && !d.isReady(got.GetSnapshot()) {
		err = status.Errorf(codes.FailedPrecondition, "snapshot %s is not ready to use", snapshot)
	}
	return err
}

func (d *Driver) isReady(s *csi.Snapshot) bool {
	return time.Since(s.GetCreationTime().AsTime()) >= d.config.LateReady
}

func (d *Driver) beforeDelete(ctx context.Context, find func() error) error {
	if d.config.SlowDeletes > 0 {
		if err := sleep(ctx, d.config.SlowDeletes); err != nil {
			return err
		}
	}
	if d.config.NotFound {
		return find()
	}
	return nil
}

// beforePublish attaches and stages, if clients do not, and refuses a path at which something is mounted.
func (d *Driver) beforePublish(ctx context.Context, c *call, m *csi.NodePublishVolumeRequest) error {
	if !d.config.NoStage {
		return nil
	}
	if err := d.attach(ctx, c, m.GetVolumeId(), m.GetVolumeCapability()); err != nil {
		return err
	}
	m.StagingTargetPath = d.dir("staged", m.GetVolumeId())
	if err := os.MkdirAll(filepath.Dir(m.GetStagingTargetPath()), 0o700); err != nil {
		return err
	}
	_, err := c.plain.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: m.GetVolumeId(),
		StagingTargetPath: m.GetStagingTargetPath(), VolumeCapability: m.GetVolumeCapability()})
	return err
}

// attach attaches a volume if clients do not.
func (d *Driver) attach(ctx context.Context, c *call, volume string, as *csi.VolumeCapability) error {
	if !d.config.NoAttach {
		return nil
	}
	info, err := c.plain.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err == nil {
		_, err = c.plain.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: volume,
			NodeId: info.GetNodeId(), VolumeCapability: as})
	}
	return err
}

// unstage undoes what beforePublish did, unless the volume is published elsewhere.
func (d *Driver) unstage(ctx context.Context, c *call, volume string) error {
	if !d.config.NoStage {
		return nil
	}
	_, err := c.plain.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: volume,
		StagingTargetPath: d.dir("staged", volume)})
	if status.Code(err) == codes.FailedPrecondition {
		return nil
	}
	return errors.Join(err, d.detach(ctx, c, volume))
}

func (d *Driver) detach(ctx context.Context, c *call, volume string) error {
	if !d.config.NoAttach {
		return nil
	}
	info, err := c.plain.NodeGetInfo(ctx, &csi.NodeGetInfoRequest{})
	if err == nil {
		_, err = c.plain.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: volume,
			NodeId: info.GetNodeId()})
	}
	return err
}

// mount mounts the directory, or the file, of a volume over what null has put at the target path.
func (d *Driver) mount(m *csi.NodePublishVolumeRequest) error {
	at, err := hostfs.At(m.GetTargetPath())
	if err != nil || at != nil {
		return err
	}
	source := d.dir("data", m.GetVolumeId())
	if m.GetVolumeCapability().GetBlock() == nil {
		err = os.MkdirAll(source, 0o755)
		if err == nil {
			err = os.Chmod(source, 0o777) // the pod may run as any user
		}
	} else {
		err = fileLike(m.GetTargetPath(), source)
	}
	if err != nil {
		return err
	}
	return hostfs.Bind(source, m.GetTargetPath(), m.GetReadonly())
}

// fileLike makes a sparse file of the size of another.
func fileLike(other, path string) error {
	info, err := os.Stat(other)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	return errors.Join(f.Truncate(info.Size()), f.Close())
}
