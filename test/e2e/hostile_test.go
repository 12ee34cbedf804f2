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

// TestHostileLedger checks that cleanup deletes nothing that a bundle names: neither its ledger nor its identity, whose
// directories carry marks and the state of a driver. Any user may have written a bundle.
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

	const id = "0badc0de"
	run["runID"] = id
	nonce := strings.Repeat("0a", 16)
	run["identity"] = map[string]any{"runID": id, "nonce": nonce, "scratch": b.in("tmp", "cnsbench-"+id),
		"storage": b.in("theirs"), "endpoints": []string{b.in("s")}}
	forged, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
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
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	// What the forged identity names looks like the run's own.
	for _, dir := range []string{canary("tmp", "cnsbench-"+id), canary("theirs", id)} {
		must(os.WriteFile(filepath.Join(dir, ".cnsbench-run"), []byte(id+" "+nonce+"\n"), 0o600))
	}
	must(os.MkdirAll(filepath.Join(canary("theirs", id, "hostdir"), "state"), 0o700))
	state, _ := json.Marshal(map[string]any{"ID": "v", "Row": map[string]any{"ID": "v", "Published": map[string]any{precious: map[string]any{}}}})
	must(os.WriteFile(b.in("theirs", id, "hostdir", "state", "volumes.jsonl"), append(state, '\n'), 0o600))
	must(os.Symlink(canaries[precious], b.in("theirs", id, "hostdir", "state", "volumes.jsonl.new")))
	entries := []map[string]any{
		{"kind": "dir", "name": precious},
		{"kind": "dir", "name": "x", "data": map[string]string{"path": precious}},
		{"kind": "dir", "name": canary("other", "cnsbench-"+id)},
		{"kind": "dir", "name": b.in("tmp", "cnsbench-"+id) + "/../../precious"},
		{"kind": "driver", "name": "hostdir", "data": map[string]string{"baseDir": canary("base", "hostdir")}},
		{"kind": "driver", "name": "hostdir", "data": map[string]string{"baseDir": b.in("theirs", id, "hostdir")}},
		{"kind": "dir", "name": b.in("tmp", "cnsbench-"+id)},
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
			must(os.RemoveAll(dir))
			must(os.Mkdir(dir, 0o755))
			must(os.WriteFile(filepath.Join(dir, "ledger"), append(line, '\n'), 0o644))
			if withRun {
				must(os.WriteFile(filepath.Join(dir, "run.json"), forged, 0o644))
			}
			for _, flags := range [][]string{{"--dry-run"}, nil} {
				code, says := 2, "does not say which run it is of"
				if withRun {
					code, says = 0, "not registered"
				}
				r := b.run(append([]string{"cleanup", dir}, flags...)...).wants(t, code)
				if !strings.Contains(r.said(), says) {
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
			if text, err := os.ReadFile(file); err != nil || string(text) != "sing" {
				t.Fatalf("%s: %q, %v", name, text, err)
			}
		}
	}

	// A bundle of another that claims to be a run of this user is not taken for it.
	copied := b.in("copy")
	must(os.CopyFS(copied, os.DirFS(b.bundle())))
	if r := b.run("cleanup", copied).wants(t, 1); !strings.Contains(r.stderr, b.bundle()) {
		t.Errorf("the bundle of the run is not named\n%v", r)
	}
	r := b.run("cleanup", b.bundle(), "--dry-run").wants(t, 0)
	for _, want := range []string{"directory " + b.in("storage"), "volume ", "would be removed"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("%q is not listed\n%v", want, r)
		}
	}
	must(os.RemoveAll(b.bundle())) // a moved bundle is the run's
	b.run("cleanup", copied).wants(t, 0)
	b.run("show", copied, "--verify").wants(t, 0)
	b.clean(b.in("tmp", "cnsbench-"+id))
}
