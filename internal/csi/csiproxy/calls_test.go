package csiproxy_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestTruth checks that a delay of 500 ms in one RPC is in the span of that RPC and in no other, and that each span
// contains the one of the driver's own log. The proxy's clock is an hour off.
func TestTruth(t *testing.T) {
	d, p, socket := beside(t, csidriver.Options{Inject: "rpcs: {NodeStageVolume: {delay: 500ms}}"},
		csiproxy.Options{Offset: time.Hour, Node: "worker-1"})
	var w watcher
	client, clock := w.follow(t, serveRecords(t, p))
	if client.Node() != "worker-1" || client.Driver() != "null.csi.cnsbench.dev" {
		t.Errorf("the proxy is of %q on %q", client.Driver(), client.Node())
	}
	conn, ctx, dir := dial(t, socket), t.Context(), t.TempDir()
	controller, node := csi.NewControllerClient(conn), csi.NewNodeClient(conn)
	id, err := createVolume(ctx, conn, "pvc-1")
	if err != nil {
		t.Fatal(err)
	}
	staging, target := filepath.Join(dir, "s"), filepath.Join(dir, "t")
	do := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(controller.ControllerPublishVolume(ctx, &csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "local",
		VolumeCapability: mount}))
	do(node.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging,
		VolumeCapability: mount}))
	do(node.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging,
		TargetPath: target, VolumeCapability: mount}))
	snap, err := controller.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "snapshot-1", SourceVolumeId: id})
	do(snap, err)
	do(node.NodeUnpublishVolume(ctx, &csi.NodeUnpublishVolumeRequest{VolumeId: id, TargetPath: target}))
	do(node.NodeUnstageVolume(ctx, &csi.NodeUnstageVolumeRequest{VolumeId: id, StagingTargetPath: staging}))
	do(controller.ControllerUnpublishVolume(ctx, &csi.ControllerUnpublishVolumeRequest{VolumeId: id, NodeId: "local"}))
	_, err = controller.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: ""})
	if status.Code(err) != codes.InvalidArgument {
		t.Fatalf("deleting nothing: %v", err)
	}
	waitFor(t, "the records", func() bool { return len(w.of("", true)) == 9 })

	const driver, worker = "null.csi.cnsbench.dev", "worker-1"
	want := []struct {
		rpc string
		csiproxy.Subject
	}{
		{"CreateVolume", csiproxy.Subject{Driver: driver, Name: "pvc-1", Volume: id}},
		{"ControllerPublishVolume", csiproxy.Subject{Driver: driver, Node: "local", Volume: id}},
		{"NodeStageVolume", csiproxy.Subject{Driver: driver, Node: worker, Volume: id, Path: staging}},
		{"NodePublishVolume", csiproxy.Subject{Driver: driver, Node: worker, Volume: id, Path: target}},
		{"CreateSnapshot", csiproxy.Subject{Driver: driver, Name: "snapshot-1", Source: id,
			Snapshot: snap.GetSnapshot().GetSnapshotId()}},
		{"NodeUnpublishVolume", csiproxy.Subject{Driver: driver, Node: worker, Volume: id, Path: target}},
		{"NodeUnstageVolume", csiproxy.Subject{Driver: driver, Node: worker, Volume: id, Path: staging}},
		{"ControllerUnpublishVolume", csiproxy.Subject{Driver: driver, Node: "local", Volume: id}},
		{"DeleteVolume", csiproxy.Subject{Driver: driver}},
	}
	for i, c := range w.of("", true) {
		if c.RPC != want[i].rpc || c.Subject != want[i].Subject {
			t.Errorf("call %d: %s %s", i, c.RPC, cmp.Diff(want[i].Subject, c.Subject))
		}
		if code := map[bool]string{true: "InvalidArgument", false: "OK"}[c.RPC == "DeleteVolume"]; c.Code != code {
			t.Errorf("%s ended with %s", c.RPC, c.Code)
		}
		truth := truthOf(t, d, c.RPC)
		start, end := wall(clock, truth.StartUnixNs), wall(clock, truth.EndUnixNs)
		if int64(c.Start-start) > c.Err || int64(end-c.End) > c.Err {
			t.Errorf("%s: seen %d to %d ± %d, in truth %d to %d", c.RPC, c.Start, c.End, c.Err, start, end)
		}
		span, truly := int64(c.End-c.Start), truth.DurationNs
		injected := int64(0)
		if c.RPC == "NodeStageVolume" {
			injected = 5e8
		}
		t.Logf("%-26s span %10d ns, driver's own %10d, ± %d", c.RPC, span, truly, c.Err)
		if span < injected || span > injected+4e8 || span < truly {
			t.Errorf("%s: the span is %d ns, the driver's own %d", c.RPC, span, truly)
		}
		if c.Err > int64(20*time.Millisecond) || c.Err <= 0 {
			t.Errorf("%s: ± %d", c.RPC, c.Err)
		}
	}
	if strings.Contains(fmt.Sprint(w.of("", true), w.of("", false)), "hunter2") {
		t.Error("a secret was recorded")
	}
}

func truthOf(t *testing.T, d *driver, rpc string) csidriver.Record {
	t.Helper()
	for _, r := range d.records(t) {
		if r.RPC == rpc {
			return r
		}
	}
	t.Fatalf("the driver knows of no %s", rpc)
	return csidriver.Record{}
}

// wall converts the driver's wall clock time to the clock of the run. Both are in the same process.
func wall(clock op.Clock, ns int64) op.Time { return op.Time(ns - clock.Start().UnixNano()) }

// TestInFlight checks that a hanging call is visible, and that a deadline and a cancellation are recorded with
// different codes.
func TestInFlight(t *testing.T) {
	_, p, socket := beside(t, csidriver.Options{Inject: "rpcs: {CreateVolume: {hang: 100%}}"}, csiproxy.Options{})
	address := serveRecords(t, p)
	var before, after watcher
	before.follow(t, address)
	conn := dial(t, socket)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var calls sync.WaitGroup
	calls.Go(func() {
		if _, err := createVolume(ctx, conn, "cancelled"); status.Code(err) != codes.Canceled {
			t.Errorf("cancelled: %v", err)
		}
	})
	waitFor(t, "the call", func() bool { return len(before.of("CreateVolume", false)) == 1 })
	after.follow(t, address) // a client that connects later receives the call as well
	waitFor(t, "the call in flight", func() bool { return len(after.of("CreateVolume", false)) == 1 })
	if c := after.of("CreateVolume", false)[0]; c.Name != "cancelled" || c.End != op.Never || c.Code != "" {
		t.Errorf("in flight: %+v", c)
	}
	short, end := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer end()
	if _, err := createVolume(short, conn, "late"); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("late: %v", err)
	}
	cancel()
	calls.Wait()
	waitFor(t, "both ends", func() bool { return len(before.of("", true)) == 2 && len(after.of("", true)) == 2 })
	for _, c := range before.of("", true) {
		if want := map[string]string{"cancelled": "Canceled", "late": "DeadlineExceeded"}[c.Name]; c.Code != want {
			t.Errorf("%s ended with %s: %s", c.Name, c.Code, c.Message)
		}
		if took := time.Duration(c.End - c.Start); c.Name == "late" && (took <= 0 || took > 20*time.Second) {
			t.Errorf("the deadline came after %v", took)
		}
	}
}

// TestConcurrent checks that each of many concurrent calls is recorded once, with its own name.
func TestConcurrent(t *testing.T) {
	_, p, socket := beside(t, csidriver.Options{Inject: `rpcs: {CreateVolume: {delay: "uniform(0ms,20ms)"}}`},
		csiproxy.Options{})
	var w watcher
	w.follow(t, serveRecords(t, p))
	const clients, each = 8, 50
	var mu sync.Mutex
	ids := map[string]string{}
	var all sync.WaitGroup
	for i := range clients {
		conn := dial(t, socket)
		for k := range 2 { // two streams per connection
			all.Go(func() {
				for j := range each {
					name := fmt.Sprintf("pvc-%d-%d-%d", i, k, j)
					id, err := createVolume(t.Context(), conn, name)
					if err != nil {
						t.Errorf("%s: %v", name, err)
					}
					mu.Lock()
					ids[name] = id
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	waitFor(t, "all records", func() bool { return len(w.of("", true)) >= 2*clients*each })
	seen := map[string]string{}
	last := int64(0)
	for _, c := range w.of("", false) {
		if c.Seq <= last {
			t.Errorf("call %d came after %d", c.Seq, last)
		}
		last = c.Seq
	}
	for _, c := range w.of("", true) {
		if _, twice := seen[c.Name]; twice {
			t.Errorf("%s was recorded twice", c.Name)
		}
		seen[c.Name] = c.Volume
	}
	if diff := cmp.Diff(ids, seen); diff != "" {
		t.Error(diff)
	}
	if n := len(w.of("", false)); n != 2*clients*each || len(w.lacks()) > 0 {
		t.Errorf("%d starts, gaps %v", n, w.lacks())
	}
}

// TestDriverEnds checks that calls in flight, and their records, end when the driver ends.
func TestDriverEnds(t *testing.T) {
	d, p, socket := beside(t, csidriver.Options{Inject: "rpcs: {CreateVolume: {hang: 100%}}"}, csiproxy.Options{})
	var w watcher
	w.follow(t, serveRecords(t, p))
	ended := make(chan error)
	go func() { _, err := createVolume(context.Background(), dial(t, socket), "x"); ended <- err }()
	waitFor(t, "the call", func() bool { return len(w.of("CreateVolume", false)) == 1 })
	d.stop()
	if err := <-ended; status.Code(err) != codes.Unavailable {
		t.Errorf("the client was told %v", err)
	}
	waitFor(t, "its end", func() bool { return len(w.of("CreateVolume", true)) == 1 })
	if c := w.of("CreateVolume", true)[0]; c.Code != "Unavailable" {
		t.Errorf("recorded as %+v", c)
	}
	if err := probe(t.Context(), socket); status.Code(err) != codes.Unavailable {
		t.Errorf("without a driver the client was told %v", err)
	}
}
