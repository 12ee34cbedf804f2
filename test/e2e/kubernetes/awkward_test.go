//go:build e2e

package kubernetes

import (
	"slices"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/awkwarddriver"
	"github.com/cnsbench/cnsbench/test/rotation"
)

// awkwardSwitches are those of the awkward driver that need no classes of their own. CI has two of them for a commit.
var awkwardSwitches = []string{"-aborted=all=2", "-unavailable=all=1", "-timed-out=all=1", "-in-progress=2s",
	"-async-copies=3s", "-slow-deletes=500ms", "-late-ready=2s", "-not-found", "-round-up=48Mi", "-no-capacity",
	"-volume-context", "-long-ids", "-no-list-snapshots", "-no-list-volumes", "-no-node-expansion", "-no-stage",
	"-no-attach", "-no-block"}

// TestAwkward runs every action on volumes behind the unmodified sidecars, with the awkward driver in place of null.
func TestAwkward(t *testing.T) {
	bed := newBed(t)
	for _, flag := range awkwardSwitches {
		t.Run(flag, func(t *testing.T) {
			rotation.Turn(t, 2, awkwardSwitches, flag)
			testAwkward(bed.project(t, noRights), flag)
		})
	}
}

func testAwkward(p *project, flag string) {
	d := p.awkwardNull(flag)
	address := p.proxyNull()
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  actions:
    - {name: vol, timeout: 2m, rateName: once,
       createObjSpec: {volume: {storageClass: "null", size: 64Mi, attach: true}},
       then: [snap, back, grow, move, un-back, un-snap, un-vol]}
    - {name: snap, timeout: 2m, snapshotSpec: {actionName: vol}}
    - {name: back, timeout: 2m, restoreSpec: {actionName: snap}}
    - {name: grow, timeout: 2m, resizeSpec: {actionName: vol, increaseBy: 32Mi}}
    - {name: move, timeout: 2m, reattachSpec: {actionName: vol}}
    - {name: un-back, timeout: 2m, deleteSpec: {actionName: back}}
    - {name: un-snap, timeout: 2m, deleteSpec: {actionName: snap}}
    - {name: un-vol, timeout: 2m, deleteSpec: {actionName: vol}}
    - {name: origin, timeout: 2m, rateName: once, createObjSpec: {volume: {storageClass: "null", size: 64Mi}},
       then: [copy, un-copy]}
    - {name: copy, timeout: 2m, cloneSpec: {actionName: origin}}
    - {name: un-copy, timeout: 2m, deleteSpec: {actionName: copy}}
  rates: [{name: once, limit: 1, constantRateSpec: {interval: 1s}}]
`, "--csi-proxy", address)
	p.ends(c, 0)
	b, err := bundle.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	ops := p.events(c.bundle)
	if len(ops) != 11 {
		p.t.Errorf("%d ops, want 11", len(ops))
	}
	for _, o := range ops {
		if o.Outcome != op.OK {
			p.t.Errorf("%s: %s %s", &o, o.Code, o.Message)
		}
	}
	if left, err := awkwarddriver.Left(p.t.Context(), nullSocket); err != nil || len(left) > 0 {
		p.t.Errorf("the driver has %v, %v", left, err)
	}
	p.matches(d, ops, b.Run.Clock.Start)
}

// matches compares the calls that the proxy saw with the driver's log.
func (p *project) matches(d *awkwarddriver.Served, ops []op.Op, zero time.Time) {
	p.t.Helper()
	records, err := awkwarddriver.Records(d.Log)
	if err != nil {
		p.t.Fatal(err)
	}
	pairs, _, missing := awkwarddriver.Match(ops, zero, records, 5*time.Millisecond)
	for _, c := range missing {
		p.t.Errorf("%s: the driver's log has no call %s within it", c.Op, c.RPC)
	}
	var differences []time.Duration
	for _, pair := range pairs {
		differences = append(differences, pair.Took()-pair.Driver())
	}
	if slices.Sort(differences); len(differences) == 0 {
		p.t.Error("the proxy saw no call")
	} else if p50 := differences[len(differences)/2]; p50 > 2*time.Millisecond {
		p.t.Errorf("half of %d calls differ from the log by %v, want at most 2ms", len(differences), p50)
	}
}

// awkwardNull puts the awkward driver in place of null until the end of the test.
func (p *project) awkwardNull(flag string) *awkwarddriver.Served {
	p.t.Helper()
	p.breaks()
	sidecars := []string{"restart", "csi-provisioner-null", "csi-attacher-null", "csi-resizer-null",
		"csi-snapshotter-null"}
	p.testbed("stop", "driver-null")
	p.t.Cleanup(func() {
		p.testbed("start", "driver-null")
		p.testbed(sidecars...)
	})
	d := awkwarddriver.Serve(p.t, awkwarddriver.Config{Name: "null.csi.cnsbench.dev", Socket: nullSocket,
		NodeID: "controller", Nodes: map[string]string{"node1": nullSocketOf("node1"), "node2": nullSocketOf("node2")}}, flag)
	p.testbed(sidecars...)
	return d
}

// nullSocketOf is where null answers the kubelet of a node.
func nullSocketOf(node string) string { return "/run/cnsbench-testbed/null-" + node + ".sock" }
