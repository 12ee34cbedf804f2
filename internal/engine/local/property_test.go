package local_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/test/enginetest"
	"github.com/cnsbench/cnsbench/test/enginetest/mixtest"
)

// TestCreatedLessDeletedIsListed checks two properties: after any mix of actions, the driver lists exactly the objects
// that were created and not deleted; after a clean-up from the ledger alone, it lists none. The rates are random. The
// driver fails, delays and hangs calls, and the run ends or is cancelled at any point. Each mix is a function of its
// seed.
func TestCreatedLessDeletedIsListed(t *testing.T) {
	for seed := range uint64(nullMixes) {
		t.Run(fmt.Sprintf("null/%d", seed), func(t *testing.T) {
			mixIsListed(t, seed, "null", enginetest.MixOptions{StorageClass: "sc", SnapshotClass: "sc", Size: "64Mi",
				EveryMs: 4, RuntimeMs: 600})
		})
	}
	for seed := range uint64(loopfileMixes) {
		t.Run(fmt.Sprintf("loopfile/%d", seed), func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("loopfile mounts file systems: needs root")
			}
			if _, err := exec.LookPath("mkfs.ext4"); err != nil {
				t.Skip("mkfs.ext4 is not installed")
			}
			without := map[string]bool{"modify": true}
			if noResource() != nil {
				without["resize"] = true
			}
			mixIsListed(t, seed, "loopfile", enginetest.MixOptions{StorageClass: "sc", SnapshotClass: "sc",
				Size: "64Mi", EveryMs: 60, RuntimeMs: 3000, Without: without})
		})
	}
}

func mixIsListed(t *testing.T, seed uint64, backend string, o enginetest.MixOptions) {
	r := rand.New(rand.NewPCG(seed, 0x6d6978))
	text := enginetest.Mix(r, o)
	faults := mixedFaults(r)
	d := serve(t, backend, faults, seed)
	engine := func(own owned.Identity) *local.Engine {
		return local.New(local.Options{Endpoints: map[string]string{"": d.socket}, AgentPath: filepath.Join(bin, "cnsbench-agent"),
			Identity: own})
	}
	m := mixtest.Execute(t, engine(owned.Identity{}), mixtest.Options{ID: fmt.Sprintf("m%x", r.Uint32()), Text: text,
		Endpoint: d.socket, Hurry: 100 * time.Millisecond}, r)
	if m.Failed != "" && !strings.HasPrefix(m.Failed, "set-up:") {
		t.Errorf("the run failed: %s", m.Failed)
	}
	if t.Failed() {
		t.Logf("seed %d, faults %s:\n%s", seed, faults, text)
		return
	}
	d.check(t, m)
	// The clean-up runs without faults, as after a repair of the driver.
	d.restart(t, "")
	dead := engine(m.Identity)
	if err := dead.Teardown(context.WithoutCancel(t.Context()), m.Ledger); err != nil {
		t.Errorf("clean-up: %v", err)
	}
	_ = dead.Close()
	if left := m.Ledger.Open(); len(left) > 0 {
		t.Errorf("the ledger still lists %v", left)
	}
	volumes, snapshots := list(t, d)
	if len(volumes)+len(snapshots) > 0 {
		t.Errorf("after the clean-up the driver lists %v %v", volumes, snapshots)
	}
	if t.Failed() {
		t.Logf("seed %d, faults %s:\n%s", seed, faults, text)
	}
}

// mixedFaults returns random fault rules for the calls of a driver.
func mixedFaults(r *rand.Rand) string {
	var rules []string
	for _, rpc := range []string{"CreateVolume", "DeleteVolume", "ControllerPublishVolume", "ControllerUnpublishVolume",
		"NodeStageVolume",
		"NodePublishVolume", "NodeUnpublishVolume", "NodeUnstageVolume", "CreateSnapshot", "DeleteSnapshot", "ControllerExpandVolume",
		"CreateVolumeGroupSnapshot", "DeleteVolumeGroupSnapshot"} {
		if r.IntN(2) == 0 {
			continue
		}
		when := [2]string{"before", "after"}[r.IntN(2)]
		code := [3]string{"UNAVAILABLE", "INTERNAL", "DEADLINE_EXCEEDED"}[r.IntN(3)]
		rules = append(rules, fmt.Sprintf("%s: {delay: exp(%dms), error: \"%d%% %s\", hang: \"%d%%\", when: %s}", rpc,
			1+r.IntN(4), r.IntN(20), code, r.IntN(3), when))
	}
	return "{rpcs: {" + strings.Join(rules, ", ") + "}}"
}

// served is a driver in this process that listens on a socket.
type served struct {
	csi.ControllerClient
	options csidriver.Options
	socket  string
	stop    func()
}

func serve(t *testing.T, backend, faults string, seed uint64) *served {
	t.Helper()
	d := &served{options: csidriver.Options{Backend: backend, BaseDir: filepath.Join(t.TempDir(), "base"), Seed: seed},
		socket: filepath.Join(t.TempDir(), "s"), stop: func() {}}
	t.Cleanup(func() {
		d.stop()
		if err := csidriver.Destroy(d.options); err != nil {
			t.Errorf("destroy: %v", err)
		}
	})
	d.restart(t, faults)
	conn, err := grpc.NewClient("unix://"+d.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	d.ControllerClient = csi.NewControllerClient(conn)
	return d
}

// restart restarts the driver with its present state and with other faults.
func (d *served) restart(t *testing.T, faults string) {
	t.Helper()
	d.stop()
	d.options.Inject = faults
	server, err := csidriver.New(d.options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := server.Serve(ctx, d.socket); err != nil {
			t.Errorf("serve: %v", err)
		}
	}()
	d.stop = func() {
		cancel()
		<-done
		_ = server.Close()
		d.stop = func() {}
	}
	// The file is there as soon as the socket has its address, before it takes connections.
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) {
		conn, err := net.Dial("unix", d.socket)
		if err == nil {
			_ = conn.Close()
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the driver does not listen: %v", err)
		}
	}
}

// list returns the IDs of all volumes and snapshots of a driver.
func list(t *testing.T, d csi.ControllerClient) (volumes, snapshots []string) {
	t.Helper()
	v, err := d.ListVolumes(t.Context(), &csi.ListVolumesRequest{}, grpc.WaitForReady(true))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range v.GetEntries() {
		volumes = append(volumes, e.GetVolume().GetVolumeId())
	}
	s, err := d.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range s.GetEntries() {
		snapshots = append(snapshots, e.GetSnapshot().GetSnapshotId())
	}
	return volumes, snapshots
}

// check compares the objects that the driver lists with the operations of the run.
func (d *served) check(t *testing.T, m *mixtest.Made) {
	t.Helper()
	accounts := m.Accounts()
	name := func(n string) string { return "cnsbench-" + m.ID + "-" + n }
	volumeID := func(n string) string { return objectID("vol", name(n)) }
	volumes, snapshots := list(t, d)
	m.Compare(t, "volume", volumes, accounts.Volumes, accounts.MaybeVolumes,
		func(n string) []string { return []string{volumeID(n)} })

	sure, maybe := map[string]bool{}, map[string]bool{}
	for from, to := range map[*map[string]bool]map[string]bool{&accounts.Snapshots: sure, &accounts.Groups: sure,
		&accounts.MaybeSnapshots: maybe, &accounts.MaybeGroups: maybe} {
		for n := range *from {
			to[n] = true
		}
	}
	m.Compare(t, "snapshot", snapshots, sure, maybe, func(n string) []string {
		members, group := accounts.Members[n]
		if !group {
			return []string{objectID("snap", name(n))}
		}
		var ids []string
		for _, v := range members {
			ids = append(ids, objectID("snap", name(n)+"/"+volumeID(v)))
		}
		return ids
	})
	done := 0
	for _, o := range m.Ops {
		if o.Outcome == op.OK {
			done++
		}
	}
	t.Logf("%d ops, %d ok; %d volumes and %d snapshots are there, %d and %d may be", len(m.Ops), done, len(volumes),
		len(snapshots),
		len(accounts.MaybeVolumes), len(accounts.MaybeSnapshots)+len(accounts.MaybeGroups))
}

// objectID returns the ID that a CNSBench driver gives to an object with this name.
func objectID(kind, name string) string {
	sum := sha256.Sum256([]byte(name))
	return kind + "-" + hex.EncodeToString(sum[:10])
}
