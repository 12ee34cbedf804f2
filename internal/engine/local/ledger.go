package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// Everything that a built-in driver makes is under one base directory, which
// one ledger entry names. Volumes and snapshots of an external driver have one
// entry each, with the request that makes them: requests are idempotent by
// name, so that repeating one returns the id of what a dead run may have made.

// Prepare adds the objects that a request will make to the ledger.
func (e *Engine) Prepare(r engine.Request) error {
	if e.Endpoint == "" {
		return nil
	}
	switch {
	case r.Workload != nil:
		for i := range r.Workload.Claims {
			claim := &r.Workload.Claims[i]
			v, err := e.newVolume(claim.Name, claim)
			if err != nil {
				return err
			}
			if err := e.addVolumeEntry(v, nil); err != nil {
				return err
			}
		}
	case r.Volume != nil:
		v, err := e.newVolume(r.Name, &r.Volume.Claim)
		if err != nil {
			return err
		}
		return e.addVolumeEntry(v, r.Volume)
	case r.Snapshot != nil && !r.Snapshot.Group:
		v := e.findVolume(r.Snapshot.Sources[0].Name)
		if v == nil {
			return nil
		}
		if err := e.markSources(v.id); err != nil {
			return err
		}
		return e.addEntry("snapshot", r.Name, &csi.CreateSnapshotRequest{SourceVolumeId: v.id,
			Name: e.driverName(r.Name)})
	case r.Snapshot != nil:
		req := &csi.CreateVolumeGroupSnapshotRequest{Name: e.driverName(r.Name)}
		for _, o := range r.Snapshot.Sources {
			req.SourceVolumeIds = append(req.SourceVolumeIds, o.Handle)
		}
		if err := e.markSources(req.GetSourceVolumeIds()...); err != nil {
			return err
		}
		return e.addEntry("group", r.Name, req)
	}
	return nil
}

func (e *Engine) addVolumeEntry(v *volume, want *engine.Volume) error {
	if want != nil {
		if err := e.setSource(v, want); err != nil {
			return err
		}
	}
	return e.addEntry("volume", v.object.Name, v.request)
}

func (e *Engine) addEntry(kind, name string, req proto.Message) error {
	b, err := protojson.Marshal(req)
	if err != nil {
		return err
	}
	data := map[string]string{"endpoint": e.Endpoint, "request": string(b)}
	return e.session.Ledger.Add(op.LedgerEntry{Kind: kind, Name: name, Data: data})
}

// markSources records in the run's directory that volumes are the run's, so that a clean-up may delete their
// snapshots after the volumes are gone.
func (e *Engine) markSources(volumes ...string) error {
	for _, id := range volumes {
		path := e.sourceMark(id)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) sourceMark(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return filepath.Join(e.own.Scratch, "sources", hex.EncodeToString(sum[:]))
}

// checkExternal restricts the clean-up of an external driver to objects with names of the run, at the socket of
// the run.
func (e *Engine) checkExternal(entry op.LedgerEntry) error {
	if entry.Data["endpoint"] == "" || entry.Data["endpoint"] != e.own.Endpoint {
		return owned.Refuse("run %s did not use the driver at %q", e.own.RunID, entry.Data["endpoint"])
	}
	var req struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(entry.Data["request"]), &req); err != nil {
		return owned.Refuse("decode the request of the entry: %v", err)
	}
	if want := e.driverName(entry.Name); req.Name != want {
		return owned.Refuse("the entry requests %q, want the run's %s", req.Name, want)
	}
	if strings.ContainsRune(entry.Name, '/') {
		return owned.Refuse("invalid object name %q", entry.Name)
	}
	return e.own.Owns(e.own.Scratch) // below which volumes are unmounted
}

// markDone marks an entry as done; objects of built-in drivers have no entries.
func (e *Engine) markDone(kind, name string) error {
	if e.Endpoint == "" {
		return nil
	}
	return e.session.Ledger.Done(kind, name)
}

// refused forgets an object whose creation the driver refused, so that the end of the run does not ask for it again.
// The codes say that nothing was made (CSI specification, "Error Scheme").
func (e *Engine) refused(err error, kind, name string) error {
	if code := status.Code(err); code != codes.InvalidArgument && code != codes.Unimplemented {
		return err
	}
	if ledgerErr := e.markDone(kind, name); ledgerErr != nil {
		return errors.Join(err, ledgerErr)
	}
	return err
}

// recover removes the object of an entry of an external driver after asking the driver for its id.
func (e *Engine) recover(ctx context.Context, entry op.LedgerEntry) error {
	d, err := e.externalDriver(ctx, entry.Data["endpoint"])
	if err != nil {
		return err
	}
	text := []byte(entry.Data["request"])
	switch entry.Kind {
	case "volume":
		req := &csi.CreateVolumeRequest{}
		if err := protojson.Unmarshal(text, req); err != nil {
			return err
		}
		return d.recoverVolume(ctx, req, entry)
	case "snapshot":
		req := &csi.CreateSnapshotRequest{}
		if err := protojson.Unmarshal(text, req); err != nil {
			return err
		}
		return d.recoverSnapshot(ctx, req)
	default:
		req := &csi.CreateVolumeGroupSnapshotRequest{}
		if err := protojson.Unmarshal(text, req); err != nil {
			return err
		}
		res, err := d.groups.CreateVolumeGroupSnapshot(ctx, req)
		if notFound(err) {
			return d.deleteSnapshotsOf(ctx, req.GetSourceVolumeIds()...)
		}
		if err != nil {
			return err
		}
		del := &csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: res.GetGroupSnapshot().GetGroupSnapshotId()}
		for _, s := range res.GetGroupSnapshot().GetSnapshots() {
			del.SnapshotIds = append(del.SnapshotIds, s.GetSnapshotId())
		}
		_, err = d.groups.DeleteVolumeGroupSnapshot(ctx, del)
		return err
	}
}

func (d *driver) recoverSnapshot(ctx context.Context, req *csi.CreateSnapshotRequest) error {
	res, err := d.controller.CreateSnapshot(ctx, req)
	if notFound(err) {
		return d.deleteSnapshotsOf(ctx, req.GetSourceVolumeId())
	}
	if err != nil {
		return err
	}
	_, err = d.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: res.GetSnapshot().GetSnapshotId()})
	return err
}

// deleteSnapshotsOf deletes the snapshots of deleted volumes of the run. A driver that cannot list snapshots
// is assumed to have none, since it does not know their source.
func (d *driver) deleteSnapshotsOf(ctx context.Context, volumes ...string) error {
	if !d.controllerCaps[csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS] {
		return nil
	}
	for _, id := range volumes {
		if _, err := os.Lstat(d.engine.sourceMark(id)); err != nil {
			return owned.Refuse("volume %s is gone, and no mark shows that it and its snapshots were the run's", id)
		}
		list, err := d.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SourceVolumeId: id})
		if err != nil {
			return err
		}
		for _, s := range list.GetEntries() {
			if _, err := d.controller.DeleteSnapshot(ctx,
				&csi.DeleteSnapshotRequest{SnapshotId: s.GetSnapshot().GetSnapshotId()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// notFound reports that the source of a request is gone, so that the request cannot have made anything since.
func notFound(err error) bool { return status.Code(err) == codes.NotFound }

// recoverVolume undoes every step that a volume may have gone through; the steps are idempotent.
func (d *driver) recoverVolume(ctx context.Context, req *csi.CreateVolumeRequest, entry op.LedgerEntry) error {
	res, err := d.controller.CreateVolume(ctx, req)
	if notFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	dir := d.engine.volumeDir(entry.Name)
	v := &volume{driver: d, id: res.GetVolume().GetVolumeId(), capability: req.GetVolumeCapabilities()[0],
		stagePath: filepath.Join(dir, "stage"), targetPath: filepath.Join(dir, "mount"), published: true,
		staged:   d.nodeCaps[csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME],
		attached: d.controllerCaps[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME]}
	if err := v.detach(ctx); err != nil {
		return err
	}
	_, err = d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.id})
	return err
}

// externalDriver returns the connection to an external driver.
func (e *Engine) externalDriver(ctx context.Context, endpoint string) (*driver, error) {
	for _, d := range e.drivers {
		if d.socket == endpoint && d.conn != nil {
			return d, nil
		}
	}
	d := &driver{engine: e, name: endpoint, socket: endpoint, exited: make(chan struct{}), stopped: make(chan struct{})}
	if err := d.connect(ctx); err != nil {
		return nil, err
	}
	e.drivers[endpoint] = d
	return d, nil
}
