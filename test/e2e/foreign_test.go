package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// churn creates and deletes volumes, snapshots, restores and clones beside a workload. It runs on
// any driver.
const churn = head + `spec:
  runtime: 3s
  gracePeriod: 10s
  actions:
    - {name: w, createObjSpec: {workload: idle, vars: {storageClass: sut, volumeSize: 64Mi}}}
    - {name: v, rateName: often, createObjSpec: {volume: {storageClass: sut, size: 64Mi, attach: true}}}
    - {name: snap, rateName: often, snapshotSpec: {actionName: v, select: newest}}
    - {name: back, rateName: often, restoreSpec: {actionName: snap, attach: true}}
    - {name: copy, rateName: often, cloneSpec: {actionName: v}}
    - {name: gone, rateName: later, deleteSpec: {actionName: back}}
    - {name: forget, rateName: later, deleteSpec: {actionName: snap}}
  rates:
    - {name: often, constantRateSpec: {interval: 50ms}}
    - {name: later, startAfter: 300ms, constantRateSpec: {interval: 70ms}}
`

// foreign is a CSI driver that cnsbench did not start. It is CNSBench's own driver in a separate
// process.
type foreign struct {
	*box
	socket, truth string
	conn          *grpc.ClientConn
	process       *live
}

func (b *box) foreignDriver(backend string, more ...string) *foreign {
	b.Helper()
	f := &foreign{box: b, socket: b.in("foreign.sock"), truth: b.in("truth.jsonl")}
	own := *b
	own.tmp = b.in("driver") // separate from the scratch directory of the runs
	if err := os.Mkdir(own.tmp, 0o755); err != nil {
		b.Fatal(err)
	}
	f.process = own.start(b.cnsbench(), append([]string{"csi", "driver", "--backend", backend, "--socket", f.socket,
		"--base-dir", b.in("driver", "base"), "--truth-log", f.truth}, more...)...)
	var err error
	if f.conn, err = grpc.NewClient("unix://"+f.socket,
		grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.conn.Close() })
	ctx, cancel := context.WithTimeout(b.Context(), 30*time.Second)
	defer cancel()
	if _, err := csi.NewIdentityClient(f.conn).Probe(ctx, &csi.ProbeRequest{}, grpc.WaitForReady(true)); err != nil {
		b.Fatal(err)
	}
	return f
}

// holds lists the volumes and snapshots that the driver reports.
func (f *foreign) holds() (volumes, snapshots []string) {
	f.Helper()
	c := csi.NewControllerClient(f.conn)
	vs, err := c.ListVolumes(f.Context(), &csi.ListVolumesRequest{})
	if err != nil {
		f.Fatal(err)
	}
	for _, v := range vs.GetEntries() {
		volumes = append(volumes, v.GetVolume().GetVolumeId())
	}
	ss, err := c.ListSnapshots(f.Context(), &csi.ListSnapshotsRequest{})
	if err != nil {
		f.Fatal(err)
	}
	for _, s := range ss.GetEntries() {
		snapshots = append(snapshots, s.GetSnapshot().GetSnapshotId())
	}
	return volumes, snapshots
}

// balance returns how many objects the driver's log shows as created, and how many of these were
// not deleted.
func (f *foreign) balance() (made, left int) {
	f.Helper()
	log, err := os.Open(f.truth)
	if err != nil {
		f.Fatal(err)
	}
	defer log.Close()
	there := map[string]bool{}
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var e struct{ Event, RPC, Volume, Snapshot, Code string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			f.Fatal(err)
		}
		if e.Event != "rpc" || e.Code != "OK" {
			continue
		}
		switch e.RPC {
		case "CreateVolume":
			there["v "+e.Volume] = true
			made++
		case "CreateSnapshot":
			there["s "+e.Snapshot] = true
			made++
		case "DeleteVolume":
			delete(there, "v "+e.Volume)
		case "DeleteSnapshot":
			delete(there, "s "+e.Snapshot)
		}
	}
	return made, len(there)
}

// emptied checks that the driver has no volumes or snapshots and still answers.
func (f *foreign) emptied() {
	f.Helper()
	if v, s := f.holds(); len(v)+len(s) > 0 {
		f.Errorf("the driver still has volumes %v, snapshots %v", v, s)
	}
	if made, left := f.balance(); made == 0 || left != 0 {
		f.Errorf("by the driver's log %d were made, %d are left", made, left)
	}
	if m := f.mounts(); len(m) > 0 {
		f.Errorf("still mounted: %v", m)
	}
	for _, dir := range []string{f.in("tmp"), f.in("storage")} {
		if e, _ := os.ReadDir(dir); len(e) > 0 {
			f.Errorf("left in %s: %v", dir, e)
		}
	}
}

// TestForeignDriver checks all kinds of ops with CSI drivers that cnsbench did not start.
func TestForeignDriver(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"null", "hostdir"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			f := b.foreignDriver(backend)
			r := b.bench(churn, "--csi-endpoint", f.socket).wants(t, 0)
			s, _ := b.readable(b.bundle())
			for _, a := range s.Actions {
				if a.Outcomes["ok"] == 0 {
					t.Errorf("action %s: %v\n%v", a.Name, a.Outcomes, r)
				}
				for _, f := range a.Failures {
					// On a slow host action forget can delete the only snapshot before action back
					// restores it.
					overtaken := a.Name == "back" && f.Code == "NotFound"
					if (f.Outcome == "error" || f.Outcome == "timeout") && !overtaken {
						t.Errorf("action %s: %+v\n%v", a.Name, f, r)
					}
				}
			}
			f.emptied()
		})
	}
}

// TestForeignDriverKilled checks that after a runner is killed at random moments the ledger has
// each volume and snapshot, and cleanup removes them through the driver.
func TestForeignDriverKilled(t *testing.T) {
	t.Parallel()
	for _, backend := range []string{"null", "hostdir"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			f := b.foreignDriver(backend)
			l := b.startRun(churn, "--csi-endpoint", f.socket)
			l.reaches("running")
			l.until("ops were recorded", func() bool { return b.recorded() > 0 })
			time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
			l.kill()
			if v, _ := f.holds(); len(v) == 0 {
				t.Error("nothing was left for cleanup to do")
			}
			b.readable(b.bundle())
			b.run("cleanup", b.bundle()).wants(t, 0)
			f.emptied()
			b.run("cleanup", b.bundle()).wants(t, 0)
		})
	}
}

// TestForeignDriverGone checks that cleanup reports a missing driver and succeeds when it is
// repeated after the driver has returned.
func TestForeignDriverGone(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	f := b.foreignDriver("null")
	text := head + "spec: {actions: [{name: v, createObjSpec: {count: 3, volume: {storageClass: sut}}}]}\n"
	b.bench(text, "--csi-endpoint", f.socket, "--keep").wants(t, 0)
	if v, _ := f.holds(); len(v) != 3 {
		t.Fatalf("--keep kept %v", v)
	}
	away := f.socket + ".away"
	if err := os.Rename(f.socket, away); err != nil {
		t.Fatal(err)
	}
	if r := b.run("cleanup", b.bundle()).wants(t, 2); !strings.Contains(r.stderr, f.socket) {
		t.Errorf("does not name the socket\n%v", r)
	}
	if err := os.Rename(away, f.socket); err != nil {
		t.Fatal(err)
	}
	b.run("cleanup", b.bundle()).wants(t, 0)
	f.emptied()
}

// TestForeignDriverRefuses checks that a volume that the driver refused to create is not looked for at the end.
func TestForeignDriverRefuses(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	f := b.foreignDriver("hostdir")
	r := b.bench(head+"spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: sut, volumeMode: Block}}}]}\n",
		"--csi-endpoint", f.socket).wants(t, 2)
	if !strings.Contains(r.said(), "does not support raw block volumes") || strings.Contains(r.said(), "not everything") {
		t.Errorf("%v", r)
	}
	if volumes, _ := f.holds(); len(volumes) > 0 {
		t.Errorf("the driver has %v", volumes)
	}
	if left, _ := filepath.Glob(b.in("tmp", "cnsbench-*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestForeignDriverDies checks that a run fails if the driver is killed during its last op. No
// later op fails because of it, so the state of the run cannot follow from the ops.
func TestForeignDriverDies(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	f := b.foreignDriver("null", "--inject", "rpcs: {CreateVolume: {delay: 4s}}")
	text := head + `spec:
  gracePeriod: 1m
  actions: [{name: v, rateName: once, createObjSpec: {volume: {storageClass: sut}}}]
  rates: [{name: once, limit: 1, constantRateSpec: {interval: 10ms}}]
`
	l := b.startRun(text, "--csi-endpoint", f.socket)
	l.until("the op was under way", func() bool {
		if !b.has("bundle/run.json") {
			return false
		}
		ledger, _ := os.ReadFile(filepath.Join(b.registered(b.runID()), "ledger"))
		return strings.Contains(string(ledger), `"name":"v-0"`)
	})
	f.process.kill()
	r := l.wait().wants(t, 2)
	if s, _ := b.readable(b.bundle()); s.State != "failed" || !strings.Contains(s.Reason, "stopped responding") {
		t.Errorf("state %q, reason %q\n%v", s.State, s.Reason, r)
	}
}
