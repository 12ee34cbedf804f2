//go:build e2e

package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const smallStudy = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: small}
spec:
  repetitions: 2
  factors:
    spec.rates.loop.concurrencySpec.parallelism: [1, 4]
  benchmark:
    runtime: 1s
    actions:
      - {name: vol, rateName: loop, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
    rates:
      - {name: loop, concurrencySpec: {parallelism: 1}}
`

type studyJSON struct {
	Responses []string
	Rows      []struct {
		Done, Of int
		Values   []struct {
			N      int
			Median *float64
		}
	}
}

// TestStudy: a study runs every trial, repeats what is not complete and nothing
// else, and shows a row for each cell; an interrupted one goes on.
func TestStudy(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("study.yaml", smallStudy)
	args := []string{"study", "run", file, "--out", b.in("study"), "--storage-dir", b.in("storage")}
	b.run(append(args, "--dry-run")...).wants(t, 0)
	if _, err := os.Stat(b.in("study")); err == nil {
		t.Error("--dry-run made the directory")
	}

	// An interrupt ends it with the trial that is under way.
	l := b.start(b.cnsbench(), args...)
	l.reaches("trial 2 of 4")
	time.Sleep(300 * time.Millisecond)
	l.signal(os.Interrupt)
	l.wait().wants(t, 130)

	// So does one whose process dies; what its trial has left is removed first.
	l = b.start(b.cnsbench(), args...)
	l.reaches("trial 3 of 4")
	time.Sleep(300 * time.Millisecond)
	l.kill()

	r := b.run(args...).wants(t, 0)
	if strings.Contains(r.stderr, "trial 1 of 4") || strings.Contains(r.stderr, "trial 2 of 4") {
		t.Errorf("a trial that was done was repeated\n%v", r)
	}
	if !strings.Contains(r.stderr, "trial 3_parallelism=1_r2 is repeated") || !strings.Contains(r.stderr, "trial 4 of 4") {
		t.Errorf("the trial that was killed was not repeated\n%v", r)
	}
	first := b.run("show", b.in("study", "1_parallelism=1_r1"), "--output", "json").wants(t, 0)
	var s summaryJSON
	if err := json.Unmarshal([]byte(first.stdout), &s); err != nil || s.State != "complete" {
		t.Errorf("the first trial: %v, %s", err, s.State)
	}

	// What lost its end is repeated, and what it left is kept.
	if err := os.Remove(b.in("study", "3_parallelism=1_r2", "manifest.json")); err != nil {
		t.Fatal(err)
	}
	r = b.run(append(args, "--output", "json")...).wants(t, 0)
	if strings.Count(r.stderr, "repetition") != 1 || !strings.Contains(r.stderr, "trial 3 of 4") {
		t.Errorf("not only the third trial was repeated\n%v", r)
	}
	kept, err := filepath.Glob(b.in("study", "incomplete", "3_*"))
	if err != nil || len(kept) != 2 { // once killed, once without its end
		t.Errorf("kept %v: %v", kept, err)
	}
	var table studyJSON
	if err := json.Unmarshal([]byte(r.stdout), &table); err != nil {
		t.Fatalf("%v\n%v", err, r)
	}
	if len(table.Rows) != 2 || len(table.Responses) != 2 {
		t.Fatalf("%+v", table)
	}
	for _, row := range table.Rows {
		if row.Done != 2 || row.Of != 2 || row.Values[0].N != 2 || row.Values[0].Median == nil || *row.Values[0].Median <= 0 {
			t.Errorf("%+v", row)
		}
	}
	b.run("study", "show", b.in("study")).wants(t, 0)
	b.run(append(args, "--repetitions", "3")...).wants(t, 1) // another edition
	b.clean()
}

// TestStudyOfChangedLibrary: a study whose trials would not be of the same workload
// as those before does not go on.
func TestStudyOfChangedLibrary(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("study.yaml", `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: mine}
spec:
  repetitions: 2
  benchmark:
    library: [{folderSpec: {path: mine}}]
    actions:
      - {name: done, createObjSpec: {workload: one}}
`)
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {restartPolicy: Never, containers: [{name: c, image: none, command: [sleep, \"0.1\"]}]}\n"
	if err := os.MkdirAll(b.in("mine/one"), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("mine/one/pod.yaml", pod)
	args := []string{"study", "run", file, "--out", b.in("study"), "--storage-dir", b.in("storage")}
	b.run(args...).wants(t, 0)
	b.run(args...).wants(t, 0) // nothing is left to do
	b.write("mine/one/pod.yaml", strings.Replace(pod, "0.1", "0.2", 1))
	r := b.run(args...).wants(t, 1)
	if !strings.Contains(r.stderr, "workload one (mine) has been changed since") || !strings.Contains(r.stderr, "another --out") {
		t.Error(r)
	}
	b.clean()
}

// figures are what the reports must have.
var figures = map[string][]string{
	"section-5.2":     {"<svg", "Operations a minute by parallelism", "Where they stood", "pending", "creating"},
	"attach-new":      {"<svg"},
	"attach-existing": {"<svg"},
	"section-5.4":     {"half-pgbench"}, // a table: nothing in it is done at a rate
}

// TestSuites runs the built-in suites, and the study among the examples, in small
// on engine local.
func TestSuites(t *testing.T) {
	for name, args := range map[string][]string{
		"section-5.2":     {"suite:section-5.2", "--scale", "small", "--factor", "vars.storageClass=null", "--factor", "spec.rates.parallel.concurrencySpec.parallelism=1,4", "--set", "spec.runtime=2s"},
		"attach-new":      {"suite:attach-new", "--scale", "small", "--factor", "vars.storageClass=null,hostdir"},
		"attach-existing": {"suite:attach-existing", "--scale", "small", "--factor", `spec.actions.volumes.createObjSpec.volume.storageClass=hostdir`},
		"section-5.4": {filepath.Join(module, "examples", "paper", "section-5.4.yaml"), "--repetitions", "1", "--factor", "vars.storageClass=hostdir",
			"--set", "vars.runtime=1", "--set", "vars.volumeSize=32Mi", "--set", "spec.actions.assembly.createObjSpec.count=2",
			"--set", "spec.actions.fio.createObjSpec.count=2", "--set", "spec.actions.pgbench.createObjSpec.count=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needProgram(t, "fio")
			b := newBox(t)
			r := b.run(append([]string{"study", "run", "--out", b.in("study"), "--storage-dir", b.in("storage"), "--output", "json"}, args...)...).wants(t, 0)
			var table studyJSON
			if err := json.Unmarshal([]byte(r.stdout), &table); err != nil {
				t.Fatalf("%v\n%v", err, r)
			}
			for _, row := range table.Rows {
				for i, v := range row.Values {
					if v.N != 1 || v.Median == nil {
						t.Errorf("%s: no value of %s\n%v", name, table.Responses[i], r)
					}
				}
			}
			page, err := os.ReadFile(b.in("study", "report.html"))
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range figures[name] {
				if !strings.Contains(string(page), want) {
					t.Errorf("the report has not %q", want)
				}
			}
			b.clean()
		})
	}
}
