package ceph

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ceph/go-ceph/cephfs/admin"
	"github.com/ceph/go-ceph/rados"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
)

const (
	// CephFSName is the name of the driver for CephFS.
	CephFSName = "cephfs.csi.ceph.com"
	// group is the group of the subvolumes that ceph-csi makes.
	group          = "csi"
	volumePrefix   = "csi-vol-"
	snapshotPrefix = "csi-snap-"
)

// CephFS is the controller of CephFS: a volume is a subvolume, and a clone is a copy that the mgr makes.
type CephFS struct {
	csi.UnimplementedControllerServer
	clusters       *Clusters
	volumes, snaps csikit.Locks
}

// NewCephFS returns the controller.
func NewCephFS(c *Clusters) *CephFS { return &CephFS{clusters: c} }

// filesystem is a file system with a user's connection to its cluster.
type filesystem struct {
	*admin.FSAdmin
	cluster string
	name    string
	id      int64
	volumes journal
	snaps   journal
}

func (f *filesystem) close() { f.volumes.io.Destroy() }

// open finds a file system by name or, without one, by id.
func (c *CephFS) open(cluster, name string, id int64, creds credentials) (*filesystem, error) {
	conn, err := c.clusters.connect(cluster, creds)
	if err != nil {
		return nil, err
	}
	fsa := admin.NewFromConn(conn)
	idents, err := fsa.EnumerateVolumes()
	if err != nil {
		return nil, err
	}
	f := &filesystem{FSAdmin: fsa, cluster: cluster}
	for _, v := range idents {
		if v.Name == name || name == "" && v.ID == id {
			f.name, f.id = v.Name, v.ID
		}
	}
	if f.name == "" {
		return nil, fmt.Errorf("file system %q (%d) not found in cluster %s", name, id, cluster)
	}
	all, err := fsa.ListFileSystems()
	if err != nil {
		return nil, err
	}
	for _, info := range all {
		if info.Name != f.name {
			continue
		}
		io, err := conn.OpenIOContext(info.MetadataPool)
		if err != nil {
			return nil, err
		}
		f.volumes, f.snaps = journal{io, volumesObject}, journal{io, snapshotsObject}
		return f, nil
	}
	return nil, fmt.Errorf("file system %s has no metadata pool", f.name)
}

// openVolume returns the file system and the record of a volume; the record is nil if there is no such volume.
func (c *CephFS) openVolume(id string, creds credentials) (*filesystem, *record, error) {
	return c.openObject(id, creds, func(f *filesystem) journal { return f.volumes })
}

func (c *CephFS) openSnapshot(id string, creds credentials) (*filesystem, *record, error) {
	return c.openObject(id, creds, func(f *filesystem) journal { return f.snaps })
}

func (c *CephFS) openObject(id string, creds credentials, of func(*filesystem) journal) (*filesystem, *record, error) {
	o, err := parseID(id)
	if err != nil {
		return nil, nil, nil
	}
	f, err := c.open(o.cluster, "", o.location, creds)
	if err != nil {
		return nil, nil, err
	}
	r, err := of(f).lookUp(o.uuid)
	if err != nil || r == nil {
		f.close()
		return nil, nil, err
	}
	return f, r, nil
}

func (f *filesystem) volumeID(r record) string { return objectID{f.cluster, f.id, r.UUID}.String() }

// ControllerGetCapabilities implements csi.ControllerServer.
func (c *CephFS) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return csikit.ControllerCapabilities(
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER), nil
}

// checkCreate validates what both drivers demand.
func checkCreate(req *csi.CreateVolumeRequest) error {
	if req.GetName() == "" {
		return invalid("volume Name cannot be empty")
	}
	if len(req.GetVolumeCapabilities()) == 0 {
		return invalid("volume Capabilities cannot be empty")
	}
	for _, capability := range req.GetVolumeCapabilities() {
		mode := capability.GetAccessMode().GetMode()
		readOnly := mode == csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY ||
			mode == csi.VolumeCapability_AccessMode_SINGLE_NODE_READER_ONLY
		if readOnly && req.GetVolumeContentSource() == nil {
			return invalid("readOnly accessMode is supported only with content source")
		}
	}
	return nil
}

// requestedSize returns the rounded size; 1 GiB without a request.
func requestedSize(r *csi.CapacityRange) (int64, error) {
	size := roundSize(gib)
	if r.GetRequiredBytes() > 0 {
		size = roundSize(r.GetRequiredBytes())
	}
	if limit := r.GetLimitBytes(); limit > 0 && size > limit {
		return 0, status.Errorf(codes.OutOfRange, "rounded size %d is more than the limit %d", size, limit)
	}
	return size, nil
}

// sourceID returns the id of the volume or snapshot that a volume is to be made from.
func sourceID(req *csi.CreateVolumeRequest) string {
	if s := req.GetVolumeContentSource().GetSnapshot(); s != nil {
		return s.GetSnapshotId()
	}
	return req.GetVolumeContentSource().GetVolume().GetVolumeId()
}

// CreateVolume implements csi.ControllerServer. For a volume made from a source it answers ABORTED until the mgr's
// copy is complete.
func (c *CephFS) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := checkCreate(req); err != nil {
		return nil, err
	}
	for _, capability := range req.GetVolumeCapabilities() {
		if capability.GetBlock() != nil {
			return nil, status.Error(codes.Unimplemented, "block volume not supported")
		}
	}
	creds, err := adminCredentials(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	release, err := c.volumes.Volume(req.GetName())
	if err != nil {
		return nil, err
	}
	defer release()
	params := req.GetParameters()
	for _, required := range []string{"clusterID", "fsName"} {
		if params[required] == "" {
			return nil, invalid("missing required field %s", required)
		}
	}
	size, err := requestedSize(req.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	f, err := c.open(params["clusterID"], params["fsName"], 0, creds)
	if err != nil {
		return nil, invalid("%v", err)
	}
	defer f.close()
	r, err := c.createOrContinue(f, req, creds, size)
	if err != nil {
		return nil, internal(err)
	}
	volumeContext := map[string]string{"subvolumeName": volumePrefix + r.UUID}
	for k, v := range params {
		volumeContext[k] = v
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: f.volumeID(*r), CapacityBytes: r.Size,
		ContentSource: req.GetVolumeContentSource(), VolumeContext: volumeContext}}, nil
}

func (c *CephFS) createOrContinue(f *filesystem, req *csi.CreateVolumeRequest, creds credentials, size int64) (*record,
	error) {
	source := sourceID(req)
	r, err := f.volumes.find(req.GetName())
	if err != nil {
		return nil, err
	}
	if r != nil && (r.Size != size || r.Source != source) {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s exists with size %d and source %q", r.Name, r.Size,
			r.Source)
	}
	from, err := c.source(req, creds)
	if err != nil {
		return nil, err
	}
	if r == nil {
		r = &record{Name: req.GetName(), UUID: newUUID(), Size: size, FS: f.name, DataPool: req.GetParameters()["pool"],
			Source: source, Created: time.Now()}
		if err := f.volumes.put(*r); err != nil {
			return nil, err
		}
	}
	if from == nil {
		err = f.createSubvolume(*r)
	} else {
		err = f.cloneSubvolume(*r, *from)
	}
	if err != nil && status.Code(err) != codes.Aborted {
		return nil, errors.Join(err, f.undo(*r))
	}
	return r, err
}

// undo removes a subvolume that could not be completed, and then its record: what cannot be removed stays known.
func (f *filesystem) undo(r record) error {
	if err := ignoreNotFound(f.ForceRemoveSubVolume(f.name, group, volumePrefix+r.UUID)); err != nil {
		return err
	}
	return f.volumes.remove(r)
}

// cloneSource is the snapshot that a clone is made from: of a subvolume, or one to be made of it for the clone alone.
type cloneSource struct {
	subvolume, snapshot string
	temporary           bool
}

// source finds what a volume is to be made from; nil without a source.
func (c *CephFS) source(req *csi.CreateVolumeRequest, creds credentials) (*cloneSource, error) {
	id := sourceID(req)
	switch {
	case req.GetVolumeContentSource() == nil:
		return nil, nil
	case req.GetVolumeContentSource().GetVolume() != nil:
		f, r, err := c.openVolume(id, creds)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return nil, notFound("volume %s not found", id)
		}
		f.close()
		return &cloneSource{subvolume: volumePrefix + r.UUID, temporary: true}, nil
	default:
		f, r, err := c.openSnapshot(id, creds)
		if err != nil {
			return nil, err
		}
		if r == nil {
			return nil, notFound("snapshot %s not found", id)
		}
		f.close()
		parent, err := parseID(r.Source)
		return &cloneSource{subvolume: volumePrefix + parent.uuid, snapshot: snapshotPrefix + r.UUID}, err
	}
}

// createSubvolume is idempotent.
func (f *filesystem) createSubvolume(r record) error {
	create := func() error {
		return f.CreateSubVolume(f.name, group, volumePrefix+r.UUID, &admin.SubVolumeOptions{
			Size: admin.ByteCount(r.Size), PoolLayout: r.DataPool, Mode: 0o777})
	}
	err := create()
	if errors.Is(err, rados.ErrNotFound) { // the group: the first volume makes it
		if err = f.CreateSubVolumeGroup(f.name, group, nil); err == nil {
			err = create()
		}
	}
	return err
}

// cloneSubvolume starts the mgr's copy, or looks how far it is.
func (f *filesystem) cloneSubvolume(r record, from cloneSource) error {
	name := volumePrefix + r.UUID
	if from.temporary {
		from.snapshot = name
	}
	st, err := f.CloneStatus(f.name, group, name)
	if errors.Is(err, rados.ErrNotFound) {
		if err := f.startClone(r, from); err != nil {
			return err
		}
		st, err = f.CloneStatus(f.name, group, name)
	}
	if err != nil {
		return err
	}
	switch st.State {
	case admin.ClonePending, admin.CloneInProgress:
		return status.Errorf(codes.Aborted, "clone is in progress for %s", name)
	case admin.CloneComplete:
	default:
		err := fmt.Errorf("clone %s ended as %s", name, st.State)
		return errors.Join(err, f.ForceRemoveSubVolume(f.name, group, name), f.endClone(from))
	}
	if _, err := f.ResizeSubVolume(f.name, group, name, admin.ByteCount(r.Size), true); err != nil {
		return err
	}
	return f.endClone(from)
}

func (f *filesystem) startClone(r record, from cloneSource) error {
	if from.temporary {
		if err := f.CreateSubVolumeSnapshot(f.name, group, from.subvolume, from.snapshot); err != nil {
			return err
		}
	}
	err := f.CloneSubVolumeSnapshot(f.name, group, from.subvolume, from.snapshot, volumePrefix+r.UUID,
		&admin.CloneOptions{TargetGroup: group, PoolLayout: r.DataPool})
	if err != nil {
		return errors.Join(err, f.endClone(from))
	}
	return nil
}

// endClone removes the snapshot that a clone of a volume has made.
func (f *filesystem) endClone(from cloneSource) error {
	if !from.temporary {
		return nil
	}
	return ignoreNotFound(f.RemoveSubVolumeSnapshot(f.name, group, from.subvolume, from.snapshot))
}

func ignoreNotFound(err error) error {
	if errors.Is(err, rados.ErrNotFound) {
		return nil
	}
	return err
}

// DeleteVolume implements csi.ControllerServer. Snapshots of the volume stay.
func (c *CephFS) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("empty volume ID in request")
	}
	creds, err := adminCredentials(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	release, err := c.volumes.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	f, r, err := c.openVolume(req.GetVolumeId(), creds)
	if err != nil || r == nil {
		return &csi.DeleteVolumeResponse{}, internal(err)
	}
	defer f.close()
	releaseName, err := c.volumes.Volume(r.Name)
	if err != nil {
		return nil, err
	}
	defer releaseName()
	err = f.RemoveSubVolumeWithFlags(f.name, group, volumePrefix+r.UUID, admin.SubVolRmFlags{Force: true,
		RetainSnapshots: true})
	if err := ignoreNotFound(err); err != nil {
		return nil, internal(err)
	}
	return &csi.DeleteVolumeResponse{}, internal(f.volumes.remove(*r))
}

// CreateSnapshot implements csi.ControllerServer.
func (c *CephFS) CreateSnapshot(_ context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse,
	error) {
	creds, release, err := startSnapshot(&c.snaps, req, adminCredentials)
	if err != nil {
		return nil, err
	}
	defer release()
	f, parent, err := c.openVolume(req.GetSourceVolumeId(), creds)
	if err != nil {
		return nil, internal(err)
	}
	if parent == nil {
		return nil, notFound("volume %s not found", req.GetSourceVolumeId())
	}
	defer f.close()
	releaseVolume, err := c.volumes.Volume(req.GetSourceVolumeId())
	if err != nil {
		return nil, err
	}
	defer releaseVolume()
	r, err := reserveSnapshot(f.snaps, req, *parent)
	if err != nil {
		return nil, internal(err)
	}
	if err := f.snapshot(r, volumePrefix+parent.UUID); err != nil {
		return nil, internal(errors.Join(err, f.snaps.remove(*r)))
	}
	return snapshotAnswer(*r, f.volumeID(*r)), nil
}

// snapshot makes the snapshot, if it does not exist, and sets when it was made.
func (f *filesystem) snapshot(r *record, subvolume string) error {
	name := snapshotPrefix + r.UUID
	info, err := f.SubVolumeSnapshotInfo(f.name, group, subvolume, name)
	if errors.Is(err, rados.ErrNotFound) {
		if err := f.CreateSubVolumeSnapshot(f.name, group, subvolume, name); err != nil {
			return err
		}
		info, err = f.SubVolumeSnapshotInfo(f.name, group, subvolume, name)
	}
	if err == nil {
		r.Created = info.CreatedAt.Time
	}
	return err
}

// startSnapshot validates a request, as both drivers do, and locks the snapshot's name.
func startSnapshot(locks *csikit.Locks, req *csi.CreateSnapshotRequest,
	from func(map[string]string) (credentials, error)) (credentials, func(), error) {
	if req.GetName() == "" {
		return credentials{}, nil, invalid("snapshot Name cannot be empty")
	}
	if req.GetSourceVolumeId() == "" {
		return credentials{}, nil, invalid("source Volume ID cannot be empty")
	}
	creds, err := from(req.GetSecrets())
	if err != nil {
		return creds, nil, err
	}
	switch o, err := parseID(req.GetSourceVolumeId()); {
	case req.GetParameters()["clusterID"] == "":
		return creds, nil, status.Error(codes.Internal, "clusterID must be set")
	case err == nil && o.cluster != req.GetParameters()["clusterID"]:
		return creds, nil, invalid("requested cluster id %s not matching subvolume cluster id %s",
			req.GetParameters()["clusterID"], o.cluster)
	}
	release, err := locks.Snapshot(req.GetName())
	return creds, release, err
}

// reserveSnapshot returns the record of a snapshot, a new one if there is none.
func reserveSnapshot(j journal, req *csi.CreateSnapshotRequest, parent record) (*record, error) {
	r, err := j.find(req.GetName())
	if err != nil {
		return nil, err
	}
	if r == nil {
		r = &record{Name: req.GetName(), UUID: newUUID(), Size: parent.Size, FS: parent.FS, DataPool: parent.DataPool,
			Source: req.GetSourceVolumeId(), Created: time.Now()}
		return r, j.put(*r)
	}
	if r.Source != req.GetSourceVolumeId() {
		return nil, status.Errorf(codes.AlreadyExists, "snapshot %s exists of volume %s", r.Name, r.Source)
	}
	return r, nil
}

func snapshotAnswer(r record, id string) *csi.CreateSnapshotResponse {
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{SnapshotId: id, SourceVolumeId: r.Source,
		SizeBytes: r.Size, CreationTime: timestamppb.New(r.Created), ReadyToUse: true}}
}

// DeleteSnapshot implements csi.ControllerServer.
func (c *CephFS) DeleteSnapshot(_ context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse,
	error) {
	creds, err := adminCredentials(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetSnapshotId() == "" {
		return nil, invalid("snapshot ID cannot be empty")
	}
	release, err := c.snaps.Snapshot(req.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	defer release()
	f, r, err := c.openSnapshot(req.GetSnapshotId(), creds)
	if err != nil || r == nil {
		return &csi.DeleteSnapshotResponse{}, internal(err)
	}
	defer f.close()
	releaseName, err := c.snaps.Snapshot(r.Name)
	if err != nil {
		return nil, err
	}
	defer releaseName()
	return &csi.DeleteSnapshotResponse{}, internal(f.deleteSnapshot(*r))
}

func (f *filesystem) deleteSnapshot(r record) error {
	parent, err := parseID(r.Source)
	if err != nil {
		return err
	}
	subvolume, name := volumePrefix+parent.uuid, snapshotPrefix+r.UUID
	info, err := f.SubVolumeSnapshotInfo(f.name, group, subvolume, name)
	if err == nil && info.HasPendingClones == "yes" {
		return status.Errorf(codes.FailedPrecondition, "snapshot %s has pending clones", name)
	}
	if err := ignoreNotFound(err); err != nil {
		return err
	}
	if err := ignoreNotFound(f.RemoveSubVolumeSnapshot(f.name, group, subvolume, name)); err != nil {
		return err
	}
	return f.snaps.remove(r)
}

// ControllerExpandVolume implements csi.ControllerServer. Mounts see the new quota.
func (c *CephFS) ControllerExpandVolume(_ context.Context,
	req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	creds, release, err := startExpand(&c.volumes, req, adminCredentials)
	if err != nil {
		return nil, err
	}
	defer release()
	f, r, err := c.openVolume(req.GetVolumeId(), creds)
	if err != nil {
		return nil, internal(err)
	}
	if r == nil {
		return nil, notFound("volume %s not found", req.GetVolumeId())
	}
	defer f.close()
	r.Size = max(r.Size, roundSize(req.GetCapacityRange().GetRequiredBytes()))
	_, err = f.ResizeSubVolume(f.name, group, volumePrefix+r.UUID, admin.ByteCount(r.Size), true)
	if err == nil {
		err = f.volumes.put(*r)
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: r.Size}, internal(err)
}

// startExpand validates a request, as both drivers do, and locks the volume.
func startExpand(locks *csikit.Locks, req *csi.ControllerExpandVolumeRequest,
	from func(map[string]string) (credentials, error)) (credentials, func(), error) {
	if req.GetVolumeId() == "" {
		return credentials{}, nil, invalid("empty volume ID in request")
	}
	if req.GetCapacityRange() == nil {
		return credentials{}, nil, invalid("CapacityRange cannot be empty")
	}
	creds, err := from(req.GetSecrets())
	if err != nil {
		return creds, nil, err
	}
	release, err := locks.Volume(req.GetVolumeId())
	return creds, release, err
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (c *CephFS) ValidateVolumeCapabilities(_ context.Context,
	req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	return validateCapabilities(req, false, func() (bool, error) {
		creds, err := adminCredentials(req.GetSecrets())
		if err != nil {
			return false, err
		}
		f, r, err := c.openVolume(req.GetVolumeId(), creds)
		if r != nil {
			f.close()
		}
		return r != nil, err
	})
}

// validateCapabilities confirms capabilities; block devices only where they are offered.
func validateCapabilities(req *csi.ValidateVolumeCapabilitiesRequest, block bool,
	exists func() (bool, error)) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if req.GetVolumeId() == "" || len(req.GetVolumeCapabilities()) == 0 {
		return nil, invalid("volume ID or capabilities missing in request")
	}
	if found, err := exists(); err != nil {
		return nil, internal(err)
	} else if !found {
		return nil, notFound("volume %s not found", req.GetVolumeId())
	}
	for _, capability := range req.GetVolumeCapabilities() {
		if capability.GetBlock() != nil && !block {
			return &csi.ValidateVolumeCapabilitiesResponse{Message: "block volume not supported"}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeCapabilities: req.GetVolumeCapabilities()}}, nil
}
