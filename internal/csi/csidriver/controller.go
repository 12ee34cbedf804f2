package csidriver

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// withUndoErrors adds the errors of undoing and keeps the code of the first error.
func withUndoErrors(err error, undoing ...error) error {
	also := errors.Join(undoing...)
	if also == nil {
		return err
	}
	s := status.Convert(toStatus(err))
	return status.Errorf(s.Code(), "%s; undoing it failed too: %v", s.Message(), also)
}

// ControllerPublishVolume implements csi.ControllerServer.
func (d *driver) ControllerPublishVolume(ctx context.Context,
	req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	a, ok := d.backend.(attacher)
	if !ok {
		return d.UnimplementedControllerServer.ControllerPublishVolume(ctx, req)
	}
	if req.GetVolumeId() == "" || req.GetNodeId() == "" || req.GetVolumeCapability() == nil {
		return nil, invalid("the request lacks a volume id, a node id or a capability")
	}
	resp := &csi.ControllerPublishVolumeResponse{}
	err := d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		if err := d.checkAttach(*v, req); err != nil {
			return err
		}
		if v.Attached == nil {
			v.Attached = &attachment{ReadOnly: req.GetReadonly(),
				Mode: req.GetVolumeCapability().GetAccessMode().GetMode().String()}
			if err := a.attach(ctx, v); err != nil {
				return err
			}
		}
		v.Attached = v.Attached.with(req.GetNodeId())
		if v.Attached.Device != "" {
			resp.PublishContext = map[string]string{"devicePath": v.Attached.Device}
		}
		return nil
	})
	return resp, err
}

// checkAttach validates an attachment.
func (d *driver) checkAttach(v volume, req *csi.ControllerPublishVolumeRequest) error {
	node := req.GetNodeId()
	if !slices.Contains(d.nodeIDs(), node) {
		return status.Errorf(codes.NotFound, "node %q not found: want one of %s", node, strings.Join(d.nodeIDs(), ", "))
	}
	if err := d.fits(v, req.GetVolumeCapability()); err != nil {
		return err
	}
	if v.Attached == nil {
		return nil
	}
	mode, nodes := req.GetVolumeCapability().GetAccessMode().GetMode(), d.nodesOf(v)
	if !slices.Contains(nodes, node) && !manyNodes(mode) {
		return status.Errorf(codes.FailedPrecondition, "volume %s is attached to node %s: detach it there first", v.ID,
			strings.Join(nodes, ", "))
	}
	if v.Attached.ReadOnly != req.GetReadonly() || v.Attached.Mode != mode.String() {
		return status.Errorf(codes.AlreadyExists, "volume %s is attached with read-only %t and mode %s", v.ID,
			v.Attached.ReadOnly, v.Attached.Mode)
	}
	return nil
}

// with returns a copy with one more node.
func (at attachment) with(node string) *attachment {
	if !slices.Contains(at.Nodes, node) {
		at.Nodes = append(slices.Clone(at.Nodes), node)
	}
	return &at
}

// without returns a copy without a node.
func (at attachment) without(node string) *attachment {
	at.Nodes = slices.DeleteFunc(slices.Clone(at.Nodes), func(n string) bool { return n == node })
	return &at
}

// ControllerUnpublishVolume implements csi.ControllerServer.
func (d *driver) ControllerUnpublishVolume(ctx context.Context,
	req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	a, ok := d.backend.(attacher)
	if !ok {
		return d.UnimplementedControllerServer.ControllerUnpublishVolume(ctx, req)
	}
	if req.GetVolumeId() == "" {
		return nil, invalid("the request has no volume id")
	}
	resp := &csi.ControllerUnpublishVolumeResponse{}
	if v, ok := d.vols.get(req.GetVolumeId()); !ok || v.Phase != ready {
		return resp, nil
	}
	err := d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		nodes := d.nodesOf(*v)
		if req.GetNodeId() != "" { // without a node id: all nodes
			nodes = slices.DeleteFunc(nodes, func(node string) bool { return node != req.GetNodeId() })
		}
		for _, node := range nodes {
			if err := d.detachFrom(ctx, a, v, node); err != nil {
				return err
			}
		}
		return nil
	})
	return resp, err
}

// detachFrom removes one node from the attachment and detaches with the last. It fails while the node uses
// the volume, unless the backend can fence the node.
func (d *driver) detachFrom(ctx context.Context, a attacher, v *volume, node string) error {
	_, fences := d.backend.(fencer)
	if staged, published := v.usedOn(node); staged+published > 0 && !fences {
		return status.Errorf(codes.FailedPrecondition,
			"volume %s is still staged at %d and published at %d paths of node %s", v.ID, staged, published, node)
	}
	left := v.Attached.without(node)
	if len(left.Nodes) > 0 {
		v.Attached = left
		return nil
	}
	err := a.detach(ctx, *v)
	v.Attached = nil
	return err
}

// ControllerExpandVolume implements csi.ControllerServer.
func (d *driver) ControllerExpandVolume(ctx context.Context,
	req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	r := req.GetCapacityRange()
	if req.GetVolumeId() == "" || r == nil {
		return nil, invalid("the request lacks a volume id or a capacity range")
	}
	_, onNode := d.backend.(nodeGrower)
	resp := &csi.ControllerExpandVolumeResponse{NodeExpansionRequired: onNode}
	err := d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		resp.CapacityBytes = v.Size
		if v.Size >= r.GetRequiredBytes() {
			if r.GetLimitBytes() > 0 && v.Size > r.GetLimitBytes() {
				return status.Errorf(codes.OutOfRange, "volume %s has %d bytes already and cannot shrink", v.ID, v.Size)
			}
			return nil
		}
		smallest, granularity, err := d.backend.shape(v, nil)
		if err != nil {
			return err
		}
		if d.opts.RoundTo > 0 {
			granularity = d.opts.RoundTo
		}
		size, err := resolveSize(r.GetRequiredBytes(), r.GetLimitBytes(), smallest, granularity)
		if err != nil {
			return err
		}
		old := v.Size
		if err := d.reserve(size - old); err != nil {
			return err
		}
		if err := d.backend.expand(ctx, v, size); err != nil {
			return withUndoErrors(err, d.reserve(old-size))
		}
		v.Size, resp.CapacityBytes = size, size
		v.NeedsGrow = onNode
		return nil
	})
	return resp, err
}

// ControllerModifyVolume implements csi.ControllerServer.
func (d *driver) ControllerModifyVolume(ctx context.Context,
	req *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	m, ok := d.backend.(modifier)
	if !ok {
		return d.UnimplementedControllerServer.ControllerModifyVolume(ctx, req)
	}
	if req.GetVolumeId() == "" {
		return nil, invalid("the request has no volume id")
	}
	err := d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		if err := d.checkMutable(req.GetMutableParameters()); err != nil {
			return err
		}
		if v.Mutable == nil {
			v.Mutable = map[string]string{}
		}
		maps.Copy(v.Mutable, req.GetMutableParameters())
		return m.modify(ctx, *v)
	})
	return &csi.ControllerModifyVolumeResponse{}, err
}

func (d *driver) checkMutable(params map[string]string) error {
	m, ok := d.backend.(modifier)
	if !ok {
		return invalid("backend %s has no mutable parameters", d.opts.Backend)
	}
	return m.checkMutable(params)
}

// GetCapacity implements csi.ControllerServer.
func (d *driver) GetCapacity(_ context.Context, req *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	for _, c := range req.GetVolumeCapabilities() {
		if d.checkCapability(c) != nil {
			return &csi.GetCapacityResponse{}, nil // unsupported capabilities have no capacity
		}
	}
	d.allocMu.Lock()
	defer d.allocMu.Unlock()
	left, err := d.availableCapacity()
	return &csi.GetCapacityResponse{AvailableCapacity: left, MaximumVolumeSize: wrapperspb.Int64(left)}, err
}

// ControllerGetVolume implements csi.ControllerServer.
func (d *driver) ControllerGetVolume(_ context.Context,
	req *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("the request has no volume id")
	}
	v, err := d.volumeOrNotFound(req.GetVolumeId())
	if err != nil {
		return nil, err
	}
	return &csi.ControllerGetVolumeResponse{Volume: v.proto(),
		Status: &csi.ControllerGetVolumeResponse_VolumeStatus{PublishedNodeIds: d.nodesOf(v)}}, nil
}

func (d *driver) nodesOf(v volume) []string {
	switch {
	case v.Attached == nil:
		return nil
	case len(v.Attached.Nodes) == 0: // written by a version with a single node
		return []string{d.opts.NodeID}
	}
	return slices.Clone(v.Attached.Nodes)
}

// ListVolumes implements csi.ControllerServer. A token is the id after which the next page begins, so that
// pages stay valid when volumes are created and deleted.
func (d *driver) ListVolumes(_ context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	all := slices.DeleteFunc(d.vols.all(), func(v volume) bool { return v.Phase != ready })
	page, next, err := paginate(all, func(v volume) string { return v.ID }, "vol-", req.GetStartingToken(),
		req.GetMaxEntries())
	if err != nil {
		return nil, err
	}
	resp := &csi.ListVolumesResponse{NextToken: next}
	for _, v := range page {
		resp.Entries = append(resp.Entries, &csi.ListVolumesResponse_Entry{Volume: v.proto(),
			Status: &csi.ListVolumesResponse_VolumeStatus{PublishedNodeIds: d.nodesOf(v)}})
	}
	return resp, nil
}

// paginate returns at most limit rows (0: all) after the token, and the token of the next page. The rows are
// ordered by id.
func paginate[T any](rows []T, id func(T) string, prefix, token string, limit int32) ([]T, string, error) {
	if limit < 0 {
		return nil, "", invalid("max_entries is negative")
	}
	if token != "" {
		if !strings.HasPrefix(token, prefix) {
			return nil, "", status.Errorf(codes.Aborted, "invalid token %q: list again without a token", token)
		}
		rows = rows[sort.Search(len(rows), func(i int) bool { return id(rows[i]) > token }):]
	}
	if limit == 0 || int(limit) >= len(rows) {
		return rows, "", nil
	}
	return rows[:limit], id(rows[limit-1]), nil
}
