package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// TestHostileLedger checks that cleanup deletes nothing that a ledger names unless it carries the
// identity of the run. Any user may have written a ledger.
func TestHostileLedger(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	const spec = "spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: sut}}}]}\n"
	b.bench(head+spec+class("hostdir"), "--keep").wants(t, 0)
	text, err := os.ReadFile(b.in("bundle", "run.json"))
	if err != nil {
		t.Fatal(err)
	}
	var run map[string]any
	decode(t, string(text), &run)
	victim := exec.Command("sleep", "600")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = victim.Wait(); close(ended) }()
	t.Cleanup(func() { _ = victim.Process.Kill(); <-ended })
	pid := strconv.Itoa(victim.Process.Pid)
	stat, _ := os.ReadFile("/proc/" + pid + "/stat")
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	_, fields, _ := strings.Cut(string(stat), ") ")
	process := map[string]string{"pid": pid, "start": strings.Fields(fields)[19],
		"boot": strings.TrimSpace(string(boot))}

	id := fmt.Sprint(run["runID"])
	canaries := map[string]string{} // directory to file
	canary := func(parts ...string) string {
		dir := b.in(parts...)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		canaries[dir] = filepath.Join(dir, "canary")
		if err := os.WriteFile(canaries[dir], []byte("sing"), 0o644); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	precious := canary("precious")
	entries := []map[string]any{
		{"kind": "dir", "name": precious},
		{"kind": "dir", "name": "x", "data": map[string]string{"path": precious}},
		{"kind": "dir", "name": canary("other", "cnsbench-"+id)},
		{"kind": "dir", "name": b.in("tmp", "cnsbench-"+id) + "/../../precious"},
		{"kind": "driver", "name": "hostdir", "data": map[string]string{"baseDir": canary("base", "hostdir")}},
		{"kind": "driver", "name": "..", "data": map[string]string{"baseDir": b.in("storage")}},
		{"kind": "process", "name": "p", "data": process},
		{"kind": "volume", "name": "w", "data": map[string]string{"endpoint": b.in("s"),
			"request": `{"name":"cnsbench-` + id + `-w"}`,
			"stage":   precious, "target": precious}},
		{"kind": "snapshot", "name": "s", "data": map[string]string{"endpoint": b.in("s"),
			"request": `{"name":"theirs"}`}},
		{"kind": "unheard-of", "name": precious},
	}
	for _, e := range entries {
		name := fmt.Sprintf("%v %.60s", e["kind"], e["name"])
		line, _ := json.Marshal(map[string]any{"add": e})
		for _, withRun := range []bool{false, true} {
			dir := b.in("hostile")
			must := func(err error) {
				if err != nil {
					t.Fatal(err)
				}
			}
			must(os.RemoveAll(dir))
			must(os.Mkdir(dir, 0o755))
			must(os.WriteFile(filepath.Join(dir, "ledger"), append(line, '\n'), 0o644))
			if withRun { // the identity of a completed run
				must(os.WriteFile(filepath.Join(dir, "run.json"), text, 0o644))
			}
			for _, flags := range [][]string{{"--dry-run"}, nil} {
				r := b.run(append([]string{"cleanup", dir}, flags...)...).wants(t, 2)
				if !strings.Contains(r.stdout+r.stderr, "left alone") {
					t.Errorf("%s, run.json %v: not listed\n%v", name, withRun, r)
				}
			}
		}
		select {
		case <-ended:
			t.Fatalf("%s ended a process", name)
		default:
		}
		for _, file := range canaries {
			if _, err := os.Stat(file); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
	}

	// In the run's own bundle the manifest detects the change.
	ledger := b.in("bundle", "ledger")
	was, err := os.ReadFile(ledger)
	if err != nil {
		t.Fatal(err)
	}
	b.run("show", b.bundle(), "--verify").wants(t, 0)
	b.write("bundle/ledger", string(was)+`{"add":{"kind":"dir","name":"`+precious+`"}}`+"\n")
	for _, args := range [][]string{{"show", b.bundle(), "--verify"}, {"cleanup", b.bundle()}} {
		if r := b.run(args...).wants(t, 2); !strings.Contains(r.stderr, "ledger has changed") {
			t.Errorf("the changed ledger is not named\n%v", r)
		}
	}
	b.write("bundle/ledger", string(was))
	r := b.run("cleanup", b.bundle(), "--dry-run").wants(t, 0)
	if !strings.Contains(r.stdout, "driver hostdir: would be removed") {
		t.Errorf("what would be removed is not listed\n%v", r)
	}
	b.run("cleanup", b.bundle()).wants(t, 0)
	b.run("show", b.bundle(), "--verify").wants(t, 0)
	b.clean()
}
