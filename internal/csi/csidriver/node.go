package csidriver

import (
	"context"
	"errors"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/machine"
)

// NodeStageVolume implements csi.NodeServer.
func (d *driver) NodeStageVolume(ctx context.Context, req *csi.NodeStageVolumeRequest) (*csi.NodeStageVolumeResponse,
	error) {
	st, ok := d.backend.(stager)
	if !ok {
		return d.UnimplementedNodeServer.NodeStageVolume(ctx, req)
	}
	if req.GetVolumeId() == "" || req.GetStagingTargetPath() == "" || req.GetVolumeCapability() == nil {
		return nil, invalid("the request lacks a volume id, a staging path or a capability")
	}
	path, err := filepath.Abs(req.GetStagingTargetPath())
	if err != nil {
		return nil, invalid("staging path: %v", err)
	}
	err = d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		if err := d.fits(*v, req.GetVolumeCapability()); err != nil {
			return err
		}
		if _, attaches := d.backend.(attacher); attaches && !slices.Contains(d.nodesOf(*v), d.nodeOf(ctx)) {
			return status.Errorf(codes.FailedPrecondition, "volume %s is not attached to node %s", v.ID, d.nodeOf(ctx))
		}
		// Record the path before the work too: a restarted driver must find the mount.
		_, again := v.Staged[path]
		v.Staged[path] = d.nodeOf(ctx)
		if err := d.keepIntent(*v); err != nil {
			return err
		}
		if err := st.stage(ctx, v, path, req.GetVolumeCapability().GetMount().GetMountFlags()); err != nil {
			if !again {
				delete(v.Staged, path)
			}
			return withUndoErrors(err, d.keepIntent(*v))
		}
		return nil
	})
	return &csi.NodeStageVolumeResponse{}, err
}

// NodeUnstageVolume implements csi.NodeServer.
func (d *driver) NodeUnstageVolume(ctx context.Context,
	req *csi.NodeUnstageVolumeRequest) (*csi.NodeUnstageVolumeResponse, error) {
	st, ok := d.backend.(stager)
	if !ok {
		return d.UnimplementedNodeServer.NodeUnstageVolume(ctx, req)
	}
	if req.GetVolumeId() == "" || req.GetStagingTargetPath() == "" {
		return nil, invalid("the request lacks a volume id or a staging path")
	}
	path, err := filepath.Abs(req.GetStagingTargetPath())
	if err != nil {
		return nil, invalid("staging path: %v", err)
	}
	err = d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		if _, published := v.usedOn(d.nodeOf(ctx)); published > 0 {
			return status.Errorf(codes.FailedPrecondition, "volume %s is still published at %d paths", v.ID, published)
		}
		if _, ok := v.Staged[path]; !ok {
			return nil
		}
		if err := st.unstage(ctx, *v, path); err != nil {
			return err
		}
		delete(v.Staged, path)
		return nil
	})
	return &csi.NodeUnstageVolumeResponse{}, err
}

// NodePublishVolume implements csi.NodeServer.
func (d *driver) NodePublishVolume(ctx context.Context,
	req *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	if req.GetVolumeId() == "" || req.GetTargetPath() == "" || req.GetVolumeCapability() == nil {
		return nil, invalid("the request lacks a volume id, a target path or a capability")
	}
	path, err := filepath.Abs(req.GetTargetPath())
	if err != nil {
		return nil, invalid("target path: %v", err)
	}
	err = d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		staging, err := d.checkPublish(*v, req, path)
		if err != nil {
			return err
		}
		_, again := v.Published[path]
		v.Published[path] = publication{ReadOnly: req.GetReadonly(),
			Mode: req.GetVolumeCapability().GetAccessMode().GetMode().String(), Node: d.nodeOf(ctx)}
		if err := d.keepIntent(*v); err != nil {
			return err
		}
		if err := d.backend.publish(ctx, v, staging, path, req.GetReadonly()); err != nil {
			if !again {
				delete(v.Published, path)
			}
			return withUndoErrors(err, d.keepIntent(*v))
		}
		return nil
	})
	return &csi.NodePublishVolumeResponse{}, err
}

// checkPublish validates a publication and returns the staging path, if any.
func (d *driver) checkPublish(v volume, req *csi.NodePublishVolumeRequest, path string) (string, error) {
	if err := d.fits(v, req.GetVolumeCapability()); err != nil {
		return "", err
	}
	mode := req.GetVolumeCapability().GetAccessMode().GetMode()
	for other, p := range v.Published {
		if other == path && (p.ReadOnly != req.GetReadonly() || p.Mode != mode.String()) {
			return "", status.Errorf(codes.AlreadyExists, "volume %s is published at %s with read-only %t and mode %s",
				v.ID, path, p.ReadOnly, p.Mode)
		}
		if other != path && mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER {
			return "", status.Errorf(codes.FailedPrecondition, "volume %s has a single writer and is published at %s",
				v.ID, other)
		}
	}
	if _, stages := d.backend.(stager); !stages {
		return "", nil
	}
	if req.GetStagingTargetPath() == "" {
		return "", status.Error(codes.FailedPrecondition, "the request lacks a staging path")
	}
	staging, err := filepath.Abs(req.GetStagingTargetPath())
	if _, ok := v.Staged[staging]; err != nil || !ok {
		return "", status.Errorf(codes.FailedPrecondition, "volume %s is not staged at %q", v.ID,
			req.GetStagingTargetPath())
	}
	return staging, nil
}

// NodeUnpublishVolume implements csi.NodeServer.
func (d *driver) NodeUnpublishVolume(ctx context.Context,
	req *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	if req.GetVolumeId() == "" || req.GetTargetPath() == "" {
		return nil, invalid("the request lacks a volume id or a target path")
	}
	path, err := filepath.Abs(req.GetTargetPath())
	if err != nil {
		return nil, invalid("target path: %v", err)
	}
	err = d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		if _, ok := v.Published[path]; !ok {
			return nil // not published there: the path may belong to someone else
		}
		if err := d.backend.unpublish(ctx, *v, path); err != nil {
			return err
		}
		delete(v.Published, path)
		return nil
	})
	return &csi.NodeUnpublishVolumeResponse{}, err
}

// keepIntent writes the record before the work that it announces.
func (d *driver) keepIntent(v volume) error {
	if !d.physical() {
		return nil
	}
	return d.vols.put(v.ID, v.clone())
}

// NodeExpandVolume implements csi.NodeServer.
func (d *driver) NodeExpandVolume(ctx context.Context, req *csi.NodeExpandVolumeRequest) (*csi.NodeExpandVolumeResponse,
	error) {
	g, ok := d.backend.(nodeGrower)
	if !ok {
		return d.UnimplementedNodeServer.NodeExpandVolume(ctx, req)
	}
	if req.GetVolumeId() == "" || req.GetVolumePath() == "" {
		return nil, invalid("the request lacks a volume id or a volume path")
	}
	resp := &csi.NodeExpandVolumeResponse{}
	err := d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		if err := checkAtPath(*v, req.GetVolumePath()); err != nil {
			return err
		}
		if r := req.GetCapacityRange(); r.GetRequiredBytes() > v.Size {
			return status.Errorf(codes.OutOfRange, "volume %s has %d bytes; expand it at the controller first", v.ID,
				v.Size)
		}
		if err := g.grow(ctx, v); err != nil {
			return err
		}
		v.NeedsGrow = false
		resp.CapacityBytes = v.Size
		return nil
	})
	return resp, err
}

// checkAtPath fails unless the volume is staged or published at path.
func checkAtPath(v volume, path string) error {
	abs, err := filepath.Abs(path)
	_, published := v.Published[abs]
	_, staged := v.Staged[abs]
	if err != nil || !published && !staged {
		return status.Errorf(codes.NotFound, "volume %s is not at %s", v.ID, path)
	}
	return nil
}

// NodeGetVolumeStats implements csi.NodeServer.
func (d *driver) NodeGetVolumeStats(_ context.Context,
	req *csi.NodeGetVolumeStatsRequest) (*csi.NodeGetVolumeStatsResponse, error) {
	if req.GetVolumeId() == "" || req.GetVolumePath() == "" {
		return nil, invalid("the request lacks a volume id or a volume path")
	}
	v, err := d.volumeOrNotFound(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	if err := checkAtPath(v, req.GetVolumePath()); err != nil {
		return nil, err
	}
	if v.Block {
		return &csi.NodeGetVolumeStatsResponse{Usage: []*csi.VolumeUsage{{Unit: csi.VolumeUsage_BYTES,
			Total: v.Size}}}, nil
	}
	space, err := machine.SpaceOf(req.GetVolumePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, status.Errorf(codes.NotFound, "volume %s is not at %s", v.ID, req.GetVolumePath())
	} else if err != nil {
		return nil, err
	}
	res := &csi.NodeGetVolumeStatsResponse{}
	for _, u := range []*csi.VolumeUsage{
		{Unit: csi.VolumeUsage_BYTES, Total: space.Bytes, Available: space.FreeBytes, Used: space.UsedBytes},
		{Unit: csi.VolumeUsage_INODES, Total: space.Inodes, Available: space.FreeInodes, Used: space.UsedInodes},
	} {
		if u.Total >= 0 && u.Available >= 0 && u.Used >= 0 { // a file system need not count, as btrfs inodes
			res.Usage = append(res.Usage, u)
		}
	}
	return res, nil
}
