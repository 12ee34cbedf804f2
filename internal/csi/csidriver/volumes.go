package csidriver

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// CreateVolume implements csi.ControllerServer.
func (d *driver) CreateVolume(ctx context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	v, err := d.newVolume(req)
	if err != nil {
		return nil, err
	}
	keys := []string{v.ID}
	if v.Source != nil {
		keys = append(keys, v.Source.Snapshot+v.Source.Volume)
	}
	unlock, err := d.locks.lock(ctx, keys...)
	if err != nil {
		return nil, err
	}
	defer unlock()

	if old, ok := d.vols.get(v.ID); ok && old.Phase == ready {
		if err := sameVolume(old, v, req.GetCapacityRange()); err != nil {
			return nil, err
		}
		return &csi.CreateVolumeResponse{Volume: old.proto()}, nil
	}
	if err := d.makeVolume(context.WithoutCancel(ctx), &v, req.GetCapacityRange()); err != nil {
		return nil, err
	}
	return &csi.CreateVolumeResponse{Volume: v.proto()}, nil
}

// newVolume converts a request to a record without a size and rejects invalid requests.
func (d *driver) newVolume(req *csi.CreateVolumeRequest) (volume, error) {
	if req.GetName() == "" {
		return volume{}, invalid("the request has no volume id")
	}
	if err := d.checkCapabilities(req.GetVolumeCapabilities()); err != nil {
		return volume{}, err
	}
	known := d.backend.parameters()
	for _, p := range slices.Sorted(maps.Keys(req.GetParameters())) {
		if !slices.Contains(known, p) && !strings.HasPrefix(p, "csi.storage.k8s.io/") {
			return volume{}, invalid("unknown parameter %[2]q of backend %[1]s: want one of %[3]s", d.opts.Backend, p,
				orNone(known))
		}
	}
	v := volume{
		ID: objectID("vol", req.GetName()), Name: req.GetName(), Params: req.GetParameters(), Mutable: req.GetMutableParameters(),
		Block: req.GetVolumeCapabilities()[0].GetBlock() != nil,
	}
	for _, c := range req.GetVolumeCapabilities() {
		if fs := c.GetMount().GetFsType(); fs != "" {
			v.FSType = fs
		}
	}
	if len(v.Mutable) > 0 {
		if err := d.checkMutable(v.Mutable); err != nil {
			return volume{}, err
		}
	}
	if src := req.GetVolumeContentSource(); src != nil {
		v.Source = &source{Snapshot: src.GetSnapshot().GetSnapshotId(), Volume: src.GetVolume().GetVolumeId()}
		if v.Source.Snapshot+v.Source.Volume == "" {
			return volume{}, invalid("the content source names neither a snapshot nor a volume")
		}
	}
	return v, nil
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// sameVolume fails unless the existing volume satisfies the request.
func sameVolume(old, wanted volume, r *csi.CapacityRange) error {
	differs := func(what string) error {
		return status.Errorf(codes.AlreadyExists, "volume %q exists with another %s", old.Name, what)
	}
	switch {
	case old.Name != wanted.Name:
		return status.Errorf(codes.Internal, "names %q and %q have the same hash: choose another name", old.Name,
			wanted.Name)
	case old.Size < r.GetRequiredBytes() || r.GetLimitBytes() > 0 && old.Size > r.GetLimitBytes():
		return differs("size")
	case old.Block != wanted.Block:
		return differs("access type")
	case wanted.FSType != "" && old.FSType != "" && old.FSType != wanted.FSType:
		return differs("file system")
	case !maps.Equal(old.Params, wanted.Params):
		return differs("set of parameters")
	case (old.Source == nil) != (wanted.Source == nil) || old.Source != nil && *old.Source != *wanted.Source:
		return differs("content source")
	}
	return nil
}

// makeVolume sizes, reserves and creates a volume whose locks are held.
func (d *driver) makeVolume(ctx context.Context, v *volume, r *csi.CapacityRange) error {
	src, err := d.origin(v)
	if err != nil {
		return err
	}
	smallest, granularity, err := d.backend.shape(v, src)
	if err != nil {
		return err
	}
	if d.opts.RoundTo > 0 {
		granularity = d.opts.RoundTo
	}
	if src != nil && r.GetRequiredBytes() == 0 {
		smallest = max(smallest, src.size())
		r = &csi.CapacityRange{RequiredBytes: smallest, LimitBytes: r.GetLimitBytes()}
	}
	if v.Size, err = resolveSize(r.GetRequiredBytes(), r.GetLimitBytes(), smallest, granularity); err != nil {
		return err
	}
	if src != nil && v.Size < src.size() {
		return status.Errorf(codes.OutOfRange, "%d bytes cannot hold the content source of %d bytes", v.Size,
			src.size())
	}
	if err := d.reserve(v.Size); err != nil {
		return err
	}
	if err := d.createReserved(ctx, v, src); err != nil {
		return withUndoErrors(err, d.reserve(-v.Size))
	}
	return nil
}

// createReserved creates a volume. The intent is written first, so that a crash leaves a record to undo.
func (d *driver) createReserved(ctx context.Context, v *volume, src *origin) error {
	if d.physical() {
		intent := *v
		intent.Phase = creating
		if err := d.vols.put(v.ID, intent); err != nil {
			return err
		}
	}
	err := d.backend.create(ctx, v, src)
	if err == nil {
		err = d.vols.put(v.ID, *v)
	}
	if err != nil {
		return withUndoErrors(err, d.backend.remove(ctx, *v), d.vols.delete(v.ID))
	}
	return nil
}

// physical reports whether the backend does work that a crash can leave half done.
func (d *driver) physical() bool { return d.opts.Backend != "null" }

func (d *driver) origin(v *volume) (*origin, error) {
	switch {
	case v.Source == nil:
		return nil, nil
	case v.Source.Snapshot != "":
		s, ok := d.snaps.get(v.Source.Snapshot)
		if !ok || s.Phase != ready {
			return nil, status.Errorf(codes.NotFound, "snapshot %q not found", v.Source.Snapshot)
		}
		return &origin{snapshot: &s}, nil
	}
	src, err := d.volumeOrNotFound(v.Source.Volume)
	return &origin{volume: &src}, err
}

func (o *origin) size() int64 {
	if o.snapshot != nil {
		return o.snapshot.Size
	}
	return o.volume.Size
}

// DeleteVolume implements csi.ControllerServer.
func (d *driver) DeleteVolume(ctx context.Context, req *csi.DeleteVolumeRequest) (*csi.DeleteVolumeResponse, error) {
	id := req.GetVolumeId()
	if id == "" {
		return nil, invalid("the request has no volume id")
	}
	unlock, err := d.locks.lock(ctx, id)
	if err != nil {
		return nil, err
	}
	defer unlock()
	v, ok := d.vols.get(id)
	if !ok {
		return &csi.DeleteVolumeResponse{}, nil
	}
	if v.Attached != nil || len(v.Staged)+len(v.Published) > 0 {
		return nil, status.Errorf(codes.FailedPrecondition,
			"volume %s is in use: attached %t, staged at %d and published at %d paths",
			id, v.Attached != nil, len(v.Staged), len(v.Published))
	}
	if d.physical() && v.Phase == ready {
		v.Phase = deleting
		if err := d.vols.put(id, v); err != nil {
			return nil, err
		}
	}
	if err := d.backend.remove(context.WithoutCancel(ctx), v); err != nil {
		return nil, err
	}
	if err := d.vols.delete(id); err != nil {
		return nil, err
	}
	return &csi.DeleteVolumeResponse{}, d.reserve(-v.Size)
}

// ValidateVolumeCapabilities implements csi.ControllerServer.
func (d *driver) ValidateVolumeCapabilities(_ context.Context,
	req *csi.ValidateVolumeCapabilitiesRequest) (*csi.ValidateVolumeCapabilitiesResponse, error) {
	if req.GetVolumeId() == "" || len(req.GetVolumeCapabilities()) == 0 {
		return nil, invalid("the request lacks a volume id or capabilities")
	}
	v, err := d.volumeOrNotFound(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	for _, c := range req.GetVolumeCapabilities() {
		if err := d.fits(v, c); err != nil {
			return &csi.ValidateVolumeCapabilitiesResponse{Message: status.Convert(err).Message()}, nil
		}
	}
	return &csi.ValidateVolumeCapabilitiesResponse{Confirmed: &csi.ValidateVolumeCapabilitiesResponse_Confirmed{
		VolumeContext: req.GetVolumeContext(), VolumeCapabilities: req.GetVolumeCapabilities(),
		Parameters: req.GetParameters(), MutableParameters: req.GetMutableParameters(),
	}}, nil
}
