package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/op"
)

// newVolume resolves a claim to a request for its driver.
func (e *Engine) newVolume(name string, claim *corev1.PersistentVolumeClaim) (*volume, error) {
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	sc, ok := e.session.StorageClasses[class]
	if !ok {
		return nil, &engine.Error{Code: "NotFound",
			Message: fmt.Sprintf("StorageClass %q of claim %s does not exist", class, claim.Name)}
	}
	d, err := e.driverOf(sc.Provisioner)
	if err != nil {
		return nil, err
	}
	capability, err := capabilityOf(claim, &sc)
	if err != nil {
		return nil, err
	}
	of := sidecar.Object{ID: e.driverName(name), Namespace: cmp.Or(claim.Namespace, engine.Namespace), Name: name,
		Annotations: claim.Annotations}
	named, err := e.secretsOf(sidecar.VolumeSecrets, sc.Parameters, of)
	if err != nil {
		return nil, err
	}
	parameters := volumeParameters(sc.Parameters)
	if sc.Annotations[sidecar.ExtraMetadata] == "true" {
		maps.Copy(parameters, sidecar.VolumeMetadata(of.ID, of.Namespace, of.Name))
	}
	dir := e.volumeDir(name)
	size := claim.Spec.Resources.Requests[corev1.ResourceStorage]
	v := &volume{
		driver: d, capability: capability, secrets: named, readOnly: onlyRead(claim),
		stagePath: filepath.Join(dir, "stage"), targetPath: filepath.Join(dir, "mount"),
		object: engine.Object{Kind: engine.VolumeObject, Name: name, Class: class, Labels: claim.Labels},
		request: &csi.CreateVolumeRequest{
			Name: of.ID, Parameters: parameters,
			CapacityRange:             &csi.CapacityRange{RequiredBytes: size.Value()},
			VolumeCapabilities:        []*csi.VolumeCapability{capability},
			AccessibilityRequirements: d.topology,
		},
	}
	v.stats.closed = true
	return v, nil
}

// volumeParameters removes the parameters for the sidecar and for the driver's process.
func volumeParameters(all map[string]string) map[string]string {
	kept := sidecar.ForDriver(all)
	maps.DeleteFunc(kept, func(k, _ string) bool { return strings.HasPrefix(k, optionPrefix) })
	if kept == nil {
		kept = map[string]string{}
	}
	return kept
}

// onlyRead says that a claim can only be read, such as a restore that is backed by its snapshot.
func onlyRead(claim *corev1.PersistentVolumeClaim) bool {
	return len(claim.Spec.AccessModes) == 1 && claim.Spec.AccessModes[0] == corev1.ReadOnlyMany
}

var accessModes = map[corev1.PersistentVolumeAccessMode]csi.VolumeCapability_AccessMode_Mode{
	corev1.ReadWriteOnce:    csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER,
	corev1.ReadOnlyMany:     csi.VolumeCapability_AccessMode_MULTI_NODE_READER_ONLY,
	corev1.ReadWriteMany:    csi.VolumeCapability_AccessMode_MULTI_NODE_MULTI_WRITER,
	corev1.ReadWriteOncePod: csi.VolumeCapability_AccessMode_SINGLE_NODE_SINGLE_WRITER,
}

func capabilityOf(claim *corev1.PersistentVolumeClaim, sc *storagev1.StorageClass) (*csi.VolumeCapability, error) {
	mode := corev1.ReadWriteOnce
	if len(claim.Spec.AccessModes) > 0 {
		mode = claim.Spec.AccessModes[0]
	}
	csiMode, ok := accessModes[mode]
	if !ok {
		return nil, &engine.Error{Code: "InvalidArgument",
			Message: fmt.Sprintf("access mode %q of claim %s is unknown", mode, claim.Name)}
	}
	c := &csi.VolumeCapability{AccessMode: &csi.VolumeCapability_AccessMode{Mode: csiMode}}
	if m := claim.Spec.VolumeMode; m != nil && *m == corev1.PersistentVolumeBlock {
		c.AccessType = &csi.VolumeCapability_Block{Block: &csi.VolumeCapability_BlockVolume{}}
		return c, nil
	}
	c.AccessType = &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{
		FsType: sidecar.FSType(sc.Parameters), MountFlags: sc.MountOptions,
	}}
	return c, nil
}

// createVolume creates one volume, empty or from a source, and attaches it if requested.
func (e *Engine) createVolume(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	v, err := e.newVolume(r.Name, &r.Volume.Claim)
	if err != nil {
		return nil, err
	}
	v.object.Action = r.Action
	if err := e.setSource(v, r.Volume); err != nil {
		return nil, err
	}
	err = e.provision(ctx, v)
	if e.retryLarger(v, r.Volume, err) {
		tr.Attempt()
		err = e.provision(ctx, v)
	}
	if err != nil && r.Volume.FromSnapshot != nil {
		err = e.notReadyAnyMore(ctx, r.Volume.FromSnapshot.Name, err)
	}
	if err != nil {
		return nil, err
	}
	made := []engine.Object{v.object}
	if !r.Volume.Attach {
		mark(ctx, op.Ready)
		return made, nil
	}
	if err := v.attach(ctx); err != nil {
		return made, err
	}
	if err := v.probe(ctx, v.request.VolumeContentSource != nil); err != nil {
		return made, err
	}
	mark(ctx, op.Ready)
	return made, nil
}

// setSource makes v a restored or cloned volume of at least its source's size.
func (e *Engine) setSource(v *volume, want *engine.Volume) error {
	var bytes int64
	switch {
	case want.FromSnapshot != nil:
		s := e.findSnapshot(want.FromSnapshot.Name)
		if s == nil {
			return notFoundError(*want.FromSnapshot)
		}
		bytes, v.object.Source = s.object.Bytes, s.object.Name
		v.request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Snapshot{
			Snapshot: &csi.VolumeContentSource_SnapshotSource{SnapshotId: s.id}}}
	case want.FromVolume != nil:
		src := e.findVolume(want.FromVolume.Name)
		if src == nil {
			return notFoundError(*want.FromVolume)
		}
		bytes, v.object.Source = e.sizeOf(src), src.object.Name
		v.request.VolumeContentSource = &csi.VolumeContentSource{Type: &csi.VolumeContentSource_Volume{
			Volume: &csi.VolumeContentSource_VolumeSource{VolumeId: src.id}}}
	}
	v.request.CapacityRange.RequiredBytes = max(v.request.CapacityRange.RequiredBytes, bytes)
	return nil
}

// sizeOf is the size that a clone of v must request: the size of a resize in progress if there is one, as in
// Kubernetes, where a clone requests the size of its source's claim. It does not wait for the resize, which
// would add an unrecorded queue to the measurement.
func (e *Engine) sizeOf(v *volume) int64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return max(v.object.Bytes, v.growing)
}

// retryLarger reports whether a clone was refused because its source started to grow after the request was
// made, and enlarges the request for one retry. The op's attempts and milestones show both calls. Any other
// refusal is a result.
func (e *Engine) retryLarger(v *volume, want *engine.Volume, err error) bool {
	if want.FromVolume == nil || status.Code(err) != codes.OutOfRange {
		return false
	}
	had := v.request.CapacityRange.RequiredBytes
	return e.setSource(v, want) == nil && v.request.CapacityRange.RequiredBytes > had
}

func notFoundError(o engine.Object) error {
	return &engine.Error{Code: "NotFound", Message: fmt.Sprintf("%s %s does not exist any more", o.Kind, o.Name)}
}

// provision creates the volume.
func (e *Engine) provision(ctx context.Context, v *volume) error {
	res, err := v.driver.controller.CreateVolume(ctx, v.created())
	if err != nil {
		return e.refused(v.driver, err, "volume", v.object.Name)
	}
	mark(ctx, op.Provisioned)
	keep, err := e.checkVolume(v, res.GetVolume())
	if !keep {
		return err
	}
	v.id, v.context = res.GetVolume().GetVolumeId(), res.GetVolume().GetVolumeContext()
	v.object.Handle, v.object.Bytes = v.id, res.GetVolume().GetCapacityBytes()
	if v.object.Bytes == 0 { // unknown, which CSI allows
		v.object.Bytes = v.request.CapacityRange.RequiredBytes
	}
	e.mu.Lock()
	e.volumes[v.object.Name] = v
	e.mu.Unlock()
	return errors.Join(err, e.noteHandle(v.driver, "volume", v.object.Name, v.id))
}

// created is the request with its secrets, which no state has.
func (v *volume) created() *csi.CreateVolumeRequest {
	req := proto.CloneOf(v.request)
	req.Secrets = v.secret(sidecar.Provisioner)
	return req
}

// secret returns the values of a secret of the volume.
func (v *volume) secret(kind sidecar.Secret) map[string]string {
	return v.driver.engine.secretFor(v.secrets, kind)
}

// attach makes the volume available at its path: ControllerPublish, NodeStage, NodePublish, as supported by
// the driver.
func (v *volume) attach(ctx context.Context) error {
	d := v.driver
	if d.controllerCaps[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME] {
		v.set(&v.attached, true) // possibly attached from here on
		res, err := d.controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{
			VolumeId: v.id, NodeId: d.nodeID, VolumeCapability: v.capability, VolumeContext: v.context,
			Readonly: v.readOnly, Secrets: v.secret(sidecar.ControllerPublish)})
		if err != nil {
			return err
		}
		v.publish = res.GetPublishContext()
		mark(ctx, op.Attached)
	}
	if d.nodeCaps[csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME] {
		if err := os.MkdirAll(v.stagePath, 0o750); err != nil {
			return err
		}
		v.set(&v.staged, true)
		if _, err := d.nodeClient.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{
			VolumeId: v.id, PublishContext: v.publish, StagingTargetPath: v.stagePath, VolumeCapability: v.capability,
			VolumeContext: v.context, Secrets: v.secret(sidecar.NodeStage)}); err != nil {
			return err
		}
		mark(ctx, op.Staged)
	}
	if err := os.MkdirAll(filepath.Dir(v.targetPath), 0o750); err != nil {
		return err
	}
	v.set(&v.published, true)
	if _, err := d.nodeClient.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{
		VolumeId: v.id, PublishContext: v.publish, StagingTargetPath: v.stagePath, TargetPath: v.targetPath,
		VolumeCapability: v.capability, Readonly: v.readOnly, VolumeContext: v.context,
		Secrets: v.secret(sidecar.NodePublish)}); err != nil {
		return err
	}
	mark(ctx, op.Published)
	if err := v.checkPublished(); err != nil {
		return err
	}
	v.stats.reopen()
	return nil
}

// detach undoes attach, as far as it went.
func (v *volume) detach(ctx context.Context) error {
	d := v.driver
	v.endStats(ctx)
	if v.is(&v.published) {
		if _, err := d.nodeClient.NodeUnpublishVolume(ctx,
			&csi.NodeUnpublishVolumeRequest{VolumeId: v.id, TargetPath: v.targetPath}); err != nil {
			return err
		}
		v.set(&v.published, false)
		mark(ctx, op.Unpublished)
	}
	if v.is(&v.staged) {
		if _, err := d.nodeClient.NodeUnstageVolume(ctx,
			&csi.NodeUnstageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.stagePath}); err != nil {
			return err
		}
		v.set(&v.staged, false)
		mark(ctx, op.Unstaged)
	}
	if v.is(&v.attached) {
		if _, err := d.controller.ControllerUnpublishVolume(ctx,
			&csi.ControllerUnpublishVolumeRequest{VolumeId: v.id, NodeId: d.nodeID,
				Secrets: v.secret(sidecar.ControllerPublish)}); err != nil {
			return err
		}
		v.set(&v.attached, false)
		mark(ctx, op.Detached)
	}
	return removeDirs(filepath.Dir(v.targetPath))
}

// removeDirs removes the empty directories of a detached volume. It keeps non-empty ones, which may be
// mounts.
func removeDirs(dir string) error {
	for _, d := range []string{filepath.Join(dir, "stage"), filepath.Join(dir, "mount"), dir} {
		if err := os.Remove(d); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("remove the directory of a detached volume: %w", err)
		}
	}
	return nil
}

// deleteVolume detaches and deletes a volume.
func (e *Engine) deleteVolume(ctx context.Context, name string) error {
	v := e.findVolume(name)
	if v == nil {
		return notFoundError(engine.Object{Kind: engine.VolumeObject, Name: name})
	}
	v.ops.shut(ctx)
	err := v.detach(ctx)
	if err == nil {
		_, err = v.driver.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.id,
			Secrets: v.secret(sidecar.Provisioner)})
	}
	if err != nil {
		v.ops.reopen()
		return err
	}
	mark(ctx, op.Gone)
	e.mu.Lock()
	delete(e.volumes, name)
	delete(e.ids, objectID{v.driver, engine.VolumeObject, v.id})
	e.mu.Unlock()
	return e.markDone(v.driver, "volume", name)
}
