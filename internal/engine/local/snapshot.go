package local

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/protobuf/proto"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/op"
)

const (
	pollFirst = 5 * time.Millisecond
	pollMax   = time.Second
)

// snapshot takes a snapshot of one volume and waits until it is ready.
func (e *Engine) snapshot(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	v := e.findVolume(r.Snapshot.Sources[0].Name)
	if v == nil {
		return nil, notFoundError(r.Snapshot.Sources[0])
	}
	class, err := e.snapshotClass(r.Snapshot.Class, v)
	if err != nil {
		return nil, err
	}
	named, request, err := e.snapshotRequest(r.Name, v, class)
	if err != nil {
		return nil, err
	}
	s := &snapshot{driver: v.driver, retain: class.Retain, secrets: named, request: request,
		object: engine.Object{Kind: engine.SnapshotObject, Name: r.Name, Action: r.Action, Source: v.object.Name,
			Class: class.Name}}
	res, err := s.driver.controller.CreateSnapshot(ctx, s.created())
	if err != nil {
		return nil, e.refused(s.driver, err, "snapshot", r.Name)
	}
	mark(ctx, op.Taken)
	got := res.GetSnapshot()
	keep, err := e.checkSnapshot(s, got)
	if !keep {
		return nil, err
	}
	s.id, s.object.Handle = got.GetSnapshotId(), got.GetSnapshotId()
	s.object.Bytes = max(got.GetSizeBytes(), e.objectOf(v).Bytes)
	e.addSnapshot(s)
	if err := errors.Join(err, e.noteHandle(s.driver, "snapshot", r.Name, s.id)); err != nil {
		return nil, err
	}
	made := []engine.Object{s.object}
	if !got.GetReadyToUse() {
		if err := awaitReady(ctx, tr, s.ready); err != nil {
			return made, err
		}
		return made, nil
	}
	mark(ctx, op.Ready)
	return made, nil
}

// snapshotRequest returns the request for a snapshot, and the references of its secrets.
func (e *Engine) snapshotRequest(name string, v *volume, class engine.SnapshotClass) (secrets,
	*csi.CreateSnapshotRequest, error) {
	named, parameters, err := e.snapshotSettings(name, class)
	return named, &csi.CreateSnapshotRequest{SourceVolumeId: v.id, Name: e.driverName(name), Parameters: parameters},
		err
}

// snapshotSettings returns the secrets and the parameters of a snapshot or group of a class.
func (e *Engine) snapshotSettings(name string, class engine.SnapshotClass) (secrets, map[string]string, error) {
	of := sidecar.Object{Snapshot: true, ID: e.driverName(name), Namespace: engine.Namespace, Name: name}
	named, err := e.secretsOf(sidecar.SnapshotSecrets, class.Parameters, of)
	parameters := volumeParameters(class.Parameters)
	if class.Metadata {
		maps.Copy(parameters, sidecar.SnapshotMetadata(of.ID, of.Namespace, of.Name))
	}
	return named, parameters, err
}

// created is the request with its secrets, which no state has.
func (s *snapshot) created() *csi.CreateSnapshotRequest {
	req := proto.CloneOf(s.request)
	req.Secrets = s.secret(sidecar.Snapshotter)
	return req
}

// secret returns the values of a secret of the snapshot.
func (s *snapshot) secret(kind sidecar.Secret) map[string]string {
	return s.driver.engine.secretFor(s.secrets, kind)
}

// ready queries the snapshot: by its id if the driver lists snapshots, otherwise by repeating the idempotent
// request.
func (s *snapshot) ready(ctx context.Context) (bool, error) {
	if s.driver.controllerCaps[csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS] {
		list, err := s.driver.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SnapshotId: s.id,
			Secrets: s.secret(sidecar.SnapshotterList)})
		if err != nil || len(list.GetEntries()) == 0 {
			return false, err
		}
		return list.GetEntries()[0].GetSnapshot().GetReadyToUse(), nil
	}
	res, err := s.driver.controller.CreateSnapshot(ctx, s.created())
	return res.GetSnapshot().GetReadyToUse(), err
}

// awaitReady polls with a growing interval. The milestone's error is the last interval.
func awaitReady(ctx context.Context, tr *op.Trace, ready func(context.Context) (bool, error)) error {
	quiet := context.WithValue(ctx, opTraceKey{}, nil) // polls add no milestones
	t := ctx.Value(opTraceKey{}).(opTrace)
	for wait := pollFirst; ; wait = min(wait*3/2, pollMax) {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the snapshot is not ready: %w", ctx.Err())
		case <-time.After(wait):
		}
		tr.Attempt()
		ok, err := ready(quiet)
		if err != nil {
			return err
		}
		if ok {
			t.trace.MarkPolled(op.Ready+t.suffix, "csi", wait)
			return nil
		}
	}
}

// groupSnapshot takes snapshots of several volumes at one instant.
func (e *Engine) groupSnapshot(ctx context.Context, r engine.Request, tr *op.Trace) ([]engine.Object, error) {
	var ids []string
	var first *volume
	for _, o := range r.Snapshot.Sources {
		v := e.findVolume(o.Name)
		if v == nil {
			return nil, notFoundError(o)
		}
		if first == nil {
			first = v
		} else if v.driver != first.driver {
			return nil, &engine.Error{Code: "InvalidArgument",
				Message: fmt.Sprintf("a group snapshot needs volumes of one driver: %s is of %s, %s of %s",
					first.object.Name, first.driver.name, v.object.Name, v.driver.name)}
		}
		ids = append(ids, v.id)
	}
	class, err := e.snapshotClass(r.Snapshot.Class, first)
	if err != nil {
		return nil, err
	}
	named, parameters, err := e.snapshotSettings(r.Name, class)
	if err != nil {
		return nil, err
	}
	res, err := first.driver.groups.CreateVolumeGroupSnapshot(ctx, &csi.CreateVolumeGroupSnapshotRequest{
		Name: e.driverName(r.Name), SourceVolumeIds: ids, Parameters: parameters,
		Secrets: e.secretFor(named, sidecar.GroupSnapshotter)})
	if err != nil {
		return nil, e.refused(first.driver, err, "group", r.Name)
	}
	mark(ctx, op.Taken)
	if err := first.driver.checkGroup(ids, res.GetGroupSnapshot()); err != nil {
		return nil, err
	}
	made := e.addGroup(r, first, class, named, res.GetGroupSnapshot())
	if res.GetGroupSnapshot().GetReadyToUse() {
		mark(ctx, op.Ready)
		return made, nil
	}
	g := e.findSnapshot(r.Name)
	return made, awaitReady(ctx, tr, func(ctx context.Context) (bool, error) {
		res, err := g.driver.groups.GetVolumeGroupSnapshot(ctx,
			&csi.GetVolumeGroupSnapshotRequest{GroupSnapshotId: g.id, SnapshotIds: g.members,
				Secrets: g.secret(sidecar.GroupSnapshotterGet)})
		return res.GetGroupSnapshot().GetReadyToUse(), err
	})
}

// addGroup registers the group and each snapshot in it.
func (e *Engine) addGroup(r engine.Request, v *volume, class engine.SnapshotClass, named secrets,
	got *csi.VolumeGroupSnapshot) []engine.Object {
	g := &snapshot{driver: v.driver, id: got.GetGroupSnapshotId(), retain: class.Retain, secrets: named,
		object: engine.Object{Kind: engine.GroupSnapshotObject, Name: r.Name, Handle: got.GetGroupSnapshotId(),
			Action: r.Action, Class: class.Name}}
	made := []engine.Object{}
	for i, m := range got.GetSnapshots() {
		g.members = append(g.members, m.GetSnapshotId())
		s := &snapshot{driver: v.driver, id: m.GetSnapshotId(), secrets: named, object: engine.Object{
			Kind: engine.SnapshotObject, Name: fmt.Sprintf("%s-%d", r.Name,
				i), Handle: m.GetSnapshotId(), Action: r.Action,
			Owner: r.Name, Class: class.Name, Bytes: m.GetSizeBytes()}}
		for _, source := range r.Snapshot.Sources {
			if source.Handle == m.GetSourceVolumeId() {
				if v := e.findVolume(source.Name); v != nil { // may have grown meanwhile
					source = e.objectOf(v)
				}
				s.object.Source, s.object.Bytes = source.Name, max(s.object.Bytes, source.Bytes)
			}
		}
		e.addSnapshot(s)
		made = append(made, s.object)
	}
	e.addSnapshot(g)
	return append(made, g.object)
}

// snapshotClass returns a class, or one without parameters for the volume's driver if none is named.
func (e *Engine) snapshotClass(name string, v *volume) (engine.SnapshotClass, error) {
	if name == "" {
		return engine.SnapshotClass{Driver: v.driver.name}, nil
	}
	c, ok := e.session.SnapshotClasses[name]
	if !ok {
		return c, &engine.Error{Code: "NotFound", Message: fmt.Sprintf("VolumeSnapshotClass %q does not exist", name)}
	}
	if c.Driver != v.driver.name && c.Driver != "" { // that of a class without a document was not known
		return c, &engine.Error{Code: "InvalidArgument",
			Message: fmt.Sprintf("VolumeSnapshotClass %s is for driver %s, volume %s is of %s", name, c.Driver,
				v.object.Name, v.driver.name)}
	}
	return c, nil
}

func (e *Engine) deleteSnapshot(ctx context.Context, name string) error {
	s := e.findSnapshot(name)
	if s == nil {
		return notFoundError(engine.Object{Kind: engine.SnapshotObject, Name: name})
	}
	if s.object.Owner != "" {
		return &engine.Error{Code: "InvalidArgument",
			Message: fmt.Sprintf("snapshot %s belongs to group %s: delete the group", name, s.object.Owner)}
	}
	s.deleting.Store(true)
	if _, err := s.driver.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s.id,
		Secrets: s.secret(sidecar.Snapshotter)}); err != nil {
		return err
	}
	return e.forgetSnapshot(ctx, s)
}

func (e *Engine) deleteGroup(ctx context.Context, name string) error {
	g := e.findSnapshot(name)
	if g == nil {
		return notFoundError(engine.Object{Kind: engine.GroupSnapshotObject, Name: name})
	}
	if _, err := g.driver.groups.DeleteVolumeGroupSnapshot(ctx,
		&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: g.id, SnapshotIds: g.members,
			Secrets: g.secret(sidecar.GroupSnapshotter)}); err != nil {
		return err
	}
	e.mu.Lock()
	for n, s := range e.snapshots {
		if s.object.Owner == name {
			delete(e.snapshots, n)
			delete(e.ids, objectID{s.driver, s.object.Kind, s.id})
		}
	}
	e.mu.Unlock()
	return e.forgetSnapshot(ctx, g)
}

func (e *Engine) forgetSnapshot(ctx context.Context, s *snapshot) error {
	mark(ctx, op.Gone)
	e.mu.Lock()
	delete(e.snapshots, s.object.Name)
	delete(e.ids, objectID{s.driver, s.object.Kind, s.id})
	e.mu.Unlock()
	kind := "snapshot"
	if s.object.Kind == engine.GroupSnapshotObject {
		kind = "group"
	}
	return e.markDone(s.driver, kind, s.object.Name)
}
