//go:build e2e

package kubernetes

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// testClockOffset checks a run whose two agents have clocks three seconds ahead and behind. The
// start times that the agents report are compared with the times that the commands print from the
// one clock of the host. Milestones from the agents are compared with earlier ones from the
// scheduler.
func testClockOffset(p *project) {
	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  runtime: 5s
  actions:
    - name: "true"
      createObjSpec: {workload: writer, vars: {node: node1, storageClass: hostdir}}
    - name: ahead
      createObjSpec: {workload: writer, vars: {node: node1, storageClass: hostdir, offset: 3s}}
    - name: behind
      createObjSpec: {workload: writer, vars: {node: node2, storageClass: hostdir, offset: -3s}}
`+writer)
	p.ends(c, 0)
	b, err := bundle.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	instances, err := b.Instances()
	if err != nil || len(instances) != 3 {
		p.t.Fatalf("%d instances, %v", len(instances), err)
	}
	for _, i := range instances {
		if len(i.Starts) != 1 {
			p.t.Fatalf("%s: starts %+v", i.Name, i.Starts)
		}
		s := i.Starts[0]
		printed := p.printedStart(b, i.Name)
		// The command prints the time shortly after its start.
		if late := int64(printed - s.At); late < -s.Err || late > s.Err+int64(500*time.Millisecond) {
			p.t.Errorf("%s began at %v ± %v by its agent, and printed %v: %v apart", i.Name, time.Duration(s.At),
				time.Duration(s.Err), time.Duration(printed), time.Duration(late))
		}
		p.t.Logf("%s: its command printed the time %v after the agent says that it began, ± %v", i.Name,
			time.Duration(printed-s.At), time.Duration(s.Err))
	}
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		p.inOrder(&o, op.Scheduled, op.Running, op.FirstWrite, op.Ready) // the kubelet reports with a delay
	}
}

// printedStart returns the time in the first line of a writer's output.
func (p *project) printedStart(b *bundle.Bundle, instance string) op.Time {
	p.t.Helper()
	files, err := b.RawFiles()
	if err != nil {
		p.t.Fatal(err)
	}
	for _, f := range files {
		if f.Instance != instance || f.File != "stdout" {
			continue
		}
		text, err := os.ReadFile(f.Path)
		if err != nil {
			p.t.Fatal(err)
		}
		first, _, _ := strings.Cut(string(text), "\n")
		unix, err := strconv.ParseInt(first, 10, 64)
		if err != nil {
			p.t.Fatal(err)
		}
		return op.Time(unix - b.Run.Clock.Start.UnixNano())
	}
	p.t.Fatalf("%s has no stdout", instance)
	return op.Never
}

// inOrder checks that milestones follow one another within their errors. Bound, the claim's phase, and scheduled have
// no order: the scheduler waits only for the claim's volumeName, which is set before its phase.
func (p *project) inOrder(o *op.Op, names ...string) {
	p.t.Helper()
	var before op.Milestone
	for _, name := range names {
		for _, m := range o.Milestones {
			if m.Name != name {
				continue
			}
			if before.Name != "" && int64(m.At-before.At) < -(m.Err+before.Err) {
				p.t.Errorf("%s: %s at %v ± %v is before %s at %v ± %v", o, name, time.Duration(m.At),
					time.Duration(m.Err), before.Name, time.Duration(before.At), time.Duration(before.Err))
			}
			before = m
		}
	}
	if before.Name != names[len(names)-1] {
		p.t.Errorf("%s has no milestone %s: %s", o, names[len(names)-1], fmt.Sprint(o.Milestones))
	}
}

// nullSocket is the socket on which the test bed's driver null serves its sidecars.
const nullSocket = "/run/cnsbench-testbed/null.sock"

// injects sets an injection of the driver null until the end of the test.
func (p *project) injects(text string) {
	p.t.Helper()
	p.breaks()
	set := func(text string) {
		if err := os.WriteFile(filepath.Join(testbedDir(), "inject", "null.yaml"), []byte(text), 0o644); err != nil {
			p.t.Error(err)
		}
		p.testbed("restart", "driver-null")
	}
	p.t.Cleanup(func() { set("") })
	set(text)
}

// found returns the evidence of the validity flags with the given name in a bundle.
func (p *project) found(b *bundle.Bundle, name string) (evidence []string) {
	for _, f := range b.Run.Validity {
		if f.Name == name {
			evidence = append(evidence, f.Evidence)
		}
	}
	return evidence
}

// only returns the single op of an action in a bundle.
func (p *project) only(dir, action string) (b *bundle.Bundle, only op.Op) {
	p.t.Helper()
	b, err := bundle.Open(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	n := 0
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		if o.Action == action {
			n, only = n+1, o
		}
	}
	if n != 1 {
		p.t.Fatalf("%d ops of %s, want one", n, action)
	}
	return b, only
}

// testStalledSnapshot checks a snapshot whose CreateSnapshot call is stalled twice for longer than
// csi-snapshotter waits. The snapshot succeeds in the end, its op has the attempts, and the result
// has their cause.
func testStalledSnapshot(p *project) {
	p.injects("windows: [{after: 0s, for: 8s, since: first, rpcs: [CreateSnapshot]}]\n")
	p.t.Cleanup(func() { p.testbed("restart", "csi-snapshotter-null", "--snapshotter-timeout", "0s") })
	p.testbed("restart", "csi-snapshotter-null", "--snapshotter-timeout", "3s")
	c := p.command("local", strings.Replace(snapshotting("null", ""), "timeout: 10s", "timeout: 60s", 1))
	p.ends(c, 0, "1 snapshot op", "none failed")
	b, o := p.only(c.bundle, "snap")
	if o.Outcome != op.OK || o.Attempts < 3 || o.Ended-o.Started < op.Time(8*time.Second) {
		p.t.Errorf("%s after %v, %d attempts; want it done after 8 s, at the third attempt", &o,
			time.Duration(o.Ended-o.Started), o.Attempts)
	}
	if e := p.found(b, "retried"); len(e) != 1 || !strings.Contains(e[0], "DeadlineExceeded") {
		p.t.Errorf("findings %q, want the sidecar's timeouts", e)
	}
}

// testOrphan checks a CreateSnapshot call that creates the snapshot but returns an error. After the
// run has removed the objects of the cluster the driver still has the snapshot, and the result
// lists it.
func testOrphan(p *project) {
	p.injects("rpcs: {CreateSnapshot: {error: 100% INTERNAL, when: after}}\n")
	address := p.proxyNull()
	p.t.Cleanup(p.removeSnapshots)
	c := p.command("local", snapshotting("null", ""), "--csi-proxy", address)
	p.ends(c, 0, "1 timed out")
	b, o := p.only(c.bundle, "snap")
	if o.Outcome != op.Timeout || o.Attempts < 2 || !strings.Contains(o.Message, "Internal") {
		p.t.Errorf("%s, %d attempts: %s; want a timeout with the driver's error, tried again", &o, o.Attempts,
			o.Message)
	}
	if e := p.found(b, "retried"); len(e) != 1 || !strings.Contains(e[0], "CreateSnapshot answered Internal") {
		p.t.Errorf("findings %q, want the failed calls", e)
	}
	left := p.driversSnapshots()
	if e := p.found(b, "orphan"); len(left) != 1 || len(e) != 1 || !strings.Contains(e[0], left[0]) {
		p.t.Errorf("the driver has snapshots %v, the orphans that the result lists are %q", left, e)
	}
}

// proxyNull puts a CSI proxy between the driver null and its sidecars until the end of the test.
func (p *project) proxyNull() (address string) {
	p.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		p.t.Fatal(err)
	}
	address = l.Addr().String()
	_ = l.Close() // free the port for the proxy
	p.t.Setenv("CNSBENCH_CSI_PROXY_TOKEN", "of-this-test-alone")
	cmd := exec.Command(p.binary, "csi", "proxy", "--take-over", nullSocket, "--serve", address)
	cmd.Stdout, cmd.Stderr = p.t.Output(), p.t.Output()
	if err := cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // it exits by the signal
		// The sidecars that were connected to the proxy have exited with it.
		p.testbed("restart", "csi-provisioner-null", "csi-attacher-null", "csi-resizer-null", "csi-snapshotter-null")
	})
	p.until(p.t.Context(), "the proxy serves", func() (bool, string) {
		c, err := net.Dial("tcp", address)
		if err != nil {
			return false, err.Error()
		}
		return c.Close() == nil, ""
	})
	p.testbed("restart", "csi-provisioner-null", "csi-snapshotter-null") // so that they connect to the proxy
	return address
}

// driver calls the driver null directly.
func (p *project) driver(call func(csi.ControllerClient) error) {
	p.t.Helper()
	conn, err := grpc.NewClient("unix:"+nullSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err == nil {
		defer conn.Close() // test only
		err = call(csi.NewControllerClient(conn))
	}
	if err != nil {
		p.t.Error(err)
	}
}

func (p *project) driversSnapshots() (ids []string) {
	p.driver(func(c csi.ControllerClient) error {
		list, err := c.ListSnapshots(context.Background(), &csi.ListSnapshotsRequest{})
		for _, e := range list.GetEntries() {
			ids = append(ids, e.Snapshot.SnapshotId)
		}
		return err
	})
	return ids
}

func (p *project) removeSnapshots() {
	for _, id := range p.driversSnapshots() {
		p.driver(func(c csi.ControllerClient) error {
			_, err := c.DeleteSnapshot(context.Background(), &csi.DeleteSnapshotRequest{SnapshotId: id})
			return err
		})
	}
}
