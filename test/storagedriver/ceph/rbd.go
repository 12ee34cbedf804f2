package ceph

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/ceph/go-ceph/rados"
	"github.com/ceph/go-ceph/rbd"
	"github.com/ceph/go-ceph/rbd/admin"
	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/test/storagedriver/csikit"
)

// RBDName is the name of the driver for RBD.
const RBDName = "rbd.csi.ceph.com"

// RBD is the controller of RBD: a volume is an image, a snapshot an image cloned from one, as ceph-csi makes them.
type RBD struct {
	csi.UnimplementedControllerServer
	clusters       *Clusters
	node           *RBDNode
	volumes, snaps csikit.Locks
}

// NewRBD returns the controller. Images that the node has staged are frozen for their snapshots.
func NewRBD(c *Clusters, node *RBDNode) *RBD { return &RBD{clusters: c, node: node} }

// pool is a pool of images with a user's connection to its cluster.
type pool struct {
	conn    *rados.Conn
	io      *rados.IOContext
	cluster string
	name    string
	volumes journal
	snaps   journal
}

func (p *pool) close() { p.io.Destroy() }

func (p *pool) id(r record) string { return objectID{p.cluster, p.io.GetPoolID(), r.UUID}.String() }

// open finds a pool by name or, without one, by id.
func (c *Clusters) open(cluster, name string, id int64, creds credentials) (*pool, error) {
	conn, err := c.connect(cluster, creds)
	if err != nil {
		return nil, err
	}
	if name == "" {
		if name, err = conn.GetPoolByID(id); err != nil {
			return nil, fmt.Errorf("pool %d: %w", id, err)
		}
	}
	io, err := conn.OpenIOContext(name)
	if err != nil {
		return nil, fmt.Errorf("pool %s: %w", name, err)
	}
	return &pool{conn: conn, io: io, cluster: cluster, name: name, volumes: journal{io, volumesObject},
		snaps: journal{io, snapshotsObject}}, nil
}

// find returns the pool and the record of a volume or snapshot; the record is nil if there is none.
func (c *Clusters) find(id string, creds credentials, of func(*pool) journal) (*pool, *record, error) {
	o, err := parseID(id)
	if err != nil {
		return nil, nil, nil
	}
	p, err := c.open(o.cluster, "", o.location, creds)
	if errors.Is(err, rados.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	r, err := of(p).lookUp(o.uuid)
	if err != nil || r == nil {
		p.close()
		return nil, nil, err
	}
	return p, r, nil
}

func ofVolumes(p *pool) journal   { return p.volumes }
func ofSnapshots(p *pool) journal { return p.snaps }

// ControllerGetCapabilities implements csi.ControllerServer.
func (d *RBD) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return csikit.ControllerCapabilities(
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_VOLUME,
		csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT,
		csi.ControllerServiceCapability_RPC_EXPAND_VOLUME,
		csi.ControllerServiceCapability_RPC_CLONE_VOLUME,
		csi.ControllerServiceCapability_RPC_SINGLE_NODE_MULTI_WRITER), nil
}

func checkRBDCreate(req *csi.CreateVolumeRequest) error {
	if err := checkCreate(req); err != nil {
		return err
	}
	if req.GetParameters()["clusterID"] == "" {
		return invalid("missing or empty cluster ID to provision volume from")
	}
	if req.GetParameters()["pool"] == "" {
		return invalid("missing or empty pool name to provision volume from")
	}
	if dataPool, ok := req.GetParameters()["dataPool"]; ok && dataPool == "" {
		return invalid("empty datapool name to provision volume from")
	}
	for _, capability := range req.GetVolumeCapabilities() {
		mode := capability.GetAccessMode().GetMode()
		if capability.GetBlock() == nil && (mode == csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER ||
			mode == csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER) {
			return invalid("multi node access modes are only supported on rbd `block` type volumes")
		}
	}
	return nil
}

// CreateVolume implements csi.ControllerServer.
func (d *RBD) CreateVolume(_ context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	if err := checkRBDCreate(req); err != nil {
		return nil, err
	}
	creds, err := userCredentials(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	size, err := requestedSize(req.GetCapacityRange())
	if err != nil {
		return nil, err
	}
	release, err := d.volumes.Volume(req.GetName())
	if err != nil {
		return nil, err
	}
	defer release()
	params := req.GetParameters()
	if err := d.clusters.known(params["clusterID"]); err != nil {
		return nil, invalid("%v", err)
	}
	p, err := d.clusters.open(params["clusterID"], params["pool"], 0, creds)
	if err != nil {
		return nil, internal(err)
	}
	defer p.close()
	r, err := d.create(p, req, creds, size)
	if err != nil {
		return nil, internal(err)
	}
	volumeContext := map[string]string{"journalPool": p.name, "imageName": volumePrefix + r.UUID}
	for k, v := range params {
		volumeContext[k] = v
	}
	return &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: p.id(*r), CapacityBytes: r.Size,
		ContentSource: req.GetVolumeContentSource(), VolumeContext: volumeContext}}, nil
}

func (d *RBD) create(p *pool, req *csi.CreateVolumeRequest, creds credentials, size int64) (*record, error) {
	source := sourceID(req)
	r, err := p.volumes.find(req.GetName())
	if err != nil {
		return nil, err
	}
	if r != nil && (r.Size != size || r.Source != source) {
		return nil, status.Errorf(codes.AlreadyExists, "volume %s exists with size %d and source %q", r.Name, r.Size,
			r.Source)
	}
	if r == nil {
		r = &record{Name: req.GetName(), UUID: newUUID(), Size: size, DataPool: req.GetParameters()["dataPool"],
			Source: source, Created: time.Now()}
		if err := p.volumes.put(*r); err != nil {
			return nil, err
		}
	}
	if err := d.createImage(p, *r, req, creds); err != nil {
		return nil, errors.Join(err, p.undo(p.volumes, *r, volumePrefix+r.UUID, ""))
	}
	return r, nil
}

// undo removes an image that could not be completed, and then its record: what cannot be removed stays known.
func (p *pool) undo(j journal, r record, image, snapshot string) error {
	if err := p.remove(image, snapshot); err != nil {
		return err
	}
	return j.remove(r)
}

// createImage is idempotent.
func (d *RBD) createImage(p *pool, r record, req *csi.CreateVolumeRequest, creds credentials) error {
	name := volumePrefix + r.UUID
	image, err := rbd.OpenImage(p.io, name, rbd.NoSnapshot)
	if err == nil {
		return errors.Join(growImage(image, r.Size), image.Close())
	}
	if !errors.Is(err, rbd.ErrNotFound) {
		return err
	}
	options, err := imageOptions(req.GetParameters(), r.Source != "")
	if err != nil {
		return err
	}
	defer options.Destroy()
	switch {
	case r.Source == "":
		return rbd.CreateImage(p.io, name, uint64(r.Size), options)
	case req.GetVolumeContentSource().GetSnapshot() != nil:
		from, snap, err := d.clusters.find(r.Source, creds, ofSnapshots)
		if err != nil {
			return err
		}
		if snap == nil {
			return notFound("snapshot %s not found", r.Source)
		}
		defer from.close()
		err = rbd.CloneImage(from.io, snapshotPrefix+snap.UUID, snapshotPrefix+snap.UUID, p.io, name, options)
		return errors.Join(err, p.grow(name, r.Size, err))
	default:
		from, parent, err := d.clusters.find(r.Source, creds, ofVolumes)
		if err != nil {
			return err
		}
		if parent == nil {
			return notFound("volume %s not found", r.Source)
		}
		defer from.close()
		err = d.cloneOf(from, parent.UUID, p, name, options)
		return errors.Join(err, p.grow(name, r.Size, err))
	}
}

// cloneOf clones an image by a snapshot that lasts no longer than is needed; the clone keeps what it needs of it.
func (d *RBD) cloneOf(from *pool, uuid string, to *pool, name string, options *rbd.ImageOptions) error {
	image, err := rbd.OpenImage(from.io, volumePrefix+uuid, rbd.NoSnapshot)
	if err != nil {
		return err
	}
	var snap *rbd.Snapshot
	err = d.node.frozen(uuid, func() error {
		snap, err = image.CreateSnapshot(name)
		return err
	})
	if err == nil {
		err = rbd.CloneImage(from.io, volumePrefix+uuid, name, to.io, name, options)
	}
	if snap != nil {
		err = errors.Join(err, snap.Remove())
	}
	return errors.Join(err, image.Close())
}

// grow grows an image unless creating it has failed.
func (p *pool) grow(name string, size int64, failed error) error {
	if failed != nil {
		return nil
	}
	image, err := rbd.OpenImage(p.io, name, rbd.NoSnapshot)
	if err != nil {
		return err
	}
	return errors.Join(growImage(image, size), image.Close())
}

func growImage(image *rbd.Image, size int64) error {
	now, err := image.GetSize()
	if err != nil || now >= uint64(size) {
		return err
	}
	return image.Resize(uint64(size))
}

// imageOptions are those of a class; clones are of format 2, whose parents' snapshots need no protection.
func imageOptions(params map[string]string, clone bool) (*rbd.ImageOptions, error) {
	options := rbd.NewRbdImageOptions()
	features := rbd.FeatureSetFromNames([]string{rbd.FeatureNameLayering})
	if names := params["imageFeatures"]; names != "" {
		features = rbd.FeatureSetFromNames(strings.Split(names, ","))
	}
	err := options.SetUint64(rbd.ImageOptionFeatures, uint64(features))
	if clone { // refused for others
		err = errors.Join(err, options.SetUint64(rbd.ImageOptionCloneFormat, 2))
	}
	if dataPool := params["dataPool"]; dataPool != "" {
		err = errors.Join(err, options.SetString(rbd.ImageOptionDataPool, dataPool))
	}
	return options, err
}

// DeleteVolume implements csi.ControllerServer. As with ceph-csi the image goes to the trash, and a task of the mgr
// removes it: the answer comes before its space is free.
func (d *RBD) DeleteVolume(_ context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("empty volume ID in request")
	}
	creds, err := userCredentials(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	release, err := d.volumes.Volume(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	defer release()
	p, r, err := d.clusters.find(req.GetVolumeId(), creds, ofVolumes)
	if err != nil || r == nil {
		return &csi.DeleteVolumeResponse{}, internal(err)
	}
	defer p.close()
	releaseName, err := d.volumes.Volume(r.Name)
	if err != nil {
		return nil, err
	}
	defer releaseName()
	if err := p.remove(volumePrefix+r.UUID, ""); err != nil {
		return nil, internal(err)
	}
	return &csi.DeleteVolumeResponse{}, internal(p.volumes.remove(*r))
}

// remove moves an image to the trash, without a snapshot of it, and has the mgr remove it.
func (p *pool) remove(name, snapshot string) error {
	image, err := rbd.OpenImage(p.io, name, rbd.NoSnapshot)
	if errors.Is(err, rbd.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	id, err := p.toTrash(image, snapshot)
	if err := errors.Join(err, image.Close()); err != nil {
		return err
	}
	if err := rbd.GetImage(p.io, name).Trash(0); err != nil {
		return err
	}
	_, err = admin.NewFromConn(p.conn).Task().AddTrashRemove(admin.NewImageSpec(p.name, "", id))
	return err
}

// inUse is how long the removal of an image waits for others to close it: the mgr has it open while it removes a clone
// that was in the trash.
const inUse = 10 * time.Second

// toTrash checks that an image is unused, removes a snapshot of it and returns its id.
func (p *pool) toTrash(image *rbd.Image, snapshot string) (string, error) {
	for until := time.Now().Add(inUse); ; time.Sleep(inUse / 50) {
		watchers, err := image.ListWatchers()
		if err != nil {
			return "", err
		}
		if len(watchers) <= 1 { // one is our own
			break
		}
		if time.Now().After(until) {
			return "", fmt.Errorf("rbd image %s/%s is still being used", p.name, image.GetName())
		}
	}
	if snapshot != "" {
		err := image.GetSnapshot(snapshot).Remove()
		if err != nil && !errors.Is(err, rbd.ErrNotFound) {
			return "", err
		}
	}
	return image.GetId()
}

// CreateSnapshot implements csi.ControllerServer: a snapshot, a clone of it, a snapshot of that, and the first is
// removed.
func (d *RBD) CreateSnapshot(_ context.Context, req *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	creds, release, err := startSnapshot(&d.snaps, req, userCredentials)
	if err != nil {
		return nil, err
	}
	defer release()
	p, parent, err := d.clusters.find(req.GetSourceVolumeId(), creds, ofVolumes)
	if err != nil {
		return nil, internal(err)
	}
	if parent == nil {
		return nil, notFound("volume %s not found", req.GetSourceVolumeId())
	}
	defer p.close()
	r, err := reserveSnapshot(p.snaps, req, *parent)
	if err != nil {
		return nil, internal(err)
	}
	if err := d.snapshot(p, r, parent.UUID); err != nil {
		return nil, internal(errors.Join(err, p.undo(p.snaps, *r, snapshotPrefix+r.UUID, snapshotPrefix+r.UUID)))
	}
	return snapshotAnswer(*r, p.id(*r)), nil
}

// snapshot is idempotent.
func (d *RBD) snapshot(p *pool, r *record, uuid string) error {
	name := snapshotPrefix + r.UUID
	image, err := rbd.OpenImage(p.io, name, rbd.NoSnapshot)
	if errors.Is(err, rbd.ErrNotFound) {
		options, err := imageOptions(map[string]string{"dataPool": r.DataPool,
			"imageFeatures": "layering,deep-flatten"}, true)
		if err != nil {
			return err
		}
		defer options.Destroy()
		if err := d.cloneOf(p, uuid, p, name, options); err != nil {
			return err
		}
		image, err = rbd.OpenImage(p.io, name, rbd.NoSnapshot)
		if err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	_, err = image.CreateSnapshot(name)
	if errors.Is(err, rbd.ErrExist) {
		err = nil
	}
	made, timeErr := image.GetCreateTimestamp()
	if timeErr == nil {
		r.Created = time.Unix(made.Sec, made.Nsec)
	}
	return errors.Join(err, timeErr, image.Close())
}

// DeleteSnapshot implements csi.ControllerServer.
func (d *RBD) DeleteSnapshot(_ context.Context, req *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	creds, err := userCredentials(req.GetSecrets())
	if err != nil {
		return nil, err
	}
	if req.GetSnapshotId() == "" {
		return nil, invalid("snapshot ID cannot be empty")
	}
	release, err := d.snaps.Snapshot(req.GetSnapshotId())
	if err != nil {
		return nil, err
	}
	defer release()
	p, r, err := d.clusters.find(req.GetSnapshotId(), creds, ofSnapshots)
	if err != nil || r == nil {
		return &csi.DeleteSnapshotResponse{}, internal(err)
	}
	defer p.close()
	releaseName, err := d.snaps.Snapshot(r.Name)
	if err != nil {
		return nil, err
	}
	defer releaseName()
	if err := p.remove(snapshotPrefix+r.UUID, snapshotPrefix+r.UUID); err != nil {
		return nil, internal(err)
	}
	return &csi.DeleteSnapshotResponse{}, internal(p.snaps.remove(*r))
}

// ControllerExpandVolume implements csi.ControllerServer. The node then grows the device and the file system.
func (d *RBD) ControllerExpandVolume(_ context.Context,
	req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	creds, release, err := startExpand(&d.volumes, req, userCredentials)
	if err != nil {
		return nil, err
	}
	defer release()
	p, r, err := d.clusters.find(req.GetVolumeId(), creds, ofVolumes)
	if err != nil {
		return nil, internal(err)
	}
	if r == nil {
		return nil, notFound("volume %s not found", req.GetVolumeId())
	}
	defer p.close()
	r.Size = max(r.Size, roundSize(req.GetCapacityRange().GetRequiredBytes()))
	err = p.grow(volumePrefix+r.UUID, r.Size, nil)
	if err == nil {
		err = p.volumes.put(*r)
	}
	return &csi.ControllerExpandVolumeResponse{CapacityBytes: r.Size,
		NodeExpansionRequired: req.GetVolumeCapability().GetBlock() == nil}, internal(err)
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (d *RBD) ValidateVolumeCapabilities(_ context.Context,
	req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	return validateCapabilities(req, true, func() (bool, error) {
		creds, err := userCredentials(req.GetSecrets())
		if err != nil {
			return false, err
		}
		p, r, err := d.clusters.find(req.GetVolumeId(), creds, ofVolumes)
		if r != nil {
			p.close()
		}
		return r != nil, err
	})
}
