package awkwarddriver

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
)

// Name is the driver's name.
const Name = "awkward.csi.example.com"

// Config is what a driver needs beside its switches.
type Config struct {
	Options
	BaseDir string // of its state and volumes
	Log     string // file of its records; empty: none
	Inject  string // delays and errors, as of the built-in drivers
	Seed    uint64 // of Inject
	NodeID  string // empty: "local"
	Name    string // of the driver; empty: Name
	Socket  string // on which Serve(testing.TB, …) serves; empty: one of its own
	Nodes   map[string]string
}

// Driver is one driver. It is safe for concurrent use.
type Driver struct {
	*csidriver.Server

	config Config

	mu       sync.Mutex
	answered map[string]int         // failures so far, by kind, RPC and object
	working  map[string]*background // by RPC and object
	first    map[string]string      // the first ID of volumes and snapshots
}

// New returns a driver, whose Serve answers calls.
func New(c Config) (*Driver, error) {
	d := &Driver{config: c, answered: map[string]int{}, working: map[string]*background{},
		first: map[string]string{}}
	var err error
	d.Server, err = csidriver.New(csidriver.Options{Backend: "null", BaseDir: c.BaseDir, TruthLog: c.Log,
		Inject: c.Inject, Seed: c.Seed, NodeID: c.NodeID, Nodes: c.Nodes, RoundTo: c.RoundUp, Around: d.around})
	return d, err
}

// Close waits for the work in the background, and releases the driver's state.
func (d *Driver) Close() error {
	d.mu.Lock()
	working := slices.Collect(maps.Values(d.working))
	d.mu.Unlock()
	for _, b := range working {
		<-b.done
	}
	return d.Server.Close()
}

// services are those of the driver without awkwardness.
type services interface {
	csi.ControllerServer
	csi.NodeServer
	csi.GroupControllerServer
}

// call is a call that arrived.
type call struct {
	rpc   string
	req   proto.Message // with the IDs that the client knows
	plain services
}

// around makes a call awkward.
func (d *Driver) around(ctx context.Context, req any, info *grpc.UnaryServerInfo, work grpc.UnaryHandler) (any, error) {
	if looks(ctx) {
		return work(ctx, req)
	}
	c := &call{path.Base(info.FullMethod), req.(proto.Message), info.Server.(services)}
	for _, check := range []func(*call) error{d.offered, d.demands, d.fails} {
		if err := check(c); err != nil {
			return nil, err
		}
	}
	if d.config.Lies[c.rpc] == Early {
		return unworked(c.rpc), nil
	}
	resp, err := d.inBackground(ctx, c, func(ctx context.Context) (any, error) { return d.work(ctx, c, work) })
	if err != nil {
		return nil, err
	}
	if d.again("timed out", &d.config.TimedOut, c) {
		return nil, status.Error(codes.DeadlineExceeded, "the answer came too late")
	}
	return resp, nil
}

// work does the work of a call, and returns its answer.
func (d *Driver) work(ctx context.Context, c *call, handler grpc.UnaryHandler) (any, error) {
	req := proto.Clone(c.req)
	renameIDs(req, plainID)
	withoutDemands(req)
	if err := d.before(ctx, c, req); err != nil {
		return nil, err
	}
	resp, err := handler(ctx, req)
	if err == nil {
		err = d.after(ctx, c, req)
	}
	if err != nil {
		return nil, err
	}
	return d.answer(c, proto.Clone(resp.(proto.Message))), nil
}

// changes reports whether a call creates, changes or deletes.
func (c *call) changes() bool {
	return c.object() != "" && !strings.Contains(c.rpc, "Get") && !isList(c.rpc)
}

func isList(rpc string) bool {
	return strings.HasPrefix(rpc, "List") || strings.HasPrefix(rpc, "Validate")
}

// object returns the name, or the ID, of the object of a call; empty: it has none.
func (c *call) object() string {
	switch m := c.req.(type) {
	case interface{ GetName() string }:
		return m.GetName()
	case interface{ GetGroupSnapshotId() string }:
		return m.GetGroupSnapshotId()
	case interface{ GetVolumeId() string }:
		return m.GetVolumeId()
	case interface{ GetSnapshotId() string }:
		return m.GetSnapshotId()
	}
	return ""
}

// lookKey is the key of a call's metadata with which a test looks at the driver: every switch is off for it.
const lookKey = "awkward-look"

func looks(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	return len(md.Get(lookKey)) > 0
}

// Left returns the IDs of all volumes and snapshots of the driver on a socket, and what is mounted of them.
func Left(ctx context.Context, socket string) ([]string, error) {
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	ctx = metadata.AppendToOutgoingContext(ctx, lookKey, "1")
	controller := csi.NewControllerClient(conn)
	vols, err := controller.ListVolumes(ctx, &csi.ListVolumesRequest{}, grpc.WaitForReady(true))
	snaps, snapsErr := controller.ListSnapshots(ctx, &csi.ListSnapshotsRequest{})
	var left []string
	for _, e := range vols.GetEntries() {
		left = append(left, e.GetVolume().GetVolumeId())
	}
	for _, e := range snaps.GetEntries() {
		left = append(left, e.GetSnapshot().GetSnapshotId())
	}
	return left, errors.Join(err, snapsErr)
}

// Records returns the records of calls in a log, in order of their end.
func Records(log string) ([]csidriver.Record, error) {
	f, err := os.Open(log)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var list []csidriver.Record
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var r csidriver.Record
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			return nil, err
		}
		if r.Event == "rpc" {
			list = append(list, r)
		}
	}
	return list, lines.Err()
}

// dir is where the driver keeps something of a volume.
func (d *Driver) dir(kind, volume string) string {
	return filepath.Join(d.config.BaseDir, kind, volume)
}

// sleep waits for a time, or until the caller gives up.
func sleep(ctx context.Context, t time.Duration) error {
	select {
	case <-time.After(t):
		return nil
	case <-ctx.Done():
		return status.FromContextError(ctx.Err()).Err()
	}
}
