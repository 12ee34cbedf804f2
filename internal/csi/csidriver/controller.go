package csidriver

import (
	"context"
	"errors"
	"slices"
	"sort"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// errWith adds what went wrong while undoing, keeping the code of the first error.
func errWith(err error, undoing ...error) error {
	also := errors.Join(undoing...)
	if also == nil {
		return err
	}
	s := status.Convert(toStatus(err))
	return status.Errorf(s.Code(), "%s; and while undoing it: %v", s.Message(), also)
}

// ControllerPublishVolume implements csi.ControllerServer.
func (d *driver) ControllerPublishVolume(ctx context.Context, req *csi.ControllerPublishVolumeRequest) (*csi.ControllerPublishVolumeResponse, error) {
	a, ok := d.be.(attacher)
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
			v.Attached = &attachment{ReadOnly: req.GetReadonly(), Mode: req.GetVolumeCapability().GetAccessMode().GetMode().String()}
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

// checkAttach refuses what cannot be attached.
func (d *driver) checkAttach(v volume, req *csi.ControllerPublishVolumeRequest) error {
	node := req.GetNodeId()
	if !slices.Contains(d.nodeIDs(), node) {
		return status.Errorf(codes.NotFound, "no node has the id %q; there is %s", node, strings.Join(d.nodeIDs(), ", "))
	}
	if err := d.fits(v, req.GetVolumeCapability()); err != nil {
		return err
	}
	if v.Attached == nil {
		return nil
	}
	mode, nodes := req.GetVolumeCapability().GetAccessMode().GetMode(), d.nodesOf(v)
	if !slices.Contains(nodes, node) && !manyNodes(mode) {
		return status.Errorf(codes.FailedPrecondition, "volume %s is attached to node %s; detach it there first", v.ID, strings.Join(nodes, ", "))
	}
	if v.Attached.ReadOnly != req.GetReadonly() || v.Attached.Mode != mode.String() {
		return status.Errorf(codes.AlreadyExists, "volume %s is attached with read-only %t and mode %s", v.ID, v.Attached.ReadOnly, v.Attached.Mode)
	}
	return nil
}

func manyNodes(mode csi.VolumeCapability_AccessMode_Mode) bool {
	switch mode {
	case csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY, csi.VolumeCapability_AccessMode_MULTI_NODE_SINGLE_WRITER,
		csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER:
		return true
	}
	return false
}

// with returns an attachment to one node more; the old one is part of a record that may be kept.
func (at attachment) with(node string) *attachment {
	if !slices.Contains(at.Nodes, node) {
		at.Nodes = append(slices.Clone(at.Nodes), node)
	}
	return &at
}

// without returns an attachment to one node less.
func (at attachment) without(node string) *attachment {
	at.Nodes = slices.DeleteFunc(slices.Clone(at.Nodes), func(n string) bool { return n == node })
	return &at
}

// ControllerUnpublishVolume implements csi.ControllerServer.
func (d *driver) ControllerUnpublishVolume(ctx context.Context, req *csi.ControllerUnpublishVolumeRequest) (*csi.ControllerUnpublishVolumeResponse, error) {
	a, ok := d.be.(attacher)
	if !ok {
		return d.UnimplementedControllerServer.ControllerUnpublishVolume(ctx, req)
	}
	if req.GetVolumeId() == "" {
		return nil, invalid("the request names no volume")
	}
	resp := &csi.ControllerUnpublishVolumeResponse{}
	if v, ok := d.vols.get(req.GetVolumeId()); !ok || v.Phase != ready {
		return resp, nil
	}
	err := d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		nodes := d.nodesOf(*v)
		if req.GetNodeId() != "" { // without one, from all
			nodes = keep(nodes, func(node string) bool { return node == req.GetNodeId() })
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

// detachFrom takes one node from the attachment, and detaches with the last. A node that still uses the volume is in the
// way, unless it is lost to the orchestrator and the backend can do without it.
func (d *driver) detachFrom(ctx context.Context, a attacher, v *volume, node string) error {
	_, fences := d.be.(fencer)
	if staged, published := v.usedOn(node); staged+published > 0 && !fences {
		return status.Errorf(codes.FailedPrecondition, "volume %s is still staged at %d and published at %d paths of node %s", v.ID, staged, published, node)
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
func (d *driver) ControllerExpandVolume(ctx context.Context, req *csi.ControllerExpandVolumeRequest) (*csi.ControllerExpandVolumeResponse, error) {
	r := req.GetCapacityRange()
	if req.GetVolumeId() == "" || r == nil {
		return nil, invalid("the request lacks a volume id or a capacity range")
	}
	_, onNode := d.be.(nodeGrower)
	resp := &csi.ControllerExpandVolumeResponse{NodeExpansionRequired: onNode}
	err := d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		resp.CapacityBytes = v.Size
		if v.Size >= r.GetRequiredBytes() {
			if r.GetLimitBytes() > 0 && v.Size > r.GetLimitBytes() {
				return status.Errorf(codes.OutOfRange, "volume %s has %d bytes already and cannot shrink", v.ID, v.Size)
			}
			return nil
		}
		smallest, granularity, err := d.be.shape(v, nil)
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
		if err := d.be.expand(ctx, v, size); err != nil {
			return errWith(err, d.reserve(old-size))
		}
		v.Size, resp.CapacityBytes = size, size
		v.NeedsGrow = onNode
		return nil
	})
	return resp, err
}

// ControllerModifyVolume implements csi.ControllerServer.
func (d *driver) ControllerModifyVolume(ctx context.Context, req *csi.ControllerModifyVolumeRequest) (*csi.ControllerModifyVolumeResponse, error) {
	m, ok := d.be.(modifier)
	if !ok {
		return d.UnimplementedControllerServer.ControllerModifyVolume(ctx, req)
	}
	if req.GetVolumeId() == "" {
		return nil, invalid("the request names no volume")
	}
	err := d.withVolume(ctx, req.GetVolumeId(), func(ctx context.Context, v *volume) error {
		if err := d.checkMutable(req.GetMutableParameters()); err != nil {
			return err
		}
		if v.Mutable == nil {
			v.Mutable = map[string]string{}
		}
		for key, value := range req.GetMutableParameters() {
			v.Mutable[key] = value
		}
		return m.modify(ctx, *v)
	})
	return &csi.ControllerModifyVolumeResponse{}, err
}

func (d *driver) checkMutable(params map[string]string) error {
	m, ok := d.be.(modifier)
	if !ok {
		return invalid("backend %s has no mutable parameters", d.opts.Backend)
	}
	return m.checkMutable(params)
}

// GetCapacity implements csi.ControllerServer.
func (d *driver) GetCapacity(_ context.Context, req *csi.GetCapacityRequest) (*csi.GetCapacityResponse, error) {
	for _, c := range req.GetVolumeCapabilities() {
		if d.checkCapability(c) != nil {
			return &csi.GetCapacityResponse{}, nil // what cannot be had has no capacity
		}
	}
	d.allocMu.Lock()
	defer d.allocMu.Unlock()
	left, err := d.left()
	return &csi.GetCapacityResponse{AvailableCapacity: left, MaximumVolumeSize: wrapperspb.Int64(left)}, err
}

// ControllerGetVolume implements csi.ControllerServer.
func (d *driver) ControllerGetVolume(_ context.Context, req *csi.ControllerGetVolumeRequest) (*csi.ControllerGetVolumeResponse, error) {
	if req.GetVolumeId() == "" {
		return nil, invalid("the request names no volume")
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
	case len(v.Attached.Nodes) == 0: // kept by a driver that knew one node only
		return []string{d.opts.NodeID}
	}
	return slices.Clone(v.Attached.Nodes)
}

// ListVolumes implements csi.ControllerServer. A token is the id after which the next page begins, so that pages stay
// right when volumes come and go between them.
func (d *driver) ListVolumes(_ context.Context, req *csi.ListVolumesRequest) (*csi.ListVolumesResponse, error) {
	all := keep(d.vols.all(), func(v volume) bool { return v.Phase == ready })
	page, next, err := paginate(all, func(v volume) string { return v.ID }, "vol-", req.GetStartingToken(), req.GetMaxEntries())
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

func keep[T any](rows []T, wanted func(T) bool) []T {
	kept := rows[:0]
	for _, r := range rows {
		if wanted(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// paginate returns the rows after the token, at most limit of them when limit is positive, and the token of the next
// page. The rows are ordered by id.
func paginate[T any](rows []T, id func(T) string, prefix, token string, limit int32) ([]T, string, error) {
	if limit < 0 {
		return nil, "", invalid("max_entries is negative")
	}
	if token != "" {
		if !strings.HasPrefix(token, prefix) {
			return nil, "", status.Errorf(codes.Aborted, "%q is not a token of this list; begin again without one", token)
		}
		rows = rows[sort.Search(len(rows), func(i int) bool { return id(rows[i]) > token }):]
	}
	if limit == 0 || int(limit) >= len(rows) {
		return rows, "", nil
	}
	return rows[:limit], id(rows[limit-1]), nil
}
