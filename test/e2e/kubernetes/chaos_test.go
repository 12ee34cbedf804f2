//go:build e2e

package kubernetes

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// A victim is what is killed in the middle of a run.
type victim struct {
	name string
	// runner is where the run's runner is: local or pod.
	runner string
	// kill kills it. It may start it again; what a part of the test bed is for does not do that by itself.
	kill func(p *project, c *command, r *rand.Rand)
	// ends reports that the command is killed with it, so that its user has to clean up.
	ends bool
	// loses reports that the API server may have done what its audit log does not have.
	loses bool
	// blinds reports that the run's watches are lost with it.
	blinds bool
}

// part is a part of the test bed, which is away for up to six seconds.
func part(name string) victim {
	return victim{name: name, runner: "local", loses: name == "apiserver" || name == "etcd",
		blinds: name == "apiserver", kill: func(p *project, _ *command, r *rand.Rand) {
			away := time.Duration(r.Int64N(int64(6 * time.Second)))
			p.testbed("kill", name)
			time.Sleep(away)
			p.testbed("start", name)
		}}
}

// pods kills pods of a namespace at once, as a node that loses power does.
func pods(label string) func(*project, *command, *rand.Rand) {
	return func(p *project, _ *command, _ *rand.Rand) {
		if err := p.DeleteAllOf(p.t.Context(), &corev1.Pod{}, client.InNamespace(p.name), client.HasLabels{label},
			client.GracePeriodSeconds(0)); err != nil {
			p.t.Fatal(err)
		}
	}
}

// podRunner returns the victim of a run whose runner is in a pod.
func podRunner(v victim) victim {
	v.runner = "pod"
	return v
}

// victims are the parts that are killed, in turn.
var victims = []victim{
	{name: "command", runner: "local", ends: true, kill: func(_ *project, c *command, _ *rand.Rand) {
		_ = c.Process.Signal(syscall.SIGKILL) // no effect if it has ended
	}},
	{name: "command of a runner's pod", runner: "pod", ends: true, kill: func(_ *project, c *command, _ *rand.Rand) {
		_ = c.Process.Signal(syscall.SIGKILL)
	}},
	{name: "runner's pod", runner: "pod", kill: pods("cnsbench.dev/runner")},
	{name: "agents", runner: "local", kill: pods("cnsbench.dev/run")},
	part("apiserver"), podRunner(part("apiserver")), part("etcd"), podRunner(part("etcd")), part("kcm"), part("scheduler"),
	part("kubelet-node1"), podRunner(part("kubelet-node2")), part("containerd-node1"), podRunner(part("containerd-node2")),
	part("snapshot-controller"), part("driver-btrfs"), part("csi-provisioner-btrfs"), part("csi-snapshotter-btrfs"),
	part("driver-loopfile"), part("csi-attacher-loopfile"),
	podRunner(network("network of both nodes", 30*time.Second, "node1", "node2")),
	network("network of node1", 30*time.Second, "node1"),
	network("node2, lost", 90*time.Second, "node2"), podRunner(network("node1, lost", 90*time.Second, "node1")),
}

// network is the network of nodes, which is cut for a time. A node is lost after 50 s without it.
func network(name string, away time.Duration, nodes ...string) victim {
	return victim{name: name, runner: "local", blinds: len(nodes) == 2,
		kill: func(p *project, _ *command, _ *rand.Rand) {
			p.testbed(append([]string{"kill-node"}, nodes...)...)
			defer p.testbed(append([]string{"heal-node"}, nodes...)...)
			time.Sleep(away)
		}}
}

// fewClusterKills is the number of kills of make e2e, and fewClusterSeed their seed: a commit is not judged by chance.
const (
	fewClusterKills = 2
	fewClusterSeed  = 1
)

// churn is a Benchmark that attaches, snapshots and deletes volumes of a class.
func churn(class string) string {
	return fmt.Sprintf(`
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: e2e}
spec:
  runtime: 20s
  gracePeriod: 20s
  actions:
    - {name: vol, rateName: r, timeout: 30s, createObjSpec: {volume: {storageClass: %[1]q, size: 64Mi, attach: true}}}
    - {name: snap, rateName: s, timeout: 30s, snapshotSpec: {actionName: vol, snapshotClass: %[1]q}}
    - {name: gone, rateName: s, timeout: 30s, deleteSpec: {actionName: vol}}
  rates:
    - {name: r, constantRateSpec: {interval: 1s}}
    - {name: s, startAfter: 4s, constantRateSpec: {interval: 2s}}
`, class)
}

// TestChaos kills parts of the cluster, and of a run on it, with SIGKILL at random moments: CNSBENCH_KILLS of them,
// from the seed CNSBENCH_SEED. docs/design/reliability.md says what is checked.
func TestChaos(t *testing.T) {
	bed := newBed(t)
	number := func(name string, otherwise uint64) uint64 {
		n, err := strconv.ParseUint(os.Getenv(name), 10, 64)
		if os.Getenv(name) == "" {
			return otherwise
		}
		if err != nil {
			t.Fatalf("invalid %s: %v", name, err)
		}
		return n
	}
	seed := uint64(fewClusterSeed)
	if os.Getenv("CNSBENCH_KILLS") != "" {
		seed = rand.Uint64N(1e9)
	}
	seed = number("CNSBENCH_SEED", seed)
	t.Logf("CNSBENCH_SEED=%d", seed)
	order := rand.New(rand.NewPCG(seed, 0)).Perm(len(victims))
	for i := range number("CNSBENCH_KILLS", fewClusterKills) {
		v := victims[order[int(i)%len(order)]]
		r := rand.New(rand.NewPCG(seed, i+1)) // of this kill, so that -run repeats it alone
		t.Run(fmt.Sprintf("%d %s, runner %s", i, v.name, v.runner), func(t *testing.T) {
			p := bed.project(t, noRights)
			p.breaks()
			p.bind("default", "cluster-admin")
			p.killOnce(v, r)
		})
	}
}

// killOnce runs a Benchmark, kills a part in the middle of it, and checks what is left.
func (p *project) killOnce(v victim, r *rand.Rand) {
	audit := p.auditOf(os.Getenv("CNSBENCH_AUDIT_LOG"))
	class := []string{"btrfs", "loopfile"}[r.IntN(2)]
	if strings.HasPrefix(v.name, "csi-") || strings.HasPrefix(v.name, "driver-") {
		class = v.name[strings.LastIndexByte(v.name, '-')+1:]
	}
	moment := time.Duration(r.Int64N(int64(25 * time.Second)))
	c := p.command(v.runner, churn(class))
	p.start(c)
	p.t.Logf("kills after %v, on %s", moment, class)
	var killed time.Time
	select {
	case <-time.After(moment):
		killed = time.Now()
		v.kill(p, c, r)
	case <-c.over:
		p.t.Fatalf("the command has ended before the kill\n%s", c.out)
	}
	select {
	case <-c.over:
	case <-time.After(patience):
		p.t.Fatalf("the run does not end\n%s", c.out)
	}
	code := c.ProcessState.ExitCode()
	p.t.Logf("exit code %d", code)
	_, err := os.Stat(filepath.Join(c.bundle, "run.json"))
	begun := err == nil || strings.Contains(c.out.String(), "running")
	if !v.ends && code != 0 && code != 2 && (begun || code != 1) {
		p.t.Errorf("exit code %d, want 0 or 2, or 1 before the run began", code)
	}
	p.bedWorks()
	if err == nil {
		if code != 0 {
			if out, err := p.cnsbench(p.t, "cleanup", c.bundle); err != nil {
				p.t.Errorf("cleanup: %v\n%s", err, out)
			}
		}
		p.truthful(c.bundle, audit(), v.loses)
		if v.blinds {
			p.gapStated(c.bundle, killed)
		}
	} else if !v.ends && (begun || code == 0 || !strings.Contains(c.out.String(), "cnsbench: ")) {
		p.t.Errorf("there is no bundle, of a run that had begun or does not say why it did not: %v\n%s", err, c.out)
	}
	p.until(context.Background(), "nothing is left of the run", func() (bool, string) {
		left := append(p.left(), p.snapshots()...)
		return len(left) == 0, fmt.Sprint(left)
	})
}

// bedWorks waits until all parts of the test bed work, and checks that no node is cordoned.
func (p *project) bedWorks() {
	p.t.Helper()
	p.until(p.t.Context(), "the test bed works", func() (bool, string) {
		cmd := exec.Command(filepath.Join(testbedDir(), "bin", "testbed"), "status")
		cmd.Env = append(os.Environ(), "TESTBED_DIR="+testbedDir())
		out, err := cmd.CombinedOutput()
		return err == nil, string(out)
	})
	var nodes corev1.NodeList
	if err := p.List(p.t.Context(), &nodes); err != nil {
		p.t.Fatal(err)
	}
	for _, n := range nodes.Items {
		if n.Spec.Unschedulable {
			p.t.Errorf("%s is cordoned", n.Name)
		}
	}
}

// snapshots lists the VolumeSnapshots of the namespace.
func (p *project) snapshots() (names []string) {
	p.t.Helper()
	var list unstructured.UnstructuredList
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: "snapshot.storage.k8s.io", Version: "v1",
		Kind: "VolumeSnapshotList"})
	if err := p.List(context.Background(), &list, client.InNamespace(p.name)); err != nil {
		p.t.Fatal(err)
	}
	for _, s := range list.Items {
		names = append(names, "snapshot "+s.GetName())
	}
	return names
}

// audited is what the API server's audit log says of claims and snapshots.
type audited struct {
	created []string
	// usable is when the server stored that a claim was bound or a snapshot ready: from the request to its end.
	usable map[string][2]time.Time
	// unsure is the first request to change the object that the server answered with its own error, such as 504 when the
	// client was killed: it may have stored the change.
	unsure map[string]time.Time
}

// auditOf returns a function that returns what happened in the namespace since the call of auditOf, by the API server's
// audit log.
func (p *project) auditOf(path string) func() audited {
	p.t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		p.t.Skipf("CNSBENCH_AUDIT_LOG does not name the API server's audit log: %v", err)
	}
	from := info.Size()
	return func() audited {
		f, err := os.Open(path)
		if err != nil {
			p.t.Fatal(err)
		}
		defer f.Close()
		if now, err := f.Stat(); err == nil && now.Size() < from {
			from = 0 // rotated
		}
		if _, err := f.Seek(from, io.SeekStart); err != nil {
			p.t.Fatal(err)
		}
		a := audited{usable: map[string][2]time.Time{}, unsure: map[string]time.Time{}}
		lines := bufio.NewReaderSize(f, 1<<20)
		for {
			line, err := lines.ReadBytes('\n')
			if err != nil {
				return a
			}
			a.add(line, p.name)
		}
	}
}

// add adds a line of the audit log, if it is of a claim or snapshot of the namespace.
func (a *audited) add(line []byte, namespace string) {
	var e struct {
		Stage, Verb              string
		ObjectRef                struct{ Resource, Namespace, Name, Subresource string }
		ResponseStatus           struct{ Code int }
		RequestReceivedTimestamp time.Time
		StageTimestamp           time.Time
		ResponseObject           struct {
			Status struct {
				Phase      string
				ReadyToUse bool
			}
		}
	}
	if json.Unmarshal(line, &e) != nil || e.Stage != "ResponseComplete" || e.ObjectRef.Namespace != namespace ||
		e.ObjectRef.Resource != "persistentvolumeclaims" && e.ObjectRef.Resource != "volumesnapshots" {
		return
	}
	name := e.ObjectRef.Name
	if e.Verb == "create" && e.ResponseStatus.Code == 201 && e.ObjectRef.Subresource == "" {
		a.created = append(a.created, name)
	}
	if before, ok := a.unsure[short(name)]; e.ResponseStatus.Code >= 500 &&
		(!ok || e.RequestReceivedTimestamp.Before(before)) {
		a.unsure[short(name)] = e.RequestReceivedTimestamp
	}
	status := e.ResponseObject.Status
	if e.ResponseStatus.Code != 200 || status.Phase != "Bound" && !status.ReadyToUse {
		return
	}
	if before, ok := a.usable[short(name)]; !ok || e.StageTimestamp.Before(before[1]) {
		a.usable[short(name)] = [2]time.Time{e.RequestReceivedTimestamp, e.StageTimestamp}
	}
}

// slack is how far a milestone may be from the audit log's time beyond its error, on a machine that is busy. A gap of a
// watch is longer.
const slack = time.Second

// truthful checks a bundle against the audit log: it reads, each op is in it once, what succeeded was created and was
// usable when the bundle says, within the stated error, and nothing was created twice.
func (p *project) truthful(dir string, audit audited, incomplete bool) {
	p.t.Helper()
	if out, err := p.cnsbench(p.t, "show", dir); err != nil {
		p.t.Errorf("show: %v\n%s", err, out)
	}
	b, err := bundle.Open(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	ids := map[int64]bool{}
	ok, timed := 0, 0
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		if ids[o.ID] {
			p.t.Errorf("op %d is there twice", o.ID)
		}
		ids[o.ID] = true
		if o.Outcome != op.OK || o.Action == "gone" {
			continue
		}
		ok++
		if !incomplete && !slices.ContainsFunc(audit.created, func(name string) bool { return short(name) == o.Object }) {
			p.t.Errorf("%s succeeded, and the audit log does not have its creation", o.Object)
		}
		if p.onTime(&o, b.Run.Clock.Start, audit, incomplete) {
			timed++
		}
	}
	slices.Sort(audit.created)
	for i := range audit.created[:max(0, len(audit.created)-1)] {
		if audit.created[i] == audit.created[i+1] {
			p.t.Errorf("%s was created twice", audit.created[i])
		}
	}
	if ok > 0 && timed == 0 {
		p.t.Errorf("no time of %d creations could be compared with the audit log", ok)
	}
	p.t.Logf("%s: %d ops, %d of them creations that succeeded, %d with a time of the audit log; %d created in that log",
		b.Run.State, len(ids), ok, timed, len(audit.created))
}

// onTime checks that an object was usable when its op says, within the error that the op states. It reports whether the
// audit log has the time. If the log is incomplete, its time is the latest possible one.
func (p *project) onTime(o *op.Op, start time.Time, audit audited, incomplete bool) bool {
	p.t.Helper()
	at, ok := audit.usable[o.Object]
	if unsure, has := audit.unsure[o.Object]; has && unsure.Before(at[0]) {
		at[0] = unsure
	}
	if incomplete {
		at[0] = start
	}
	milestone := map[string]string{"vol": op.Bound, "snap": op.Ready}[o.Action]
	i := slices.IndexFunc(o.Milestones, func(m op.Milestone) bool { return m.Name == milestone })
	if !ok || i < 0 {
		return false
	}
	m := o.Milestones[i]
	errs := time.Duration(m.Err) + slack
	if s := start.Add(time.Duration(m.At)); s.Add(errs).Before(at[0]) || s.Add(-errs).After(at[1]) {
		p.t.Errorf("%s of %s: %v ± %v, but by the audit log between %v and %v", m.Name, o.Object,
			time.Duration(m.At), time.Duration(m.Err), at[0].Sub(start), at[1].Sub(start))
	}
	return true
}

// gapStated checks that the log of a run says that its watches were lost, if an op had started by then.
func (p *project) gapStated(dir string, killed time.Time) {
	p.t.Helper()
	b, err := bundle.Open(dir)
	if err != nil {
		p.t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "log.jsonl"))
	if err != nil {
		p.t.Fatal(err)
	}
	watched := false
	for o, err := range b.Ops() {
		if err != nil {
			p.t.Fatal(err)
		}
		watched = watched || o.Started.Known() && b.Run.Clock.Start.Add(time.Duration(o.Started)).Before(killed)
	}
	if watched && !strings.Contains(string(text), "was lost") {
		p.t.Error("the log does not say that a watch was lost")
	}
}
