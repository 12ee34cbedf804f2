// Package provision creates, changes and deletes the volumes, snapshots and workloads of a run.
package provision

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/podspec"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Provisioner creates, changes and deletes volumes, snapshots and workloads.
type Provisioner struct {
	*pods.State

	snapshots         map[string]*snapshot
	attributesClasses map[string]bool // created by the run
	existingClasses   map[string]bool // whether the cluster has a class of this name
}

// New returns a Provisioner without snapshots.
func New(s *pods.State) *Provisioner {
	return &Provisioner{State: s, snapshots: map[string]*snapshot{},
		attributesClasses: map[string]bool{}, existingClasses: map[string]bool{}}
}

// CreateVolume creates a claim and, with attach, a pod that mounts it, at once.
func (e *Provisioner) CreateVolume(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	claim := r.Volume.Claim.DeepCopy()
	claim.ObjectMeta = e.Meta(claim.ObjectMeta, r.Action, r.Name)
	object := engine.Object{Kind: engine.VolumeObject, Name: r.Name, Action: r.Action, Labels: r.Volume.Claim.Labels}
	if claim.Spec.StorageClassName != nil {
		object.Class = *claim.Spec.StorageClassName
	}
	if err := e.setSource(&claim.Spec, &object, r.Volume); err != nil {
		return nil, err
	}
	if !r.Volume.Attach && r.Volume.Static == nil && e.waitsForConsumer(object.Class) {
		return nil, engine.Errorf("WaitForFirstConsumer",
			"StorageClass %s provisions a volume only when a pod uses it: set attach: true, or use a class with "+
				"volumeBindingMode Immediate", object.Class)
	}
	v := &pods.Volume{Object: object, Name: claim.Name, ReadOnly: pods.IsReadOnly(claim), Block: pods.IsBlock(claim)}
	if r.Volume.Ephemeral {
		v.Name, v.Template = e.Name(HolderPod(r.Name))+"-"+holderVolume, claim
	}
	pr := e.NewProvision()
	state := pr.AddClaimNamed(r.Name, v.Name, r.Volume.Attach)
	made := func() []engine.Object {
		v.Object.Handle, v.Object.Bytes = state.Handle, state.Bytes
		e.StoreVolume(v)
		return []engine.Object{v.Object}
	}
	if err := e.createClaim(ctx, v, claim, r, tr); err != nil {
		pr.Feed.Close()
		return nil, err
	}
	if r.Volume.Attach {
		if err := e.hold(ctx, v, r, pr); err != nil {
			pr.Feed.Close()
			return made(), err
		}
		if v.Template != nil {
			tr.Mark(op.Acked, "runner")
		}
	}
	err := pr.Wait(ctx, tr)
	return made(), err
}

// createClaim creates the claim, and before it the PersistentVolume of a static volume. The cluster creates an
// ephemeral claim.
func (e *Provisioner) createClaim(ctx context.Context, v *pods.Volume, claim *corev1.PersistentVolumeClaim,
	r engine.Request, tr *op.Trace) error {
	if v.Template != nil {
		e.StoreVolume(v)
		return nil
	}
	if s := r.Volume.Static; s != nil {
		pv := e.staticVolume(s, claim, r)
		v.Static = pv.Name
		empty := ""
		claim.Spec.StorageClassName, claim.Spec.VolumeName = &empty, pv.Name
		if _, err := e.Create(ctx, api.PersistentVolumes, pv); err != nil {
			return err
		}
	}
	answered, err := e.Create(ctx, api.PersistentVolumeClaims, claim)
	if err != nil {
		return err
	}
	e.StoreVolume(v)
	tr.MarkAt(op.Acked, answered, 0, "runner")
	return nil
}

// staticVolume returns the PersistentVolume of an existing volume, which is retained.
func (e *Provisioner) staticVolume(s *engine.StaticVolume, claim *corev1.PersistentVolumeClaim,
	r engine.Request) *corev1.PersistentVolume {
	pv := &corev1.PersistentVolume{ObjectMeta: e.Meta(metav1.ObjectMeta{}, r.Action, r.Name)}
	pv.Namespace = ""
	pv.Spec = corev1.PersistentVolumeSpec{
		Capacity: claim.Spec.Resources.Requests, AccessModes: claim.Spec.AccessModes, VolumeMode: claim.Spec.VolumeMode,
		PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimRetain,
		ClaimRef: &corev1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
			Namespace: e.Namespace, Name: claim.Name},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{
			Driver: s.Driver, VolumeHandle: s.Handle, VolumeAttributes: s.Attributes,
			ReadOnly: pods.IsReadOnly(claim)}},
	}
	return pv
}

// setSource sets the source of a restored or cloned volume. The claim is at least as large as the source is now: it
// may have grown since the op was planned.
func (e *Provisioner) setSource(spec *corev1.PersistentVolumeClaimSpec, object *engine.Object,
	want *engine.Volume) error {
	var source *engine.Object
	var bytes int64
	switch {
	case want.FromSnapshot != nil:
		source = want.FromSnapshot
		if e.snapshot(source.Name) == nil {
			return core.NotFound(*source)
		}
		bytes = e.restoreSize(source)
		group := core.SnapshotGroup
		spec.DataSource = &corev1.TypedLocalObjectReference{APIGroup: &group, Kind: "VolumeSnapshot",
			Name: e.Name(source.Name)}
	case want.FromVolume != nil:
		source = want.FromVolume
		v := e.Volume(source.Name)
		if v == nil {
			return core.NotFound(*source)
		}
		bytes = e.claimedSize(source)
		spec.DataSource = &corev1.TypedLocalObjectReference{Kind: "PersistentVolumeClaim", Name: v.Name}
	default:
		return nil
	}
	object.Source = source.Name
	if want := spec.Resources.Requests[corev1.ResourceStorage]; want.Value() < bytes {
		spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes,
			resource.BinarySI)}
	}
	return nil
}

// claimedSize returns the least size that csi-provisioner allows for a clone: the request of the source's claim,
// even if a resize is pending or failed.
func (e *Provisioner) claimedSize(source *engine.Object) int64 {
	v := e.Volume(source.Name)
	if v == nil {
		return source.Bytes
	}
	c, ok := e.Tracker.Latest(tracker.Claim.Key(v.Name)).(*corev1.PersistentVolumeClaim)
	if !ok {
		return source.Bytes
	}
	asked, has := c.Spec.Resources.Requests[corev1.ResourceStorage], c.Status.Capacity[corev1.ResourceStorage]
	return max(asked.Value(), has.Value())
}

// restoreSize returns the least size that csi-provisioner allows for a volume from a snapshot.
func (e *Provisioner) restoreSize(source *engine.Object) int64 {
	s := e.snapshot(source.Name)
	if s != nil {
		vs, ok := e.Tracker.Latest(tracker.Snapshot.Key(s.name)).(*api.VolumeSnapshot)
		if ok && vs.Status != nil && vs.Status.RestoreSize != nil {
			return vs.Status.RestoreSize.Value()
		}
	}
	return source.Bytes
}

// waitsForConsumer says whether a StorageClass binds at the first consumer.
func (e *Provisioner) waitsForConsumer(class string) bool {
	mode := e.Classes[class].VolumeBindingMode
	return mode != nil && *mode == storagev1.VolumeBindingWaitForFirstConsumer
}

const (
	holderDir    = "/data"
	holderDevice = "/dev/cnsbench"
	holderVolume = "data"
)

// HolderPod returns the name in the run of the pod that holds a volume.
func HolderPod(volume string) string { return volume + "-holder" }

// hold starts a pod of the product's image that mounts the volume and reports the first write or read.
func (e *Provisioner) hold(ctx context.Context, v *pods.Volume, r engine.Request, pr *pods.Provision) error {
	object := HolderPod(r.Name)
	c := corev1.Container{
		Name: "hold", Image: e.Image, ImagePullPolicy: corev1.PullIfNotPresent,
		Command: []string{podspec.AgentBinary, "hold"}, SecurityContext: VolumeSecurity(v.Block),
		Resources: podspec.Resources(),
	}
	if v.Block {
		c.VolumeDevices = []corev1.VolumeDevice{{Name: holderVolume, DevicePath: holderDevice}}
	} else {
		c.VolumeMounts = []corev1.VolumeMount{{Name: holderVolume, MountPath: holderDir, ReadOnly: v.ReadOnly}}
	}
	user := int64(podspec.User)
	no := false
	pod := &corev1.Pod{
		ObjectMeta: e.Meta(metav1.ObjectMeta{}, r.Action, object),
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{c},
			AutomountServiceAccountToken:  &no,
			TerminationGracePeriodSeconds: new(int64(holderGrace)),
			Volumes:                       []corev1.Volume{{Name: holderVolume, VolumeSource: volumeSource(v)}},
		},
	}
	if !v.Block {
		pod.Spec.SecurityContext = &corev1.PodSecurityContext{FSGroup: &user}
	}
	m := &pods.Pod{State: e.State, Object: object, Instance: object, Holder: true, Extra: r.PodTemplate}
	v.Holder = m
	return m.Start(ctx, pod, []string{"hold"}, e.holderAgent(v), pr)
}

// volumeSource returns how a pod refers to the volume.
func volumeSource(v *pods.Volume) corev1.VolumeSource {
	if t := v.Template; t != nil {
		return corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: &corev1.PersistentVolumeClaimTemplate{
			ObjectMeta: metav1.ObjectMeta{Labels: t.Labels, Annotations: t.Annotations}, Spec: t.Spec}}}
	}
	return corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: v.Name,
		ReadOnly: v.ReadOnly}}
}

// holderGrace is the grace period of a holder in seconds. It ends at once.
const holderGrace = 5

// VolumeSecurity is podspec.Restricted, but as root for a block device: the context of the product's containers that
// use a volume.
func VolumeSecurity(block bool) *corev1.SecurityContext {
	s := podspec.Restricted()
	if block {
		root, no := int64(0), false
		s.RunAsUser, s.RunAsNonRoot = &root, &no
	}
	return s
}

// DeleteVolume deletes a volume's holder and claim at once, and waits until the volume is gone.
func (e *Provisioner) DeleteVolume(ctx context.Context, name string, tr *op.Trace) error {
	v := e.Volume(name)
	if v == nil {
		return core.NotFound(engine.Object{Kind: engine.VolumeObject, Name: name})
	}
	var holders []*pods.Pod
	if v.Holder != nil {
		holders = []*pods.Pod{v.Holder}
	}
	return e.DeleteAndWait(ctx, tr, holders, []*pods.Volume{v}, nil)
}
