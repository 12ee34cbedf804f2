package local_test

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// unlisting is a driver that creates snapshots but cannot list them. Recovery has to repeat the request.
type unlisting struct {
	csi.UnimplementedIdentityServer
	csi.UnimplementedControllerServer
	csi.UnimplementedNodeServer
	answer         error
	asked, deleted atomic.Int32
}

func (*unlisting) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: "unlisting.example"}, nil
}

func (*unlisting) GetPluginCapabilities(context.Context,
	*csi.GetPluginCapabilitiesRequest) (*csi.GetPluginCapabilitiesResponse, error) {
	return &csi.GetPluginCapabilitiesResponse{}, nil
}

func (*unlisting) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

func (*unlisting) ControllerGetCapabilities(context.Context,
	*csi.ControllerGetCapabilitiesRequest) (*csi.ControllerGetCapabilitiesResponse, error) {
	return &csi.ControllerGetCapabilitiesResponse{Capabilities: []*csi.ControllerServiceCapability{{Type: &csi.ControllerServiceCapability_Rpc{
		Rpc: &csi.ControllerServiceCapability_RPC{Type: csi.ControllerServiceCapability_RPC_CREATE_DELETE_SNAPSHOT}}}}}, nil
}

func (*unlisting) NodeGetCapabilities(context.Context,
	*csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

func (*unlisting) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: "n"}, nil
}

// CreateSnapshot returns a snapshot that is never ready. Recovery must not wait for it to become ready.
func (u *unlisting) CreateSnapshot(context.Context, *csi.CreateSnapshotRequest) (*csi.CreateSnapshotResponse, error) {
	u.asked.Add(1)
	if u.answer != nil {
		return nil, u.answer
	}
	return &csi.CreateSnapshotResponse{Snapshot: &csi.Snapshot{SnapshotId: "s"}}, nil
}

func (u *unlisting) DeleteSnapshot(context.Context, *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	u.deleted.Add(1)
	return &csi.DeleteSnapshotResponse{}, nil
}

// TestRecoverUnlisted checks that the recovery of a snapshot ends, for any answer of the driver. A driver that cannot
// list snapshots is not taken to have none.
func TestRecoverUnlisted(t *testing.T) {
	for name, tt := range map[string]struct {
		answer                error
		asked, deleted, owing int
	}{
		"there":       {nil, 1, 1, 0},
		"source gone": {status.Error(codes.NotFound, "no such volume"), 2, 0, 1},
		"refused":     {status.Error(codes.Internal, "broken"), 3, 0, 1}, // at least: it is repeated until its deadline
		"no quota":    {status.Error(codes.ResourceExhausted, "full"), 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			u := &unlisting{answer: tt.answer}
			socket := serveCSI(t, u)
			ledger, err := bundle.OpenLedger(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer ledger.Close()
			if err := ledger.Add(op.LedgerEntry{Kind: "snapshot", Name: "snap", Data: map[string]string{
				"endpoint": socket, "request": `{"sourceVolumeId": "v", "name": "cnsbench-r-snap"}`}}); err != nil {
				t.Fatal(err)
			}
			own := owned.New("r")
			own.Scratch = t.TempDir()
			e := local.New(local.Options{Identity: own, RetryStart: time.Millisecond, RemoveTimeout: 50 * time.Millisecond})
			defer e.Close()
			err = e.Teardown(t.Context(), ledger)
			if owing := len(ledger.Open()); owing != tt.owing || (err != nil) != (tt.owing > 0) {
				t.Errorf("%d entries are left, %v; want %d", owing, err, tt.owing)
			}
			if a, d := int(u.asked.Load()), int(u.deleted.Load()); a < tt.asked || a > tt.asked && name != "refused" || d != tt.deleted {
				t.Errorf("asked %d times and deleted %d; want %d and %d", a, d, tt.asked, tt.deleted)
			}
		})
	}
}

type csiServer interface {
	csi.IdentityServer
	csi.ControllerServer
	csi.NodeServer
}

func serveCSI(t *testing.T, u csiServer) (socket string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	csi.RegisterIdentityServer(server, u)
	csi.RegisterControllerServer(server, u)
	csi.RegisterNodeServer(server, u)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return socket
}

// hanging is a driver that never answers the deletion of a snapshot.
type hanging struct{ unlisting }

func (h *hanging) DeleteSnapshot(ctx context.Context, _ *csi.DeleteSnapshotRequest) (*csi.DeleteSnapshotResponse, error) {
	h.deleted.Add(1)
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestRecoverHanging checks that a driver that does not answer ends a clean-up, whose error names each object.
func TestRecoverHanging(t *testing.T) {
	const n = 30
	h := &hanging{}
	socket := serveCSI(t, h)
	ledger, err := bundle.OpenLedger(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	for i := range n {
		name := fmt.Sprintf("snap-%02d", i)
		if err := ledger.Add(op.LedgerEntry{Kind: "snapshot", Name: name, Data: map[string]string{"endpoint": socket,
			"handle": "s", "request": `{"sourceVolumeId": "v", "name": "cnsbench-r-` + name + `"}`}}); err != nil {
			t.Fatal(err)
		}
	}
	own := owned.New("r")
	own.Scratch = t.TempDir()
	e := local.New(local.Options{Identity: own, RetryStart: time.Millisecond, RemoveTimeout: 200 * time.Millisecond})
	defer e.Close()
	err = e.Teardown(t.Context(), ledger)
	if err == nil || len(ledger.Open()) != n || h.deleted.Load() != 3 {
		t.Fatalf("%d of %d entries are left, the driver was asked %d times, want 3: %v", len(ledger.Open()), n,
			h.deleted.Load(), err)
	}
	for i := range n {
		if name := fmt.Sprintf("snap-%02d: ", i); !strings.Contains(err.Error(), name) {
			t.Errorf("the error does not name %s: %v", name, err)
		}
	}
}
