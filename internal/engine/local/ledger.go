package local

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// Everything that our own drivers make lies under one base directory, which
// one ledger entry names. A foreign driver's volumes and snapshots are entered
// one by one, with the request that makes them: requests are idempotent by
// name, so that asking again tells the id of what a dead run may have made.

// Prepare enters what a request will make into the ledger.
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
			if err := e.owe(v, nil); err != nil {
				return err
			}
		}
	case r.Volume != nil:
		v, err := e.newVolume(r.Name, &r.Volume.Claim)
		if err != nil {
			return err
		}
		return e.owe(v, r.Volume)
	case r.Snapshot != nil && !r.Snapshot.Group:
		v := e.findVolume(r.Snapshot.Sources[0].Name)
		if v == nil {
			return nil
		}
		if err := e.prove(v.id); err != nil {
			return err
		}
		return e.oweRequest("snapshot", r.Name, &csi.CreateSnapshotRequest{SourceVolumeId: v.id, Name: e.driverName(r.Name)})
	case r.Snapshot != nil:
		req := &csi.CreateVolumeGroupSnapshotRequest{Name: e.driverName(r.Name)}
		for _, o := range r.Snapshot.Sources {
			req.SourceVolumeIds = append(req.SourceVolumeIds, o.Handle)
		}
		if err := e.prove(req.GetSourceVolumeIds()...); err != nil {
			return err
		}
		return e.oweRequest("group", r.Name, req)
	}
	return nil
}

func (e *Engine) owe(v *volume, want *engine.Volume) error {
	if want != nil {
		if err := e.setSource(v, want); err != nil {
			return err
		}
	}
	return e.oweRequest("volume", v.object.Name, v.request)
}

func (e *Engine) oweRequest(kind, name string, req proto.Message) error {
	b, err := protojson.Marshal(req)
	if err != nil {
		return err
	}
	data := map[string]string{"endpoint": e.Endpoint, "request": string(b)}
	return e.session.Ledger.Add(op.LedgerEntry{Kind: kind, Name: name, Data: data})
}

// prove notes in the run's own directory that volumes are the run's, so that a
// clean-up may delete their snapshots when they are gone themselves.
func (e *Engine) prove(volumes ...string) error {
	for _, id := range volumes {
		path := e.proof(id)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			return err
		}
	}
	return nil
}

func (e *Engine) proof(volume string) string {
	sum := sha256.Sum256([]byte(volume))
	return filepath.Join(e.own.Scratch, "sources", hex.EncodeToString(sum[:]))
}

// checkForeign: a driver that the run did not start is asked only for objects with
// names of the run, at the socket that the run was given.
func (e *Engine) checkForeign(entry op.LedgerEntry) error {
	if entry.Data["endpoint"] == "" || entry.Data["endpoint"] != e.own.Endpoint {
		return owned.Refuse("run %s did not use the driver at %q", e.own.RunID, entry.Data["endpoint"])
	}
	var req struct {
		Name string `json:"name"`
	}
	if err := json.Unmarshal([]byte(entry.Data["request"]), &req); err != nil {
		return owned.Refuse("the request of the entry cannot be read: %v", err)
	}
	if want := e.driverName(entry.Name); req.Name != want {
		return owned.Refuse("the entry asks for %q, which is not the run's %s", req.Name, want)
	}
	if strings.ContainsRune(entry.Name, '/') {
		return owned.Refuse("%q is not the name of an object", entry.Name)
	}
	return e.own.Owns(e.own.Scratch) // volumes are unmounted below it
}

// settle strikes an entry; our own drivers' objects have none.
func (e *Engine) settle(kind, name string) error {
	if e.Endpoint == "" {
		return nil
	}
	return e.session.Ledger.Done(kind, name)
}

// recover removes what an entry of a foreign driver stands for, asking the
// driver for its id first.
func (e *Engine) recover(ctx context.Context, entry op.LedgerEntry) error {
	d, err := e.foreign(ctx, entry.Data["endpoint"])
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

// deleteSnapshotsOf deletes what is left of volumes that are gone: they were
// the run's own, so their snapshots are. A driver that cannot list them is
// taken to have none, since it does not know their source.
func (d *driver) deleteSnapshotsOf(ctx context.Context, volumes ...string) error {
	if !d.controls[csi.ControllerServiceCapability_RPC_LIST_SNAPSHOTS] {
		return nil
	}
	for _, id := range volumes {
		if _, err := os.Lstat(d.engine.proof(id)); err != nil {
			return owned.Refuse("volume %s is gone, and nothing proves that it, and so its snapshots, were the run's", id)
		}
		list, err := d.controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{SourceVolumeId: id})
		if err != nil {
			return err
		}
		for _, s := range list.GetEntries() {
			if _, err := d.controller.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: s.GetSnapshot().GetSnapshotId()}); err != nil {
				return err
			}
		}
	}
	return nil
}

// notFound is the answer to a request whose source is gone: nothing can have
// come of it since.
func notFound(err error) bool { return status.Code(err) == codes.NotFound }

// recoverVolume undoes every step that a volume may have gone through; the
// steps are idempotent.
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
		staged:   d.nodes[csi.NodeServiceCapability_RPC_STAGE_UNSTAGE_VOLUME],
		attached: d.controls[csi.ControllerServiceCapability_RPC_PUBLISH_UNPUBLISH_VOLUME]}
	if err := v.detach(ctx); err != nil {
		return err
	}
	_, err = d.controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: v.id})
	return err
}

// foreign returns the connection to a driver that is not ours.
func (e *Engine) foreign(ctx context.Context, endpoint string) (*driver, error) {
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
