package local

import (
	"context"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// resize grows a volume: the controller's part where the driver has one, then
// the node's where the answer asks for it and the volume is here. A driver
// that rounds up is taken at its word.
func (e *Engine) resize(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	v := e.findVolume(r.Resize.Target.Name)
	if v == nil {
		return nil, gone(r.Resize.Target)
	}
	tr.On(e.node, v.object.Name)
	d := v.driver
	size := &csi.CapacityRange{RequiredBytes: r.Resize.Bytes}
	node := true
	e.growing(v, r.Resize.Bytes)
	defer e.growing(v, 0)
	if d.controls[csi.ControllerServiceCapability_RPC_EXPAND_VOLUME] {
		res, err := d.controller.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{
			VolumeId: v.id, CapacityRange: size, VolumeCapability: v.capability})
		if err != nil {
			return nil, err
		}
		mark(ctx, op.Controller)
		node = res.GetNodeExpansionRequired()
		e.grown(v, max(res.GetCapacityBytes(), r.Resize.Bytes))
	}
	grown := []engine.Object{e.objectOf(v)}
	if node && v.is(&v.published) && d.nodes[csi.NodeServiceCapability_RPC_EXPAND_VOLUME] {
		if _, err := d.nodeClient.NodeExpandVolume(ctx, &csi.NodeExpandVolumeRequest{
			VolumeId: v.id, VolumePath: v.targetPath, StagingTargetPath: v.stagePath,
			CapacityRange: size, VolumeCapability: v.capability}); err != nil {
			return grown, err
		}
		mark(ctx, op.Node)
		e.grown(v, r.Resize.Bytes)
		grown[0] = e.objectOf(v)
	}
	mark(ctx, op.Ready)
	return grown, nil
}

// growing notes what a resize asks for; 0: it is over.
func (e *Engine) growing(v *volume, bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v.growing = bytes
}

// grown notes the size that a volume has.
func (e *Engine) grown(v *volume, bytes int64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	v.object.Bytes = max(v.object.Bytes, bytes)
}

func (e *Engine) objectOf(v *volume) engine.Object {
	e.mu.Lock()
	defer e.mu.Unlock()
	return v.object
}

// modify gives a volume new mutable parameters.
func (e *Engine) modify(ctx context.Context, r engine.Request, tr *op.Trace) error {
	v := e.findVolume(r.Modify.Target.Name)
	if v == nil {
		return gone(r.Modify.Target)
	}
	tr.On(e.node, v.object.Name)
	if _, err := v.driver.controller.ControllerModifyVolume(ctx, &csi.ControllerModifyVolumeRequest{
		VolumeId: v.id, MutableParameters: r.Modify.Parameters}); err != nil {
		return err
	}
	mark(ctx, op.Modified)
	return nil
}
