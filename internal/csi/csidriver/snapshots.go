package csidriver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// CreateSnapshot implements csi.ControllerServer.
func (d *driver) CreateSnapshot(ctx context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse,
	error) {
	if req.GetName() == "" || req.GetSourceVolumeId() == "" {
		return nil, invalid("the request lacks a name or a source volume")
	}
	id := objectID("snap", req.GetName())
	unlock, err := d.locks.lock(ctx, id, req.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	defer unlock()
	if old, ok := d.snaps.get(id); ok && old.Phase == ready {
		if old.Name != req.GetName() || old.Volume != req.GetSourceVolumeId() {
			return nil, status.Errorf(codes.AlreadyExists, "snapshot %q exists of volume %s", old.Name, old.Volume)
		}
		return &csi.CreateSnapshotResponse{Snapshot: old.proto()}, nil
	}
	v, err := d.volumeOrNotFound(req.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	s := newSnapshot(id, req.GetName(), v)
	err = d.makeSnapshots(context.WithoutCancel(ctx), []snapshot{s},
		func(ctx context.Context) error { return d.backend.snapshot(ctx, s, v) })
	if err != nil {
		return nil, err
	}
	return &csi.CreateSnapshotResponse{Snapshot: s.proto()}, nil
}

func newSnapshot(id, name string, v volume) snapshot {
	return snapshot{ID: id, Name: name, Volume: v.ID, Size: v.Size, Created: time.Now().UnixNano(),
		Block: v.Block, FSType: v.FSType, Formatted: v.Formatted}
}

// makeSnapshots takes snapshots whose locks are held. The intents are written first, so that a restarted
// driver knows which volumes may be frozen.
func (d *driver) makeSnapshots(ctx context.Context, snaps []snapshot, take func(context.Context) error) error {
	err := error(nil)
	for _, s := range snaps {
		if s.Phase = creating; d.physical() && err == nil {
			err = d.snaps.put(s.ID, s)
		}
	}
	if err == nil {
		err = take(ctx)
	}
	for _, s := range snaps {
		if err == nil {
			err = d.snaps.put(s.ID, s)
		}
	}
	if err == nil {
		return nil
	}
	var undoing []error
	for _, s := range snaps {
		undoing = append(undoing, d.dropSnapshot(ctx, s))
	}
	return withUndoErrors(err, undoing...)
}

func (d *driver) dropSnapshot(ctx context.Context, s snapshot) error {
	if err := d.backend.removeSnapshot(ctx, s); err != nil {
		return err
	}
	return d.snaps.delete(s.ID)
}

// DeleteSnapshot implements csi.ControllerServer.
func (d *driver) DeleteSnapshot(ctx context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse,
	error) {
	id := req.GetSnapshotId()
	if id == "" {
		return nil, invalid("the request has no snapshot id")
	}
	unlock, err := d.locks.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	s, ok := d.snaps.get(id)
	if !ok {
		return &csi.DeleteSnapshotResponse{}, nil
	}
	if s.Group != "" {
		return nil, invalid("snapshot %s belongs to the group snapshot %s and goes with it", id, s.Group)
	}
	return &csi.DeleteSnapshotResponse{}, d.deleteSnapshot(context.WithoutCancel(ctx), s)
}

func (d *driver) deleteSnapshot(ctx context.Context, s snapshot) error {
	if d.physical() {
		s.Phase = deleting
		if err := d.snaps.put(s.ID, s); err != nil {
			return err
		}
	}
	return d.dropSnapshot(ctx, s)
}

// ListSnapshots implements csi.ControllerServer.
func (d *driver) ListSnapshots(_ context.Context, req *csi.ListSnapshotsRequest) (*csi.ListSnapshotsResponse, error) {
	all := slices.DeleteFunc(d.snaps.all(), func(s snapshot) bool {
		return s.Phase != ready || req.GetSnapshotId() != "" && s.ID != req.GetSnapshotId() ||
			req.GetSourceVolumeId() != "" && s.Volume != req.GetSourceVolumeId()
	})
	page, next, err := paginate(all, func(s snapshot) string { return s.ID }, "snap-", req.GetStartingToken(),
		req.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	resp := &csi.ListSnapshotsResponse{NextToken: next}
	for _, s := range page {
		resp.Entries = append(resp.Entries, &csi.ListSnapshotsResponse_Entry{Snapshot: s.proto()})
	}
	return resp, nil
}

// GetSnapshot implements csi.ControllerServer.
func (d *driver) GetSnapshot(_ context.Context, req *csi.GetSnapshotRequest) (*csi.GetSnapshotResponse, error) {
	if req.GetSnapshotId() == "" {
		return nil, invalid("the request has no snapshot id")
	}
	s, ok := d.snaps.get(req.GetSnapshotId())
	if !ok || s.Phase != ready {
		return nil, status.Errorf(codes.NotFound, "snapshot %q not found", req.GetSnapshotId())
	}
	return &csi.GetSnapshotResponse{Snapshot: s.proto()}, nil
}

// CreateVolumeGroupSnapshot implements csi.GroupControllerServer.
func (d *driver) CreateVolumeGroupSnapshot(ctx context.Context,
	req *csi.CreateVolumeGroupSnapshotRequest) (*csi.CreateVolumeGroupSnapshotResponse, error) {
	if req.GetName() == "" || len(req.GetSourceVolumeIds()) == 0 {
		return nil, invalid("the request lacks a name or source volumes")
	}
	g := group{ID: objectID("group", req.GetName()), Name: req.GetName(),
		Volumes: slices.Sorted(slices.Values(req.GetSourceVolumeIds()))}
	g.Volumes = slices.Compact(g.Volumes)
	unlock, err := d.locks.lock(ctx, append(slices.Clone(g.Volumes), g.ID)...)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if old, ok := d.groups.get(g.ID); ok {
		if old.Name != g.Name || !slices.Equal(old.Volumes, g.Volumes) {
			return nil, status.Errorf(codes.AlreadyExists, "group snapshot %q exists of other volumes", old.Name)
		}
		return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: d.groupProto(old)}, nil
	}
	if err := d.makeGroup(context.WithoutCancel(ctx), &g); err != nil {
		return nil, err
	}
	return &csi.CreateVolumeGroupSnapshotResponse{GroupSnapshot: d.groupProto(g)}, nil
}

func (d *driver) makeGroup(ctx context.Context, g *group) error {
	var (
		vols  []volume
		snaps []snapshot
	)
	for _, id := range g.Volumes {
		v, err := d.volumeOrNotFound(id)
		if err != nil {
			return err
		}
		name := g.Name + "/" + id
		s := newSnapshot(objectID("snap", name), name, v)
		s.Group = g.ID
		vols, snaps, g.Snapshots = append(vols, v), append(snaps, s), append(g.Snapshots, s.ID)
	}
	g.Created = time.Now().UnixNano()
	// The group's record is written last: without it a restarted driver removes the snapshots.
	return d.makeSnapshots(ctx, snaps, func(ctx context.Context) error {
		if err := d.backend.(grouper).snapshotGroup(ctx, snaps, vols); err != nil {
			return err
		}
		return d.groups.put(g.ID, *g)
	})
}

// DeleteVolumeGroupSnapshot implements csi.GroupControllerServer.
func (d *driver) DeleteVolumeGroupSnapshot(ctx context.Context,
	req *csi.DeleteVolumeGroupSnapshotRequest) (*csi.DeleteVolumeGroupSnapshotResponse, error) {
	id := req.GetGroupSnapshotId()
	if id == "" {
		return nil, invalid("the request has no group snapshot id")
	}
	g, ok := d.groups.get(id)
	if !ok {
		return &csi.DeleteVolumeGroupSnapshotResponse{}, nil
	}
	for _, s := range req.GetSnapshotIds() {
		if !slices.Contains(g.Snapshots, s) {
			return nil, invalid("snapshot %s does not belong to the group snapshot %s", s, id)
		}
	}
	unlock, err := d.locks.lock(ctx, append(slices.Clone(g.Snapshots), id)...)
	if err != nil {
		return nil, err
	}
	defer unlock()
	var problems []error
	for _, sid := range g.Snapshots {
		if s, ok := d.snaps.get(sid); ok {
			problems = append(problems, d.deleteSnapshot(context.WithoutCancel(ctx), s))
		}
	}
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeGroupSnapshotResponse{}, d.groups.delete(id)
}

// GetVolumeGroupSnapshot implements csi.GroupControllerServer.
func (d *driver) GetVolumeGroupSnapshot(_ context.Context,
	req *csi.GetVolumeGroupSnapshotRequest) (*csi.GetVolumeGroupSnapshotResponse, error) {
	if req.GetGroupSnapshotId() == "" {
		return nil, invalid("the request has no group snapshot id")
	}
	g, ok := d.groups.get(req.GetGroupSnapshotId())
	if !ok {
		return nil, status.Errorf(codes.NotFound, "group snapshot %q not found", req.GetGroupSnapshotId())
	}
	return &csi.GetVolumeGroupSnapshotResponse{GroupSnapshot: d.groupProto(g)}, nil
}

func (d *driver) groupProto(g group) *csi.VolumeGroupSnapshot {
	p := &csi.VolumeGroupSnapshot{GroupSnapshotId: g.ID, ReadyToUse: true,
		CreationTime: timestamppb.New(time.Unix(0, g.Created))}
	for _, id := range g.Snapshots {
		if s, ok := d.snaps.get(id); ok {
			p.Snapshots = append(p.Snapshots, s.proto())
		}
	}
	return p
}
