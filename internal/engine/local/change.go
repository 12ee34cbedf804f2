package local

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/op"
)

// resize grows a volume: at the controller if the driver supports that, then at the node if the response
// requires it and the volume is published here. The size that the driver reports counts.
func (e *Engine) resize(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	v := e.findVolume(r.Target.Name)
	if v == nil {
		return nil, notFoundError(r.Target)
	}
	tr.On(e.node, v.object.Name)
	d := v.driver
	size := &csi.CapacityRange{RequiredBytes: r.Resize.Bytes}
	node := true
	e.setGrowing(v, r.Resize.Bytes)
	defer e.setGrowing(v, 0)
	if d.controllerCaps[csi.ControllerServiceCapability_RPC_EXPAND_VOLUME] {
		res, err := d.controller.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: v.id, CapacityRange: size, VolumeCapability: v.capability,
			Secrets: v.secret(sidecar.ControllerExpand)})
		if err != nil {
			return nil, err
		}
		if err := d.checkExpanded("ControllerExpandVolume", res.GetCapacityBytes(), r.Resize.Bytes); err != nil {
			return nil, err
		}
		mark(ctx, op.Controller)
		node = res.GetNodeExpansionRequired()
		e.setSize(v, max(res.GetCapacityBytes(), r.Resize.Bytes))
	}
	grown := []engine.Object{e.objectOf(v)}
	if node && v.is(&v.published) && d.nodeCaps[csi.NodeServiceCapability_RPC_EXPAND_VOLUME] {
		v.endStats(ctx)
		defer v.stats.reopen()
		res, err := d.nodeClient.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
			VolumeId: v.id, VolumePath: v.targetPath, StagingTargetPath: v.stagePath,
			CapacityRange: size, VolumeCapability: v.capability, Secrets: v.secret(sidecar.NodeExpand)})
		if err == nil {
			err = d.checkExpanded("NodeExpandVolume", res.GetCapacityBytes(), r.Resize.Bytes)
		}
		if err != nil {
			return grown, err
		}
		mark(ctx, op.Node)
		e.setSize(v, r.Resize.Bytes)
		grown[0] = e.objectOf(v)
	}
	mark(ctx, op.Ready)
	return grown, nil
}

// setGrowing records the size of a resize in progress; 0: none.
func (e *Engine) setGrowing(v *volume, bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v.growing = bytes
}

// setSize records the size of a volume.
func (e *Engine) setSize(v *volume, bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v.object.Bytes = max(v.object.Bytes, bytes)
}

func (e *Engine) objectOf(v *volume) engine.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	return v.object
}

// modify sets mutable parameters of a volume.
func (e *Engine) modify(ctx context.Context, r engine.Request, tr *op.Trace) error {
	v := e.findVolume(r.Target.Name)
	if v == nil {
		return notFoundError(r.Target)
	}
	tr.On(e.node, v.object.Name)
	if _, err := v.driver.controller.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: v.id, MutableParameters: r.Modify.Parameters,
		Secrets: v.secret(sidecar.ControllerModify)}); err != nil {
		return err
	}
	mark(ctx, op.Modified)
	return nil
}
