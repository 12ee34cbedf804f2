package csidriver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// backend does the physical work behind the common part. The common part serialises the calls on one volume or
// snapshot, keeps the state, and calls nothing twice at once for one object. A method that fails leaves nothing behind
// that remove or its counterpart cannot remove; removing what is not there succeeds.
type backend interface {
	// modes lists the access modes that can be served.
	modes() []csi.VolumeCapability_AccessMode_Mode
	// parameters lists the StorageClass parameters that are understood.
	parameters() []string
	// shape checks a volume against what the backend can do and sets its file system; it returns the smallest size and
	// the granularity of sizes in bytes. src is what a new volume is made from, or nil.
	shape(v *volume, src *origin) (smallest, granularity int64, err error)
	// available returns the bytes left for new volumes when the existing ones take allocated.
	available(allocated int64) (int64, error)

	// create makes the volume, from nothing or from src; it may note in v what it made.
	create(ctx context.Context, v *volume, src *origin) error
	remove(ctx context.Context, v volume) error
	snapshot(ctx context.Context, s snapshot, v volume) error
	removeSnapshot(ctx context.Context, s snapshot) error
	// expand makes the volume larger, as far as that needs no file system.
	expand(ctx context.Context, v *volume, size int64) error

	// publish makes the volume appear at path; unpublish makes path disappear. Both are idempotent. A publish that fails
	// leaves path as it was.
	publish(ctx context.Context, v *volume, staging, path string, readOnly bool) error
	unpublish(ctx context.Context, v volume, path string) error
	// destroy frees everything below the base directory; the tables may be empty.
	destroy(ctx context.Context) error
}

// origin is what a volume is made from: one field is set.
type origin struct {
	snapshot *snapshot
	volume   *volume
}

// Optional powers of a backend; each is one or several CSI capabilities.
type (
	// attacher offers ControllerPublishVolume.
	attacher interface {
		attach(ctx context.Context, v *volume) error
		detach(ctx context.Context, v volume) error
	}
	// stager offers NodeStageVolume.
	stager interface {
		stage(ctx context.Context, v *volume, path string, flags []string) error
		unstage(ctx context.Context, v volume, path string) error
	}
	// fencer says that a volume can be taken from a node that still has it staged: nothing of the node's reaches it.
	fencer interface{ fences() }
	// nodeGrower offers NodeExpandVolume.
	nodeGrower interface {
		grow(ctx context.Context, v *volume) error
	}
	// modifier offers ControllerModifyVolume.
	modifier interface {
		// checkMutable refuses what cannot be set.
		checkMutable(params map[string]string) error
		// modify puts v.Mutable into effect.
		modify(ctx context.Context, v volume) error
	}
	// grouper offers group snapshots, taken at one instant.
	grouper interface {
		snapshotGroup(ctx context.Context, snaps []snapshot, vols []volume) error
	}
	// roomer says what available is about, and how to have more of it.
	roomer interface {
		room() (of, cure string)
	}
	// preparer makes the pool before anything else happens.
	preparer interface {
		prepare(ctx context.Context) error
	}
	// recoverer repairs reality after a crash: first thaw, then, with the state repaired, reconcile.
	recoverer interface {
		thaw(v volume) error
		reconcile(ctx context.Context) error
	}
)

// driver is the common part: the CSI services over a backend.
type driver struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedGroupControllerServer
	csi.UnimplementedNodeServer

	opts   Options
	be     backend
	log    *truthLog
	locks  keyLocks
	vols   *table[volume]
	snaps  *table[snapshot]
	groups *table[group]

	allocMu   sync.Mutex
	allocated int64 // the sum of the volumes' sizes
}

func newDriver(o Options, log *truthLog) (*driver, error) {
	d := &driver{opts: o, log: log}
	d.be = backends[o.Backend](d)
	ctx := context.Background() // the root of start-up: nobody is waiting who could cancel it
	if p, ok := d.be.(preparer); ok {
		if err := p.prepare(ctx); err != nil {
			return nil, fmt.Errorf("preparing %s for backend %s: %w", o.BaseDir, o.Backend, err)
		}
	}
	if err := d.openTables(); err != nil {
		return nil, err
	}
	if err := d.recover(ctx); err != nil {
		return nil, fmt.Errorf("recovering the state in %s: %w", o.BaseDir, err)
	}
	for _, v := range d.vols.all() {
		d.allocated += v.Size
	}
	return d, nil
}

func (d *driver) openTables() error {
	path := func(kind string) string {
		if d.opts.BaseDir == "" {
			return ""
		}
		return filepath.Join(d.opts.BaseDir, "state", kind+".jsonl")
	}
	// null is meant to cost nothing; its lists still survive the death of the process.
	durable := d.opts.Backend != "null"
	var errVols, errSnaps, errGroups error
	d.vols, errVols = openTable[volume](path("volumes"), durable)
	d.snaps, errSnaps = openTable[snapshot](path("snapshots"), durable)
	d.groups, errGroups = openTable[group](path("groups"), durable)
	return errors.Join(errVols, errSnaps, errGroups)
}

func (d *driver) close() error {
	return errors.Join(d.vols.close(), d.snaps.close(), d.groups.close(), d.log.close())
}

// recover undoes what a killed driver left half done. Thawing comes first: a frozen file system blocks everything else.
func (d *driver) recover(ctx context.Context) error {
	rec, _ := d.be.(recoverer)
	var problems []error
	if rec != nil {
		for _, id := range d.maybeFrozen() {
			if v, ok := d.vols.get(id); ok {
				problems = append(problems, rec.thaw(v))
			}
		}
	}
	for _, g := range d.groups.all() {
		if g.Phase != ready {
			problems = append(problems, d.groups.delete(g.ID))
		}
	}
	for _, s := range d.snaps.all() {
		if _, known := d.groups.get(s.Group); s.Phase != ready || s.Group != "" && !known {
			problems = append(problems, d.dropSnapshot(ctx, s))
		}
	}
	for _, v := range d.vols.all() {
		if v.Phase != ready {
			problems = append(problems, errors.Join(d.be.remove(ctx, v), d.vols.delete(v.ID)))
		}
	}
	if rec != nil {
		problems = append(problems, rec.reconcile(ctx))
	}
	return errors.Join(problems...)
}

type nodeKey struct{}

// nodeOf is the node on whose socket a call came.
func (d *driver) nodeOf(ctx context.Context) string {
	if node, ok := ctx.Value(nodeKey{}).(string); ok {
		return node
	}
	return d.opts.NodeID
}

// nodeIDs lists the nodes that this driver serves, its own first.
func (d *driver) nodeIDs() []string {
	return append([]string{d.opts.NodeID}, slices.Sorted(maps.Keys(d.opts.Nodes))...)
}

// maybeFrozen lists the volumes of which a snapshot or clone was being made.
func (d *driver) maybeFrozen() []string {
	var ids []string
	for _, s := range d.snaps.all() {
		if s.Phase == creating {
			ids = append(ids, s.Volume)
		}
	}
	for _, v := range d.vols.all() {
		if v.Phase == creating && v.Source != nil && v.Source.Volume != "" {
			ids = append(ids, v.Source.Volume)
		}
	}
	return ids
}

// objectID derives an id from a name, so that a request repeated after a crash finds the remains of the first attempt.
func objectID(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + "-" + hex.EncodeToString(sum[:10])
}

// toStatus gives an error the code that CSI asks for.
func toStatus(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	switch {
	case errors.Is(err, context.Canceled):
		return status.Error(codes.Canceled, err.Error())
	case errors.Is(err, context.DeadlineExceeded):
		return status.Error(codes.DeadlineExceeded, err.Error())
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return status.Error(codes.ResourceExhausted, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}

func invalid(format string, args ...any) error {
	return status.Errorf(codes.InvalidArgument, format, args...)
}

// volumeOrNotFound returns a clone that the caller may change and put.
func (d *driver) volumeOrNotFound(id string) (volume, error) {
	v, ok := d.vols.get(id)
	if !ok || v.Phase != ready {
		return volume{}, status.Errorf(codes.NotFound, "no volume has the id %q", id)
	}
	return v.clone(), nil
}

// withVolume runs change on a clone of the volume under its lock and keeps the result when that succeeds. The work goes
// on when the caller gives up, so that a repeated call finds it done.
func (d *driver) withVolume(ctx context.Context, id string, change func(context.Context, *volume) error) error {
	unlock, err := d.locks.lock(ctx, id)
	if err != nil {
		return err
	}
	defer unlock()
	v, err := d.volumeOrNotFound(id)
	if err != nil {
		return err
	}
	if err := change(context.WithoutCancel(ctx), &v); err != nil {
		return err
	}
	return d.vols.put(id, v)
}

// reserve takes bytes from the capacity, or refuses; a negative amount gives back.
func (d *driver) reserve(bytes int64) error {
	d.allocMu.Lock()
	defer d.allocMu.Unlock()
	if bytes > 0 {
		left, err := d.left()
		if err != nil {
			return err
		}
		if bytes > left {
			return d.exhausted(bytes, left)
		}
	}
	d.allocated += bytes
	return nil
}

// exhausted says of what there is too little, and the cure.
func (d *driver) exhausted(bytes, left int64) error {
	of, cure := "the capacity", ""
	if d.opts.Capacity > 0 {
		of, cure = fmt.Sprintf("the capacity (%s)", readable(d.opts.Capacity)), "raise it: "+option("capacity")
	} else if r, ok := d.be.(roomer); ok {
		of, cure = r.room()
	}
	if cure != "" {
		cure = "; " + cure
	}
	return status.Errorf(codes.ResourceExhausted, "%s is asked for, %s are left of %s%s", readable(bytes), readable(left), of, cure)
}

// option tells where an option of the driver is set.
func option(name string) string {
	return fmt.Sprintf("StorageClass parameter driver.cnsbench.dev/%s, or csi-driver --%s", name, name)
}

// readable writes a size for people, rounded down to a tenth of its unit.
func readable(bytes int64) string {
	for i, unit := range []string{"Ti", "Gi", "Mi", "Ki"} {
		size := kib << (10 * (3 - i))
		if bytes < size {
			continue
		}
		if tenth := bytes % size * 10 / size; tenth > 0 {
			return fmt.Sprintf("%d.%d%s", bytes/size, tenth, unit)
		}
		return fmt.Sprintf("%d%s", bytes/size, unit)
	}
	return strconv.FormatInt(bytes, 10)
}

// left is the capacity for new volumes; allocMu is held.
func (d *driver) left() (int64, error) {
	if d.opts.Capacity > 0 {
		return max(0, d.opts.Capacity-d.allocated), nil
	}
	left, err := d.be.available(d.allocated)
	return max(0, left), err
}

// resolveSize finds the size of a volume from the CSI capacity range: at least required and smallest, rounded up to the
// granularity, at most limit. With nothing required the default is taken, or the limit when that is lower.
func resolveSize(required, limit, smallest, granularity int64) (int64, error) {
	if required < 0 || limit < 0 || limit > 0 && limit < required {
		return 0, invalid("the capacity range (required %d, limit %d bytes) is empty", required, limit)
	}
	size := required
	if size == 0 {
		size = defaultVolumeSize
		if limit > 0 {
			size = min(size, limit/granularity*granularity)
		}
	}
	size = max(size, smallest)
	if size > math.MaxInt64-granularity {
		return 0, status.Errorf(codes.OutOfRange, "%d bytes is more than any volume can have", required)
	}
	size = (size + granularity - 1) / granularity * granularity
	if limit > 0 && size > limit {
		return 0, status.Errorf(codes.OutOfRange, "the smallest size that fits is %d bytes (at least %d, in steps of %d), above the limit of %d",
			size, smallest, granularity, limit)
	}
	return size, nil
}

// busyPatience is how long a busy mount or device is tried again before that is an error. A
// process that is just being started has copies of all mounts until it has a root of its own,
// which takes more than a second on a loaded machine.
const busyPatience = 5 * time.Second
