//go:build e2e

package kubernetes

import (
	"context"
	"fmt"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// onBothNodes returns a Benchmark with a writer on each node and one volume per second that is
// attached to either node.
func onBothNodes(runtime string) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  runtime: %s
  gracePeriod: 1m
  actions:
    - name: one
      createObjSpec: {workload: writer, vars: {node: node1, storageClass: hostdir}}
    - name: two
      createObjSpec: {workload: writer, vars: {node: node2, storageClass: hostdir}}
    - name: vol
      rateName: r
      createObjSpec: {volume: {storageClass: "null", size: 16Mi, attach: true}}
  rates:
    - {name: r, constantRateSpec: {interval: 1s}}
`, runtime) + writer
}

// killNode disconnects a node, and reconnects it at the end of the test. It returns the time of the
// disconnect.
func (p *project) killNode(name string) time.Time {
	p.t.Helper()
	p.t.Cleanup(func() {
		p.testbed("heal-node", name)
		p.nodeReady(context.Background(), name)
	})
	p.testbed("kill-node", name)
	return time.Now()
}

func (p *project) nodeReady(ctx context.Context, name string) {
	p.t.Helper()
	p.until(ctx, name+" is ready", func() (bool, string) {
		var n corev1.Node
		if err := p.Get(ctx, clientKey("", name), &n); err != nil {
			return false, err.Error()
		}
		for _, c := range n.Status.Conditions {
			if c.Type == corev1.NodeReady {
				return c.Status == corev1.ConditionTrue && len(n.Spec.Taints) == 0, c.Message
			}
		}
		return false, "it says nothing of being ready"
	})
}

// started starts the command and waits until the writers write and some volumes exist.
func (p *project) started(c *command) {
	p.t.Helper()
	p.start(c)
	p.during(c, "the run goes on", func() bool {
		var pods corev1.PodList
		if err := p.List(p.t.Context(), &pods, client.InNamespace(p.name),
			client.HasLabels{"cnsbench.dev/run"}); err != nil {
			return false
		}
		running := 0
		for _, pod := range pods.Items {
			if pod.Status.Phase == corev1.PodRunning {
				running++
			}
		}
		return running >= 6
	})
}

// removes waits until the command starts to remove what it has created.
func (p *project) removes(c *command) {
	p.t.Helper()
	p.during(c, "the run is over", func() bool { return strings.Contains(c.out.String(), "removing") })
}

// testNodeHealed checks that a run continues after a node is away for less than the timeout of an
// agent, and that the ops affected by the outage have its length on record.
func testNodeHealed(p *project) {
	p.breaks()
	c := p.command("local", onBothNodes("75s"))
	p.started(c)
	killed := p.killNode("node2")
	time.Sleep(20 * time.Second)
	p.testbed("heal-node", "node2")
	healed := time.Now()
	p.ended(c, 0)
	b, err := bundle.Open(c.bundle)
	if err != nil {
		p.t.Fatal(err)
	}
	from, to := op.Time(killed.Sub(b.Run.Clock.Start)), op.Time(healed.Sub(b.Run.Clock.Start))
	var n, waited int
	first, last := op.Never, op.Never
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		if o.Action != "vol" || o.Started < from || o.Started > to {
			continue
		}
		n++
		if o.Outcome != op.OK {
			p.t.Errorf("op of the outage: %s: %s", o.Outcome, o.Message)
		}
		if o.Ended > to {
			waited++
			if first == op.Never {
				first = o.Ended
			}
			first, last = min(first, o.Ended), max(last, o.Ended)
		}
	}
	if waited == 0 || waited == n {
		p.t.Errorf("%d of %d volumes of the outage were ready only after it; want those of one node", waited, n)
	}
	p.t.Logf("node2 was away for %v; of %d volumes begun meanwhile %d waited for it: the first was ready %v after it was back, the last %v",
		healed.Sub(killed).Round(time.Millisecond), n, waited, time.Duration(first-to).Round(time.Millisecond), time.Duration(last-to).Round(time.Millisecond))
}

// testNodeLost checks that a run fails and names the workload if a node is away for longer than the
// timeout of an agent, and that everything is removed once the node has returned.
func testNodeLost(p *project) {
	p.breaks()
	c := p.command("local", onBothNodes("5m"))
	p.started(c)
	killed := p.killNode("node2")
	p.removes(c)
	noticed := time.Now()
	p.testbed("heal-node", "node2")
	healed := time.Now()
	p.nodeReady(p.t.Context(), "node2")
	ready := time.Now()
	p.ended(c, 2, "workload two-0 failed", "is its node down?", "is on node node2")
	ended := time.Now()
	p.t.Logf("node2 was lost: noticed after %v; healed %v after the kill: ready after %v more, the run ended and all was removed after %v",
		noticed.Sub(killed).Round(time.Millisecond), healed.Sub(killed).Round(time.Millisecond), ready.Sub(healed).Round(time.Millisecond), ended.Sub(healed).Round(time.Millisecond))
}

// testCutOff checks that a run fails and names the workload if no packet passes between the pods of
// node2 and the runner. The test bed's CNI plugins do not enforce network policies, so iptables
// rules in the node's network namespace drop the packets.
func testCutOff(p *project) {
	p.breaks()
	l, err := net.Listen("tcp", machineAddress+":0")
	if err != nil {
		p.t.Skipf("needs the test bed's bridge: %v", err)
	}
	address := l.Addr().String()
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	_ = l.Close() // free the port for the runner
	c := p.command("local", onBothNodes("5m"), "--listen", address)
	p.started(c)
	for _, way := range []string{"--dport", "--sport"} {
		rule := []string{"FORWARD", "-p", "tcp", way, port, "-j", "DROP"}
		p.inNode("cnsb2", append([]string{"iptables", "-w", "-I"}, rule...)...)
		p.t.Cleanup(func() { p.inNode("cnsb2", append([]string{"iptables", "-w", "-D"}, rule...)...) })
	}
	cut := time.Now()
	p.removes(c)
	noticed := time.Since(cut)
	p.ended(c, 2, "workload two-0 failed", "the peer stopped responding: no data for 30s")
	p.t.Logf("cut off: noticed after %v; the run ended and all was removed after %v", noticed.Round(time.Millisecond),
		time.Since(cut).Round(time.Millisecond))
}

// inNode runs a program in a node's network namespace.
func (p *project) inNode(netns string, args ...string) {
	p.t.Helper()
	if out, err := exec.Command("nsenter", append([]string{"--net=/run/netns/" + netns},
		args...)...).CombinedOutput(); err != nil {
		p.t.Fatalf("%v in %s: %v\n%s", args, netns, err, out)
	}
}
