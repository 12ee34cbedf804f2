//go:build e2e

package kubernetes

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/trace"
)

// TestTrace checks that three records of one run agree: one from watches, one from the API server's
// audit log and one from the bundle. They have the operations, their objects, their sources and
// their times.
func TestTrace(t *testing.T) {
	t.Parallel()
	audit := os.Getenv("CNSBENCH_AUDIT_LOG")
	if audit == "" {
		t.Skip("CNSBENCH_AUDIT_LOG does not name the API server's audit log")
	}
	p := newBed(t).project(t, noRights)
	dir := t.TempDir()
	live := filepath.Join(dir, "live.csv.gz")
	said := &output{}
	recorder := exec.Command(p.binary, "trace", "record", "-n", p.name, "-o", live)
	recorder.Stdout, recorder.Stderr = t.Output(), io.MultiWriter(said, t.Output())
	if err := recorder.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan error, 1)
	go func() { over <- recorder.Wait() }()
	t.Cleanup(func() { _ = recorder.Process.Kill() }) // no effect if it has ended
	p.until(t.Context(), "the recorder watches", func() (bool, string) {
		return strings.Contains(said.String(), "recording"), said.String()
	})

	c := p.command("local", `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: traced}
spec:
  runtime: 20s
  gracePeriod: 20s
  seed: 3
  actions:
    - {name: vol, rateName: often, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
    - {name: snap, rateName: later, snapshotSpec: {actionName: vol, snapshotClass: "null"}}
    - {name: back, rateName: later, restoreSpec: {actionName: snap}}
    - {name: grow, rateName: later, resizeSpec: {actionName: vol, increaseBy: 64Mi, select: roundRobin}}
    - {name: unsnap, rateName: last, deleteSpec: {actionName: snap}}
    - {name: unback, rateName: last, deleteSpec: {actionName: back}}
  rates:
    - {name: often, poissonRateSpec: {perSecond: 2}}
    - {name: later, startAfter: 4s, constantRateSpec: {interval: 2s}}
    - {name: last, startAfter: 12s, constantRateSpec: {interval: 3s}}
`, "--keep")
	p.start(c)
	<-c.over
	if code := c.ProcessState.ExitCode(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if err := recorder.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-over; err != nil {
		t.Fatalf("the recorder: %v", err)
	}
	own, logged := filepath.Join(dir, "own.csv"), filepath.Join(dir, "logged.jsonl.gz")
	for _, args := range [][]string{{"--from-bundle", c.bundle, "-o", own}, {"--from-audit", audit, "-o", logged}} {
		if _, err := p.cnsbench(t, append([]string{"trace", "record"}, args...)...); err != nil {
			t.Fatal(err)
		}
	}
	want := happenings(t, own, "")
	if len(want) < 50 {
		t.Errorf("only %d operations: the test shows little", len(want))
	}
	for _, file := range []string{live, logged} {
		got := happenings(t, file, p.name+"/")
		if diff := cmp.Diff(names(want), names(got)); diff != "" {
			t.Errorf("%s differs from the bundle (-bundle +it):\n%s", filepath.Base(file), diff)
			continue
		}
		t.Logf("%s: %d operations, at most %v from the bundle's times", filepath.Base(file), len(got), apart(want, got))
		if far := apart(want, got); far > 2*time.Second {
			t.Errorf("%s: an operation is %v from where the bundle has it", filepath.Base(file), far)
		}
	}
	if _, err := p.cnsbench(t, "cleanup", c.bundle); err != nil {
		t.Error(err)
	}
	p.nothingLeft()
}

// TestReplayInPod checks that a runner's pod replays a trace file of the host. The pod gets the
// trace in pieces, here two, which are deleted afterwards.
func TestReplayInPod(t *testing.T) {
	t.Parallel()
	p := newBed(t).project(t, noRights)
	p.bind("default", "cluster-admin")
	dir := t.TempDir()
	text := "# cnsbench trace 1\ntime,op,kind,object,source\n-1000000000,create,volume,old,\n"
	const n = 5
	for i := range n {
		text += fmt.Sprintf("%d,create,volume,v%d,\n%d,snapshot,snapshot,s%d,v%d\n", i*1e9, i, i*1e9+1e6, i, i)
	}
	text += strings.Repeat("# "+strings.Repeat("-", 1000)+"\n", 1200) // exceeds the size of one ConfigMap
	text += "7000000000,delete,volume,old,\n7000000000,delete,volume,v0,\n"
	for name, text := range map[string]string{"short.csv": text, "benchmark.yaml": `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: replay}
spec:
  actions:
    - {name: volumes, rateName: trace, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
    - {name: snapshots, rateName: trace, snapshotSpec: {actionName: volumes}}
    - {name: deletions, rateName: trace, deleteSpec: {actionName: volumes}}
  rates:
    - {name: trace, maxInFlight: 0, traceRateSpec: {source: short.csv}}
`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	c := p.commandOn("pod", filepath.Join(dir, "benchmark.yaml"))
	p.start(c)
	p.during(c, "the runner is handed the Benchmark and two pieces of the trace",
		func() bool { return p.handed() == 3 })
	p.ended(c, 0, "volumes.before", "snapshots", "deletions")
	if left := p.handed(); left > 0 {
		t.Errorf("%d ConfigMaps of the runner are left", left)
	}
	b, err := bundle.Open(c.bundle)
	if err != nil {
		t.Fatal(err)
	}
	if r := b.Run.Rates[0]; r.Triggers != 2*n+2 || r.Started != 2*n+2 {
		t.Errorf("%+v, want %d triggers", r, 2*n+2)
	}
	want := []bundle.Trace{{Rate: "trace", File: "short.csv", SHA256: fmt.Sprintf("%x", sha256.Sum256([]byte(text))),
		Records: 2*n + 3}}
	if diff := cmp.Diff(want, b.Run.Source.Traces); diff != "" {
		t.Errorf("the record has another trace (-want +got):\n%s", diff)
	}
	if s := strings.ReplaceAll(string(b.Run.Spec), " ", ""); !strings.Contains(s, `"source":"short.csv"`) {
		t.Errorf("the record has another source: %s", s)
	}
}

// TestFolderInPod checks that a runner's pod uses a library folder of the host. The pod gets the
// folder in a ConfigMap, which is deleted afterwards.
func TestFolderInPod(t *testing.T) {
	t.Parallel()
	p := newBed(t).project(t, noRights)
	p.bind("default", "cluster-admin")
	dir := t.TempDir()
	for name, text := range map[string]string{"library/here/workload.yaml": `
apiVersion: v1
kind: ConfigMap
metadata: {name: mine, labels: {type: workload}, annotations: {cnsbench.default.word: wrong}}
`, "library/here/pod.yaml": `
apiVersion: v1
kind: Pod
metadata: {name: check, annotations: {role: workload, sync: "true"}}
spec:
  restartPolicy: Never
  securityContext: {runAsNonRoot: true, runAsUser: 65532, seccompProfile: {type: RuntimeDefault}}
  containers:
    - name: check
      image: "{{TOOLS_IMAGE}}"
      securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
      command: [/bin/sh, /config/check.sh, "{{word}}"]
      volumeMounts: [{name: config, mountPath: /config}]
  volumes: [{name: config, configMap: {name: mine}}]
`, "library/here/check.sh": `test "$1" = right`, "benchmark.yaml": `
apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: folder}
spec:
  library: [{folderSpec: {path: library}}]
  actions: [{name: w, createObjSpec: {workload: mine, vars: {word: right}}}]
`} {
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o755), os.WriteFile(at, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	c := p.commandOn("pod", filepath.Join(dir, "benchmark.yaml"))
	p.start(c)
	p.during(c, "the runner is handed the Benchmark and the folder", func() bool { return p.handed() == 2 })
	p.ended(c, 0, "runner: pod")
	if left := p.handed(); left > 0 {
		t.Errorf("%d ConfigMaps of the runner are left", left)
	}
	b, err := bundle.Open(c.bundle)
	if err != nil {
		t.Fatal(err)
	}
	instances, err := b.Instances()
	if err != nil || len(instances) != 1 || instances[0].End == nil || !instances[0].End.OK {
		t.Errorf("%+v, %v; want one that ended well", instances, err)
	}
}

// handed returns the number of ConfigMaps for runners of the project.
func (p *project) handed() int {
	return strings.Count(p.kubectl("get", "configmaps", "-l", "cnsbench.dev/runner", "-o", "name"), "\n")
}

// happening is one operation. Its name is the same in all three records.
type happening struct {
	name string
	at   int64
}

// happenings returns the operations in a trace on volumes and snapshots whose names start with
// prefix, sorted by name. Times are relative to the first operation.
func happenings(t *testing.T, file, prefix string) []happening {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	records, err := trace.Read(f)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var all []happening
	first := int64(-1)
	for _, r := range records {
		if r.Kind != trace.Volume && r.Kind != trace.Snapshots || !strings.HasPrefix(r.Object, prefix) ||
			r.Op == trace.Exists || r.Op == trace.End {
			continue
		}
		if first < 0 || r.Time < first {
			first = r.Time
		}
		if r.Op != trace.Create && r.Op != trace.Resize {
			r.Size = 0 // a copy has the size of its source, which the bundle does not record
		}
		all = append(all, happening{fmt.Sprintf("%s %s %s of %s, %d bytes, %s", r.Op, r.Kind, short(r.Object),
			short(r.Source), r.Size, r.Outcome), r.Time})
	}
	for i := range all {
		all[i].at -= first
	}
	slices.SortFunc(all, func(a, b happening) int { return strings.Compare(a.name, b.name) })
	return all
}

// short returns an object's name without its namespace and run.
func short(object string) string {
	object = object[strings.LastIndexByte(object, '/')+1:]
	if parts := strings.SplitN(object, "-", 3); len(parts) == 3 && parts[0] == "cnsb" {
		return parts[2]
	}
	return object
}

func names(all []happening) (list []string) {
	for _, h := range all {
		list = append(list, h.name)
	}
	return list
}

// apart returns the largest difference between the two times of an operation.
func apart(a, b []happening) (far time.Duration) {
	for i := range a {
		far = max(far, time.Duration(a[i].at-b[i].at).Abs())
	}
	return far
}
