//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

// noSpace is the message of ENOSPC.
const noSpace = "no space left on device"

// smallDisk mounts a tmpfs at a new directory of the box. resize changes its size.
func (b *box) smallDisk(name, size string) (dir string, resize func(string)) {
	b.Helper()
	needRoot(b)
	dir = b.in(name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		b.Fatal(err)
	}
	mount := func(flags uintptr, size string) {
		b.Helper()
		if err := syscall.Mount("tmpfs", dir, "tmpfs", flags, "size="+size); err != nil {
			b.Fatal(err)
		}
	}
	mount(0, size)
	b.Cleanup(func() { _ = syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir, func(size string) { mount(syscall.MS_REMOUNT, size) }
}

// TestRunnersDiskIsFull fills the disk of the bundle while volumes are attached, written, snapshotted and created.
// The run ends by itself and says why, what was acknowledged can be read, and nothing is left.
func TestRunnersDiskIsFull(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	disk, _ := b.smallDisk("small", "4m")
	file := b.write("bench.yaml", head+`spec:
  runtime: 2m
  actions:
    - {name: w, createObjSpec: {workload: mine}}
    - {name: snap, rateName: r, snapshotSpec: {actionName: w}}
    - {name: v, rateName: fast, createObjSpec: {volume: {storageClass: "null", size: 1Mi}}}
  rates:
    - {name: r, constantRateSpec: {interval: 500ms}}
    - {name: fast, startAfter: 3s, poissonRateSpec: {perSecond: 500}}
`+class("loopfile")+workload(`[sh, -c, "while echo $((n += 1)) >>/data/n; do sleep 0.01; done"]`))
	r := b.run("run", file, "--out", filepath.Join(disk, "bundle"), "--storage-dir", b.in("storage")).wants(t, 2)
	for _, want := range []string{"small/bundle", noSpace} {
		if !strings.Contains(r.stderr, want) {
			t.Errorf("it does not say %q\n%v", want, r)
		}
	}
	s, ops := b.readable(filepath.Join(disk, "bundle"))
	if s.State != "failed" || !strings.Contains(s.Reason, noSpace) {
		t.Errorf("state %q, reason %q", s.State, s.Reason)
	}
	done := map[string]int{}
	for _, o := range ops {
		if o.Outcome == "ok" {
			done[o.Action]++
		}
	}
	if done["w"] != 1 || done["snap"] < 2 || done["v"] < 100 {
		t.Errorf("ops that can be read: %v", done)
	}
	b.clean(disk)
	b.run("cleanup", filepath.Join(disk, "bundle")).wants(t, 0)
}

// TestDriversDiskIsFull fills the disk below a driver with snapshots, deletes them, and makes others. A snapshot that
// has no room is a failed operation with the driver's code, nothing of it remains, and those of later are whole.
func TestDriversDiskIsFull(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	disk, _ := b.smallDisk("volumes", "120m")
	file := b.write("bench.yaml", head+`spec:
  runtime: 10s
  actions:
    - {name: w, createObjSpec: {workload: mine}}
    - {name: snap, rateName: r, snapshotSpec: {actionName: w}}
    - {name: drop, rateName: late, deleteSpec: {actionName: snap}}
    - {name: again, rateName: later, snapshotSpec: {actionName: w}, then: [back]}
    - {name: back, restoreSpec: {actionName: again}}
  rates:
    - {name: r, startAfter: 1s, limit: 20, constantRateSpec: {interval: 100ms}}
    - {name: late, startAfter: 5s, limit: 20, constantRateSpec: {interval: 50ms}}
    - {name: later, startAfter: 8s, limit: 1, constantRateSpec: {interval: 1s}}
`+class("hostdir")+workload(`[sh, -c, "head -c 20000000 /dev/urandom >/data/n && sync && sleep 60"]`))
	r := b.run("run", file, "--out", b.bundle(), "--storage-dir", disk).wants(t, 0)
	_, ops := b.readable(b.bundle())
	done, full := map[string]int{}, 0
	for _, o := range ops {
		switch {
		case o.Outcome == "ok":
			done[o.Action]++
		case o.Action == "snap" && o.Code == "ResourceExhausted" && strings.Contains(o.Message, noSpace):
			full++
		case o.Action != "drop": // it has no target when all are deleted
			t.Errorf("op %d, %s: %s %s: %s", o.ID, o.Action, o.Outcome, o.Code, o.Message)
		}
	}
	if done["snap"] == 0 || full == 0 || done["snap"]+full != 20 || done["again"] != 1 || done["back"] != 1 {
		t.Errorf("done %v, without room %d\n%v", done, full, r)
	}
	if severity, evidence := b.flagOf("failedOps"); severity != "invalid" || !strings.HasPrefix(evidence, "snap: ") {
		t.Errorf("flag failedOps: %s %s", severity, evidence)
	}
	b.clean(disk)
	if left, _ := filepath.Glob(filepath.Join(disk, "*", "*")); len(left) > 0 {
		t.Errorf("left on the driver's disk: %v", left)
	}
}

// TestResultsServicesDiskIsFull fills the disk of a results service while a bundle is sent to it. The sender says so
// and keeps the bundle, the service lists the run as one that is not complete, without its temporary files, and goes
// on when there is room again.
func TestResultsServicesDiskIsFull(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	disk, resize := b.smallDisk("results", "256k")
	at := freePort(t)
	s := b.start(b.cnsbench(), "serve", "--dir", disk, "--listen", at)
	s.reaches("results of")
	r := b.bench(head+`spec:
  runtime: 2s
  actions: [{name: v, rateName: r, createObjSpec: {volume: {storageClass: "null", size: 1Mi}}}]
  rates: [{name: r, poissonRateSpec: {perSecond: 1000}}]
`).wants(t, 0)
	client := &server.Client{URL: "http://" + at}
	remote, err := client.Run("team", "r1")
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var log []string
	options := server.Options{Every: 20 * time.Millisecond, MaxBackoff: 100 * time.Millisecond, Log: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		log = append(log, line)
	}}
	logged := func(text string) bool {
		mu.Lock()
		defer mu.Unlock()
		return strings.Contains(strings.Join(log, "\n"), text)
	}
	push, err := server.StartPush(t.Context(), b.bundle(), remote, options)
	if err != nil {
		t.Fatal(err)
	}
	const full = "the copy of the bundle is waiting, no data is lost: "
	s.until("the sender waits", func() bool { return logged(full) })
	if !logged("507") || !logged(noSpace) {
		t.Errorf("the sender says %q", log)
	}
	if !strings.Contains(s.errs.String(), noSpace) {
		t.Errorf("the service says %q", s.errs.String())
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := push.Finish(ctx); err == nil || !strings.Contains(err.Error(), noSpace) {
		t.Errorf("without room the copy ends with %v", err)
	}
	b.run("show", "--verify", b.bundle()).wants(t, 0) // it is still where it was
	runs, err := client.Runs(t.Context(), "team")
	if err != nil || len(runs) != 1 || runs[0].Closed != "" {
		t.Errorf("runs %+v, %v", runs, err)
	}
	files, err := remote.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasPrefix(filepath.Base(f.Path), ".") {
			t.Errorf("a temporary file is listed: %s", f.Path)
		}
		if own, err := os.Stat(filepath.Join(b.bundle(), f.Path)); err != nil || own.Size() < f.Size {
			t.Errorf("%s has %d bytes at the service: %v", f.Path, f.Size, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(disk, "team", "r1", "run.json")); err != nil || !json.Valid(text) {
		t.Errorf("run.json at the service: %v, %s", err, text)
	}
	shown := b.run("show", "--cluster", "team/r1", "--results", "http://"+at).wants(t, 0)
	if !strings.Contains(shown.said(), "the bundle is incomplete") {
		t.Errorf("a part of a bundle is shown as a whole one: %v", shown)
	}

	resize("64m")
	push, err = server.StartPush(t.Context(), b.bundle(), remote, options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if err := push.Finish(ctx); err != nil {
		t.Fatalf("with room: %v\n%v", err, r)
	}
	there := filepath.Join(disk, "team", "r1")
	if diff := cmp.Diff(tree(t, b.bundle()), tree(t, there)); diff != "" {
		t.Errorf("the copy differs: %.2000s", diff)
	}
	b.run("show", "--verify", there).wants(t, 0)
	if left, _ := filepath.Glob(filepath.Join(there, ".*", "*")); len(left) > 0 {
		t.Errorf("temporary files are left: %v", left)
	}
	s.signal(os.Interrupt)
	if r := s.wait(); r.code != 0 {
		t.Errorf("%v", r)
	}
	b.clean(disk)
}
