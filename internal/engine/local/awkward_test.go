package local_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/test/awkwarddriver"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

// awkward is an awkward driver, and what a run on it recorded.
type awkward struct {
	socket, log string
	flags       []string

	result run.Result
	ops    []op.Op
	clock  op.Clock
	bare   []awkwarddriver.Call // of a client without an engine, beside the run
}

// serveAwkward serves an awkward driver until the end of the test.
func serveAwkward(t *testing.T, inject string, flags ...string) *awkward {
	t.Helper()
	d := awkwarddriver.Serve(t, awkwarddriver.Config{Inject: inject}, flags...)
	return &awkward{socket: d.Socket, log: d.Log, flags: flags}
}

// has reports whether a switch is on.
func (a *awkward) has(name string) bool {
	return slices.ContainsFunc(a.flags, func(f string) bool { return strings.HasPrefix(f+"=", "-"+name+"=") })
}

// awkwardChains are episodes that are independent of each other and together have every action on volumes.
var awkwardChains = map[string]string{
	"clones": `
    - {name: origin, rateName: once, timeout: TIMEOUT,
       createObjSpec: {volume: {storageClass: sc, size: 64Mi}}, then: [copy, un-copy]}
    - {name: copy, timeout: TIMEOUT, cloneSpec: {actionName: origin, attach: true}}
    - {name: un-copy, timeout: TIMEOUT, deleteSpec: {actionName: copy}}`,
	"restores": `
    - {name: vol, rateName: once, timeout: TIMEOUT,
       createObjSpec: {volume: {storageClass: sc, size: 64Mi, attach: true}},
       then: [snap, back, un-back, un-snap, un-vol]}
    - {name: snap, timeout: TIMEOUT, snapshotSpec: {actionName: vol, snapshotClass: vsc}}
    - {name: back, timeout: TIMEOUT, restoreSpec: {actionName: snap, attach: true}}
    - {name: un-back, timeout: TIMEOUT, deleteSpec: {actionName: back}}
    - {name: un-snap, timeout: TIMEOUT, deleteSpec: {actionName: snap}}
    - {name: un-vol, timeout: TIMEOUT, deleteSpec: {actionName: vol}}`,
	"changes": `
    - {name: held, rateName: once, timeout: TIMEOUT,
       createObjSpec: {volume: {storageClass: sc, size: 64Mi, attach: true}}, then: [grow, tune, move]}
    - {name: grow, timeout: TIMEOUT, resizeSpec: {actionName: held, increaseBy: 32Mi}}
    - {name: tune, timeout: TIMEOUT, modifySpec: {actionName: held, parameters: {iops: "7"}}}
    - {name: move, timeout: TIMEOUT, reattachSpec: {actionName: held}}`,
	"groups": `
    - {name: one, rateName: once, timeout: TIMEOUT,
       createObjSpec: {labels: {in: group}, volume: {storageClass: sc, size: 64Mi}}, then: [two, group, un-group]}
    - {name: two, timeout: TIMEOUT, createObjSpec: {labels: {in: group}, volume: {storageClass: sc, size: 64Mi}}}
    - {name: group, timeout: TIMEOUT, snapshotSpec: {labels: {in: group}, snapshotClass: vsc, group: true}}
    - {name: un-group, timeout: TIMEOUT, deleteSpec: {actionName: group}}`,
	"workload": `
    - {name: hold, rateName: once, timeout: TIMEOUT,
       createObjSpec: {workload: holder, vars: {storageClass: sc, size: 64Mi}}, then: [remount, un-hold]}
    - {name: remount, timeout: TIMEOUT, reattachSpec: {actionName: hold}}
    - {name: un-hold, timeout: TIMEOUT, deleteSpec: {actionName: hold}}`,
	"block": `
    - {name: raw, rateName: once, timeout: TIMEOUT,
       createObjSpec: {volume: {storageClass: sc, size: 64Mi, attach: true, volumeMode: Block}},
       then: [grow-raw, un-raw]}
    - {name: grow-raw, timeout: TIMEOUT, resizeSpec: {actionName: raw, increaseBy: 32Mi}}
    - {name: un-raw, timeout: TIMEOUT, deleteSpec: {actionName: raw}}`,
}

// text is a Benchmark of the named chains, with classes and Secrets as their driver wants them.
func (a *awkward) text(chains ...string) string {
	var text strings.Builder
	text.WriteString("apiVersion: cnsbench.dev/v1alpha1\nkind: Benchmark\nmetadata: {name: awkward}\nspec:\n  actions:")
	for _, name := range chains {
		text.WriteString(strings.ReplaceAll(awkwardChains[name], "TIMEOUT", "20s"))
	}
	text.WriteString("\n  rates: [{name: once, startAfter: 1ms, limit: 1, constantRateSpec: {interval: 1ms}}]\n")
	var storage, snapshots []string
	if a.has("parameters") {
		storage = append(storage, awkwarddriver.RequiredParameter+": "+awkwarddriver.ParameterValue)
		snapshots = slices.Clone(storage)
	}
	if a.has("secrets") {
		for _, kind := range awkwarddriver.SecretKinds() {
			parameters := &storage
			if strings.Contains(kind, "snapshotter") {
				parameters = &snapshots
			}
			*parameters = append(*parameters, fmt.Sprintf("csi.storage.k8s.io/%s-secret-name: of-%s", kind, kind),
				fmt.Sprintf("csi.storage.k8s.io/%s-secret-namespace: kube-system", kind))
			fmt.Fprintf(&text, "---\napiVersion: v1\nkind: Secret\n"+
				"metadata: {name: of-%s, namespace: kube-system}\nstringData:\n", kind)
			for k, v := range awkwarddriver.SecretOf(kind) {
				fmt.Fprintf(&text, "  %s: %s\n", k, v)
			}
		}
	}
	fmt.Fprintf(&text, "---\napiVersion: storage.k8s.io/v1\nkind: StorageClass\nmetadata: {name: sc}\nprovisioner: %s\n"+
		"allowVolumeExpansion: true\nparameters: {%s}\n", awkwarddriver.Name, strings.Join(storage, ", "))
	fmt.Fprintf(&text, "---\napiVersion: snapshot.storage.k8s.io/v1\nkind: VolumeSnapshotClass\nmetadata: {name: vsc}\n"+
		"driver: %s\ndeletionPolicy: Delete\nparameters: {%s}\n", awkwarddriver.Name, strings.Join(snapshots, ", "))
	return text.String() + enginetest.Holder
}

// run runs chains, to their end and with the clean-up.
func (a *awkward) run(t *testing.T, chains ...string) {
	t.Helper()
	text := a.text(chains...)
	p, e := a.load(t, text)
	c := a.config(t, p, e)
	defer a.probe(t)()
	a.result = run.Run(t.Context(), t.Context(), c)
	rec := c.Record.(*enginetest.Recorder)
	a.ops = rec.Ops()
	if a.result.State != bundle.Complete || a.result.Leftovers != nil {
		t.Errorf("%s: %s; left: %v", a.result.State, a.result.Reason, a.result.Leftovers)
	}
	for _, o := range a.ops {
		enginetest.CheckMilestones(t, o)
	}
	if left, err := awkwarddriver.Left(context.WithoutCancel(t.Context()), a.socket); err != nil || len(left) > 0 {
		t.Errorf("the driver has %v, %v", left, err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("flags %v\n%s", a.flags, text)
		}
	})
}

// config is that of a run.
func (a *awkward) config(t *testing.T, p *plan.Plan, e func(owned.Identity) *local.Engine) run.Config {
	t.Helper()
	id := fmt.Sprintf("a%x", rand.Uint32())
	own := owned.New(id)
	own.Scratch = filepath.Join(shortDir(t), owned.ScratchName(id))
	if err := os.Mkdir(own.Scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	a.clock = op.NewClock()
	session := engine.Session{RunID: id, Identity: own, Clock: a.clock, Ledger: &enginetest.Ledger{}, Dir: own.Scratch,
		Needs: p.Needs, StorageClasses: p.StorageClasses, SnapshotClasses: p.SnapshotClasses}
	a.secrets(&session, p)
	return run.Config{RunID: id, Plan: p, Engine: e(own), Clock: a.clock, Record: &enginetest.Recorder{},
		Observer: enginetest.Unobserved{}, RawDir: t.TempDir(), Session: session}
}

// probe calls the driver, which answers at once, until the returned function is called. What these calls take is what
// the machine makes any client wait.
func (a *awkward) probe(t *testing.T) (stop func()) {
	t.Helper()
	conn, err := grpc.NewClient("unix://"+a.socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for client := csi.NewIdentityClient(conn); ctx.Err() == nil; time.Sleep(time.Millisecond) {
			began := time.Now()
			if _, err := client.Probe(ctx, &csi.ProbeRequest{}); err == nil {
				a.bare = append(a.bare, awkwarddriver.Call{Start: began.UnixNano(), End: time.Now().UnixNano()})
			}
		}
	}()
	return func() {
		cancel()
		<-done
		_ = conn.Close()
	}
}

// shortDir is a directory for sockets, whose paths must be short.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "awk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// skew is how far the wall clock of the driver and the clock of the run may be apart.
const skew = 250 * time.Microsecond

// match pairs the calls of ops with the driver's log, by op.
func (a *awkward) match(t *testing.T) map[*op.Op][]awkwarddriver.Pair {
	t.Helper()
	records, err := awkwarddriver.Records(a.log)
	if err != nil {
		t.Fatal(err)
	}
	pairs, used, missing := awkwarddriver.Match(a.ops, a.clock.Start(), records, skew)
	for _, c := range missing {
		t.Errorf("%v: the driver's log has no call %s within it", c.Op, c.RPC)
	}
	a.checkUnmatched(t, records, used)
	by := map[*op.Op][]awkwarddriver.Pair{}
	for _, p := range pairs {
		by[p.Op] = append(by[p.Op], p)
	}
	return by
}

// checkUnmatched checks that all calls of the log that change something, and were made before the clean-up, are in ops.
func (a *awkward) checkUnmatched(t *testing.T, records []csidriver.Record, used []bool) {
	t.Helper()
	last := op.Time(0)
	for _, o := range a.ops {
		last = max(last, o.Ended)
	}
	polls := a.has("no-list-snapshots") && a.has("late-ready")
	for i, r := range records {
		changes := r.RPC[0] == 'C' && r.RPC != "ControllerGetCapabilities" && r.RPC != "ControllerGetVolume" ||
			strings.HasPrefix(r.RPC, "Delete") || strings.HasPrefix(r.RPC, "Node") && !strings.Contains(r.RPC, "Get")
		if !used[i] && changes && r.EndUnixNs < a.clock.At(last).UnixNano() && !(polls && r.RPC == "CreateSnapshot") {
			t.Errorf("no op has the call %s of %s%s%s%s", r.RPC, r.Name, r.Volume, r.Snapshot, r.Group)
		}
	}
}

// differences are by how much calls took longer at the engine than by the driver's log, less what a bare client waited
// at the same time, because the machine was busy.
type differences struct {
	mu        sync.Mutex
	raw, list []time.Duration // raw: without what a bare client waited
}

// add adds the calls of a run, and returns them by op.
func (d *differences) add(t *testing.T, a *awkward) map[*op.Op][]awkwarddriver.Pair {
	t.Helper()
	pairs := a.match(t)
	if len(a.bare) == 0 {
		t.Error("the bare client made no call")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, calls := range pairs {
		for _, m := range calls {
			d.raw = append(d.raw, m.Took()-m.Driver())
			d.list = append(d.list, m.Took()-m.Driver()-a.waited(m.Call))
		}
	}
	return pairs
}

// check checks that half of the calls differ by at most 2 ms.
func (d *differences) check(t *testing.T) {
	t.Helper()
	slices.Sort(d.raw)
	slices.Sort(d.list)
	if len(d.list) == 0 {
		t.Fatal("no calls")
	}
	p50 := d.list[len(d.list)/2]
	t.Logf("%d calls: half differ from the log by at most %v; less what a bare client waited, by %v", len(d.list),
		d.raw[len(d.raw)/2], p50)
	if p50 > 2*time.Millisecond {
		t.Errorf("want at most 2ms")
	}
}

// waited is how long the bare client waited while a call was in progress.
func (a *awkward) waited(c awkwarddriver.Call) (longest time.Duration) {
	for _, b := range a.bare {
		if b.Start < c.End && b.End > c.Start {
			longest = max(longest, b.Took())
		}
	}
	return longest
}
