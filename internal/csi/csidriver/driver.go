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
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// backend does the physical work behind the common part, which serialises the calls on one volume or snapshot
// and keeps the state. After a failed method, remove or its counterpart must be able to clean up; removing a
// missing object succeeds.
type backend interface {
	// modes lists the supported access modes.
	modes() []csi.VolumeCapability_AccessMode_Mode
	// parameters lists the supported StorageClass parameters.
	parameters() []string
	// shape validates a volume and sets its file system; it returns the smallest size and the granularity of
	// sizes in bytes. src is the content source of a new volume, or nil.
	shape(v *volume, src *origin) (smallest, granularity int64, err error)
	// available returns the bytes left for new volumes if the existing ones take allocated.
	available(allocated int64) (int64, error)

	// create creates the volume, empty or from src; it may record in v what it made.
	create(ctx context.Context, v *volume, src *origin) error
	remove(ctx context.Context, v volume) error
	snapshot(ctx context.Context, s snapshot, v volume) error
	removeSnapshot(ctx context.Context, s snapshot) error
	// expand enlarges the volume without its file system.
	expand(ctx context.Context, v *volume, size int64) error

	// publish makes the volume available at path; unpublish removes path. Both are idempotent. A failed
	// publish leaves path unchanged.
	publish(ctx context.Context, v *volume, staging, path string, readOnly bool) error
	unpublish(ctx context.Context, v volume, path string) error
	// destroy frees everything below the base directory; the tables may be empty.
	destroy(ctx context.Context) error
}

// origin is the content source of a volume: one field is set.
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
	// fencer: a volume can be detached from a node that still has it staged, since the node's I/O cannot reach it.
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
	// spaceDescriber describes what available measures and how to increase it.
	spaceDescriber interface {
		describeSpace() (of, cure string)
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

	opts    Options
	backend backend
	log     *truthLog
	locks   keyLocks
	vols    *table[volume]
	snaps   *table[snapshot]
	groups  *table[group]

	allocMu   sync.Mutex
	allocated int64 // the sum of the volumes' sizes
}

func newDriver(o Options, log *truthLog) (*driver, error) {
	d := &driver{opts: o, log: log}
	d.backend = backends[o.Backend](d)
	ctx := context.Background() // start-up has no caller that could cancel it
	if p, ok := d.backend.(preparer); ok {
		if err := p.prepare(ctx); err != nil {
			return nil, fmt.Errorf("prepare %s for backend %s: %w", o.BaseDir, o.Backend, err)
		}
	}
	if err := d.openTables(); err != nil {
		return nil, err
	}
	if err := d.recover(ctx); err != nil {
		return nil, fmt.Errorf("recover the state in %s: %w", o.BaseDir, err)
	}
	for _, v := range d.vols.all() {
		d.allocated += v.Size
	}
	return d, nil
}

func (d *driver) openTables() error {
	// null avoids the cost of syncing; its lists still survive the end of the process.
	durable := d.opts.Backend != "null"
	var errVols, errSnaps, errGroups error
	d.vols, errVols = openTable[volume](d.opts.state("volumes"), durable)
	d.snaps, errSnaps = openTable[snapshot](d.opts.state("snapshots"), durable)
	d.groups, errGroups = openTable[group](d.opts.state("groups"), durable)
	return errors.Join(errVols, errSnaps, errGroups)
}

// state returns the path of a state file; empty: memory only.
func (o *Options) state(kind string) string {
	if o.BaseDir == "" {
		return ""
	}
	return filepath.Join(o.BaseDir, "state", kind+".jsonl")
}

func (d *driver) close() error {
	return errors.Join(d.vols.close(), d.snaps.close(), d.groups.close(), d.log.close())
}

// recover undoes what a killed driver left half done. Thawing comes first: a frozen file system blocks
// everything else.
func (d *driver) recover(ctx context.Context) error {
	rec, _ := d.backend.(recoverer)
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
			problems = append(problems, errors.Join(d.backend.remove(ctx, v), d.vols.delete(v.ID)))
		}
	}
	if rec != nil {
		problems = append(problems, rec.reconcile(ctx))
	}
	return errors.Join(problems...)
}

type nodeKey struct{}

// nodeOf returns the node whose socket received a call.
func (d *driver) nodeOf(ctx context.Context) string {
	if node, ok := ctx.Value(nodeKey{}).(string); ok {
		return node
	}
	return d.opts.NodeID
}

// nodeIDs lists the served nodes, the driver's own first.
func (d *driver) nodeIDs() []string {
	return append([]string{d.opts.NodeID}, slices.Sorted(maps.Keys(d.opts.Nodes))...)
}

// maybeFrozen lists the volumes with an unfinished snapshot or clone.
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

// objectID derives an id from a name, so that a request repeated after a crash finds the remains of the first
// attempt.
func objectID(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + "-" + hex.EncodeToString(sum[:10])
}

// toStatus converts an error to a gRPC status with the code that CSI defines.
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

// volumeOrNotFound returns a clone, which the caller may change and put.
func (d *driver) volumeOrNotFound(id string) (volume, error) {
	v, ok := d.vols.get(id)
	if !ok || v.Phase != ready {
		return volume{}, status.Errorf(codes.NotFound, "volume %q not found", id)
	}
	return v.clone(), nil
}

// withVolume calls change with a clone of the volume under its lock and stores the result on success. The
// work continues when the caller gives up, so that a repeated call finds it done.
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

// reserve takes bytes from the capacity or fails; a negative amount returns bytes.
func (d *driver) reserve(bytes int64) error {
	d.allocMu.Lock()
	defer d.allocMu.Unlock()
	if bytes > 0 {
		left, err := d.availableCapacity()
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

// exhausted returns an error that says which capacity is exhausted and how to raise it.
func (d *driver) exhausted(bytes, left int64) error {
	of, cure := "the capacity", ""
	if d.opts.Capacity > 0 {
		of, cure = fmt.Sprintf("the capacity (%s)", formatSize(d.opts.Capacity)), "raise it: "+option("capacity")
	} else if r, ok := d.backend.(spaceDescriber); ok {
		of, cure = r.describeSpace()
	}
	if cure != "" {
		cure = "; " + cure
	}
	return status.Errorf(codes.ResourceExhausted, "%s requested, %s available of %s%s", formatSize(bytes),
		formatSize(left), of, cure)
}

// option says where an option of the driver is set.
func option(name string) string {
	return fmt.Sprintf("StorageClass parameter driver.cnsbench.dev/%s, or csi driver --%s", name, name)
}

// formatSize formats a size, rounded down to a tenth of its unit.
func formatSize(bytes int64) string {
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

// availableCapacity returns the capacity for new volumes; the caller holds allocMu.
func (d *driver) availableCapacity() (int64, error) {
	if d.opts.Capacity > 0 {
		return max(0, d.opts.Capacity-d.allocated), nil
	}
	left, err := d.backend.available(d.allocated)
	return max(0, left), err
}

// resolveSize returns the size for a CSI capacity range: at least required and smallest, rounded up to the
// granularity, at most limit. If nothing is required it is the default, or the limit if that is lower.
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
		return 0, status.Errorf(codes.OutOfRange,
			"the smallest size that fits is %d bytes (at least %d, in steps of %d), above the limit of %d",
			size, smallest, granularity, limit)
	}
	return size, nil
}

// busyTimeout is how long a busy mount or device is retried. A starting process has copies of all mounts
// until it has its own root, which takes more than a second on a loaded machine.
const busyTimeout = 5 * time.Second

// Options configure one driver process.
type Options struct {
	// Backend is one of Backends().
	Backend string
	// BaseDir holds the driver's state, images and pool. It is created if it does not exist. One driver may
	// use it at a time. It may be empty with the null backend, whose lists are then in memory only.
	BaseDir string
	// NodeID is the node of NodeGetInfo and ControllerPublishVolume.
	NodeID string
	// Nodes are further nodes on the same machine, which share the driver's storage: id → unix socket on
	// which Serve answers as that node. A volume of a single-node mode is attached to one of them at a time.
	Nodes map[string]string
	// Capacity limits the total size of the volumes in bytes; 0: the backend's limit.
	Capacity int64
	// RoundTo is the granularity of sizes in bytes; 0: the backend's.
	RoundTo int64
	// Inject is the path of an injection file, or its YAML; empty: no injection.
	Inject string
	// Seed makes the injected faults repeatable.
	Seed uint64
	// TruthLog is the file to which one JSON line per RPC is appended; empty: no log.
	TruthLog string
	// FSType is the file system of loopfile volumes whose request names none; default ext4.
	FSType string
	// PoolSize is the size in bytes of the sparse pool image, if the backend makes one; default 16 GiB.
	PoolSize int64
	// Below are the directories, beside BaseDir, below which Destroy may unmount and remove the targets of volumes;
	// none: anywhere.
	Below []string
	// Version is returned by GetPluginInfo; default "devel".
	Version string
	// Around, if set, is called around the work of each call, within its injected effects and its record in the truth
	// log. Drivers of tests change requests and answers there. The call's info has the driver's services.
	Around grpc.UnaryServerInterceptor `json:"-"`
}
