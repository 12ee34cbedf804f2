package local

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Everything that a built-in driver makes is under one base directory, which
// one ledger entry names. Volumes and snapshots of an external driver have one
// entry each, with the request that makes them, the references of their secrets
// and, once the driver has answered, their ID. Requests are idempotent by name,
// so that repeating one returns the ID of what a dead run may have made.

// Kinds of the entries of external drivers.
const (
	volumeKind   = "volume"
	snapshotKind = "snapshot"
	groupKind    = "group"
)

// Members of an entry's data.
const (
	dataEndpoint = "endpoint"
	dataRequest  = "request" // without secrets
	dataSecrets  = "secrets" // JSON: kind → NAMESPACE/NAME
	dataHandle   = "handle"  // the ID at the driver
)

// Prepare adds the objects that a request will make to the ledger.
func (e *Engine) Prepare(r engine.Request) error {
	switch {
	case !e.anyExternal():
	case r.Workload != nil:
		for i := range r.Workload.Claims {
			claim := &r.Workload.Claims[i]
			if err := e.prepareVolume(claim.Name, &engine.Volume{Claim: *claim}); err != nil {
				return err
			}
		}
	case r.Volume != nil:
		return e.prepareVolume(r.Name, r.Volume)
	case r.Snapshot != nil:
		return e.prepareSnapshots(r)
	}
	return nil
}

// prepareVolume adds a volume. The op itself reports what is wrong with its request.
func (e *Engine) prepareVolume(name string, want *engine.Volume) error {
	v, wrong := e.newVolume(name, &want.Claim)
	if wrong == nil {
		wrong = e.setSource(v, want)
	}
	if wrong != nil || !v.driver.external() {
		return nil //nolint:nilerr // the op fails with it
	}
	return e.addEntry(v.driver, volumeKind, name, v.request, v.secrets)
}

func (e *Engine) prepareSnapshots(r engine.Request) error {
	var ids []string
	var first *volume
	for _, o := range r.Snapshot.Sources {
		v := e.findVolume(o.Name)
		if v == nil || !v.driver.external() {
			return nil
		}
		first, ids = v, append(ids, v.id)
	}
	class, err := e.snapshotClass(r.Snapshot.Class, first)
	if err != nil {
		return nil //nolint:nilerr // the op fails with it
	}
	named, request, err := e.snapshotRequest(r.Name, first, class)
	if err != nil {
		return nil //nolint:nilerr // the op fails with it
	}
	if !r.Snapshot.Group {
		return e.addEntry(first.driver, snapshotKind, r.Name, request, named)
	}
	return e.addEntry(first.driver, groupKind, r.Name, &csi.CreateVolumeGroupSnapshotRequest{
		Name: request.GetName(), SourceVolumeIds: ids, Parameters: request.GetParameters()}, named)
}

func (e *Engine) addEntry(d *driver, kind, name string, req proto.Message, named secrets) error {
	text, err := protojson.Marshal(req)
	if err != nil {
		return err
	}
	data := map[string]string{dataEndpoint: d.socket, dataRequest: string(text)}
	if len(named) > 0 {
		references, err := json.Marshal(named.record())
		if err != nil {
			return err
		}
		data[dataSecrets] = string(references)
	}
	entry := op.LedgerEntry{Kind: kind, Name: name, Data: data}
	e.entries.Store(entryKey{kind, name}, entry)
	return e.session.Ledger.Add(entry)
}

// entryKey identifies an entry of an external driver.
type entryKey struct{ kind, name string }

// noteHandle adds the ID of an object of an external driver to its entry.
func (e *Engine) noteHandle(d *driver, kind, name, id string) error {
	entry, ok := e.entries.Load(entryKey{kind, name})
	if !ok || !d.external() {
		return nil
	}
	noted := entry.(op.LedgerEntry)
	noted.Data = maps.Clone(noted.Data)
	noted.Data[dataHandle] = id
	return e.session.Ledger.Note(noted)
}

// markDone marks an entry as done; objects of built-in drivers have no entries.
func (e *Engine) markDone(d *driver, kind, name string) error {
	if !d.external() {
		return nil
	}
	e.entries.Delete(entryKey{kind, name})
	return e.session.Ledger.Done(kind, name)
}

// refused forgets an object whose creation the driver refused, so that the end of the run does not ask for it again.
// The codes say that nothing was made (CSI specification, "Error Scheme").
func (e *Engine) refused(d *driver, err error, kind, name string) error {
	switch status.Code(err) {
	case codes.InvalidArgument, codes.Unimplemented, codes.ResourceExhausted:
	default:
		return err
	}
	if ledgerErr := e.markDone(d, kind, name); ledgerErr != nil {
		return errors.Join(err, ledgerErr)
	}
	return err
}

// recover removes the object of an entry of an external driver after asking the driver for its ID, if it is not known.
func (e *Engine) recover(ctx context.Context, entry op.LedgerEntry) (err error) {
	socket := entry.Data[dataEndpoint]
	limit, err := e.patience(socket)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, removalKey{}, true), limit)
	defer cancel()
	defer func() { e.noteAnswer(socket, err) }()
	d, err := e.driverAt(ctx, socket)
	if err != nil {
		return err
	}
	o := owed{driver: d, entry: entry, id: entry.Data[dataHandle]}
	var references map[string]string
	if text := entry.Data[dataSecrets]; text != "" {
		if err := json.Unmarshal([]byte(text), &references); err != nil {
			return owned.Refuse("decode the secrets of the entry: %v", err)
		}
	}
	if o.secrets, err = e.recordedSecrets(references); err != nil {
		return err
	}
	switch entry.Kind {
	case volumeKind:
		err = o.removeVolume(ctx)
	case snapshotKind:
		err = o.removeSnapshot(ctx)
	default:
		err = o.removeGroup(ctx)
	}
	if err != nil && ctx.Err() != nil {
		e.tired.Store(true)
	}
	return err
}

// A driver that gives no answer to maxSilences removals in turn is asked for no further one. Those after the first have
// shortPatience.
const (
	maxSilences   = 3
	shortPatience = 10 * time.Second
)

// patience returns how long the driver at a socket has for its next removal; the error says that it gave no answer to
// others.
func (e *Engine) patience(socket string) (time.Duration, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch n := e.silences[socket]; {
	case n >= maxSilences:
		return 0, fmt.Errorf("not tried: the driver at %s gave no answer to the removals of %d other objects", socket, n)
	case n > 0:
		return min(shortPatience, e.removeTimeout()), nil
	}
	return e.removeTimeout(), nil
}

// noteAnswer counts removals that the driver at a socket did not answer in time, in turn.
func (e *Engine) noteAnswer(socket string, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if status.Code(err) == codes.DeadlineExceeded {
		e.silences[socket]++
	} else {
		e.silences[socket] = 0
	}
}

// driverAt returns the connection to the external driver at a socket.
func (e *Engine) driverAt(ctx context.Context, socket string) (*driver, error) {
	for _, d := range e.drivers {
		if d.socket == socket && d.conn != nil {
			return d, nil
		}
	}
	return e.connectExternal(ctx, "", socket)
}

// owed is an object of an external driver that the ledger lists.
type owed struct {
	driver  *driver
	entry   op.LedgerEntry
	id      string // empty: not known
	secrets secrets
}

// request decodes the request of the entry.
func (o *owed) request(into proto.Message) error {
	return protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal([]byte(o.entry.Data[dataRequest]), into)
}

func (o *owed) secret(kind sidecar.Secret) map[string]string {
	return o.driver.engine.secretFor(o.secrets, kind)
}

// removeVolume undoes every step that a volume may have gone through; the steps are idempotent.
func (o *owed) removeVolume(ctx context.Context) error {
	req := &csi.CreateVolumeRequest{}
	if err := o.request(req); err != nil {
		return err
	}
	d, dir := o.driver, o.driver.engine.volumeDir(o.entry.Name)
	if len(req.GetVolumeCapabilities()) == 0 {
		return owned.Refuse("the request of the entry has no volume capability")
	}
	req.Secrets = o.secret(sidecar.Provisioner)
	if o.id == "" {
		res, err := o.create(ctx, req)
		if nothingMade(err) {
			return nil
		}
		if err != nil {
			return err
		}
		o.id = res.GetVolume().GetVolumeId()
	}
	v := &volume{driver: d, id: o.id, capability: req.GetVolumeCapabilities()[0], secrets: o.secrets,
		stagePath: filepath.Join(dir, "stage"), targetPath: filepath.Join(dir, "mount"), published: true,
		staged:   d.nodeCaps[csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME],
		attached: d.controllerCaps[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME]}
	if err := v.detach(ctx); err != nil && !gone(err) {
		return err
	}
	_, err := d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.id, Secrets: req.GetSecrets()})
	return exceptGone(err)
}

// create repeats the request of a volume, which returns its ID. If the source of a copy is gone, the driver may refuse
// the request although it has the copy: then the volume of that name is asked for without a source. That returns the
// copy, makes an empty volume in its place, or is refused because a copy is there.
func (o *owed) create(ctx context.Context, req *csi.CreateVolumeRequest) (*csi.CreateVolumeResponse, error) {
	res, err := o.driver.controller.CreateVolume(ctx, req)
	if !gone(err) || req.GetVolumeContentSource() == nil {
		return res, err
	}
	req.VolumeContentSource = nil
	res, err = o.driver.controller.CreateVolume(ctx, req)
	if status.Code(err) == codes.AlreadyExists {
		return nil, fmt.Errorf("%s exists, but its source is gone, without which %s does not return its ID: delete it "+
			"there by its name: %w", req.GetName(), o.driver.title(), err)
	}
	return res, err
}

func (o *owed) removeSnapshot(ctx context.Context) error {
	req := &csi.CreateSnapshotRequest{}
	if err := o.request(req); err != nil {
		return err
	}
	req.Secrets = o.secret(sidecar.Snapshotter)
	if o.id == "" {
		res, err := o.driver.controller.CreateSnapshot(ctx, req)
		if gone(err) {
			return o.deleteSnapshotsOf(ctx, req.GetSourceVolumeId())
		}
		if nothingMade(err) {
			return nil
		}
		if err != nil {
			return err
		}
		o.id = res.GetSnapshot().GetSnapshotId()
	}
	_, err := o.driver.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: o.id, Secrets: req.GetSecrets()})
	return exceptGone(err)
}

func (o *owed) removeGroup(ctx context.Context) error {
	req := &csi.CreateVolumeGroupSnapshotRequest{}
	if err := o.request(req); err != nil {
		return err
	}
	req.Secrets = o.secret(sidecar.GroupSnapshotter)
	res, err := o.driver.groups.CreateVolumeGroupSnapshot(ctx, req)
	if gone(err) {
		return o.deleteSnapshotsOf(ctx, req.GetSourceVolumeIds()...)
	}
	if nothingMade(err) {
		return nil
	}
	if err != nil {
		return err
	}
	del := &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: res.GetGroupSnapshot().GetGroupSnapshotId(),
		Secrets: req.GetSecrets()}
	for _, s := range res.GetGroupSnapshot().GetSnapshots() {
		del.SnapshotIds = append(del.SnapshotIds, s.GetSnapshotId())
	}
	_, err = o.driver.groups.DeleteVolumeGroupSnapshot(ctx, del)
	return exceptGone(err)
}

// deleteSnapshotsOf deletes the snapshots of deleted volumes of the run.
func (o *owed) deleteSnapshotsOf(ctx context.Context, volumes ...string) error {
	d := o.driver
	if !d.controllerCaps[csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS] {
		return fmt.Errorf("its volume is gone, and %s cannot list snapshots: whether %s exists is unknown; look there",
			d.title(), d.engine.driverName(o.entry.Name))
	}
	for _, id := range volumes {
		snapshots, err := o.listSnapshotsOf(ctx, id)
		if err != nil {
			return err
		}
		for _, s := range snapshots {
			_, err := d.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s,
				Secrets: o.secret(sidecar.Snapshotter)})
			if err := exceptGone(err); err != nil {
				return err
			}
		}
	}
	return nil
}

// listSnapshotsOf returns the IDs of the snapshots of a volume.
func (o *owed) listSnapshotsOf(ctx context.Context, volume string) (ids []string, err error) {
	for token := ""; ; {
		list, err := o.driver.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SourceVolumeId: volume,
			StartingToken: token, Secrets: o.secret(sidecar.SnapshotterList)})
		if err != nil {
			return nil, err
		}
		for _, s := range list.GetEntries() {
			ids = append(ids, s.GetSnapshot().GetSnapshotId())
		}
		if token = list.GetNextToken(); token == "" {
			return ids, nil
		}
	}
}

// gone reports that an object, or the source of a request, does not exist. By CSI a driver answers OK to the removal of
// a missing object; some answer NotFound.
func gone(err error) bool { return status.Code(err) == codes.NotFound }

func exceptGone(err error) error {
	if gone(err) {
		return nil
	}
	return err
}
