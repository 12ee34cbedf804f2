//go:build e2e

package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
	Note, SweepNote string
	Order           *struct{ Seed int64 }
	Responses       []string
	Rows            []struct {
		Levels   []struct{ Value string }
		Done, Of int
		Values   []studyValue
	}
	Sweeps []any
}

type studyValue struct {
	N      int
	Median *float64
	Trials []struct {
		Trial      string
		Repetition int
		Value      *float64
		Missing    string
	}
}

// tooFew reports whether there is no value because every trial has too few operations for the quantile.
func (v *studyValue) tooFew() bool {
	for _, t := range v.Trials {
		if t.Missing != "tooFew" {
			return false
		}
	}
	return len(v.Trials) > 0
}

// order returns the names of a study's trials in the recorded order.
func (b *box) order(study string) (names []string) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(study, "study.json"))
	if err != nil {
		b.Fatal(err)
	}
	var recorded struct{ Trials []struct{ Name string } }
	decode(b, string(text), &recorded)
	for _, trial := range recorded.Trials {
		names = append(names, trial.Name)
	}
	return names
}

// TestStudy checks that a study runs every trial, repeats only incomplete trials, shows a row for
// each cell and resumes after an interrupt.
func TestStudy(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("study.yaml", smallStudy)
	args := []string{"study", "run", file, "--out", b.in("study"), "--storage-dir", b.in("storage")}
	b.run(append(args, "--dry-run")...).wants(t, 0)
	if _, err := os.Stat(b.in("study")); err == nil {
		t.Error("--dry-run made the directory")
	}

	// An interrupt ends the study together with the active trial.
	l := b.start(b.cnsbench(), args...)
	l.reaches("trial 2 of 4")
	trials := b.order(b.in("study"))
	recorded := func(trial string) func() bool {
		return func() bool { return b.size(b.in("study", trial, "events")) > 0 }
	}
	l.until("the second trial recorded ops", recorded(trials[1]))
	l.signal(os.Interrupt)
	l.wait().wants(t, 130)

	// A killed study ends too. Its next run first removes the leftovers of the killed trial.
	l = b.start(b.cnsbench(), args...)
	l.reaches("trial 3 of 4")
	l.until("the third trial recorded ops", recorded(trials[2]))
	l.kill()

	var table studyJSON
	decode(t, b.run("show", b.in("study"), "--output", "json").wants(t, 0).stdout, &table)
	for _, row := range table.Rows {
		for i, v := range row.Values[0].Trials {
			done := v.Trial == trials[0] || v.Trial == trials[1]
			if v.Repetition != i+1 || (v.Value != nil) != done || (v.Missing == "notDone") == done {
				t.Errorf("trial %s: %+v; the first two of %v are done", v.Trial, v, trials)
			}
		}
	}

	r := b.run(args...).wants(t, 0)
	if diff := cmp.Diff(trials, b.order(b.in("study"))); diff != "" {
		t.Errorf("the order has changed: %s", diff)
	}
	if strings.Contains(r.stderr, "trial 1 of 4") || strings.Contains(r.stderr, "trial 2 of 4") {
		t.Errorf("a trial that was done was repeated\n%v", r)
	}
	if !strings.Contains(r.stderr, "trial "+trials[2]+" is repeated") || !strings.Contains(r.stderr, "trial 4 of 4") {
		t.Errorf("the trial that was killed was not repeated\n%v", r)
	}
	first := b.run("show", b.in("study", trials[0]), "--output", "json").wants(t, 0)
	var s summaryJSON
	if err := json.Unmarshal([]byte(first.stdout), &s); err != nil || s.State != "complete" {
		t.Errorf("the first trial: %v, %s", err, s.State)
	}

	// A trial without an end is repeated, and its incomplete bundle is kept.
	if err := os.Remove(b.in("study", trials[2], "manifest.json")); err != nil {
		t.Fatal(err)
	}
	r = b.run(append(args, "--output", "json")...).wants(t, 0)
	if strings.Count(r.stderr, "repetition") != 1 || !strings.Contains(r.stderr, "trial 3 of 4") {
		t.Errorf("not only the third trial was repeated\n%v", r)
	}
	kept, err := filepath.Glob(b.in("study", "incomplete", "3_*"))
	if err != nil || len(kept) != 2 { // one was killed, one has no end
		t.Errorf("kept %v: %v", kept, err)
	}
	table = studyJSON{}
	decode(t, r.stdout, &table)
	if len(table.Rows) != 2 || len(table.Responses) != 2 {
		t.Fatalf("%+v", table)
	}
	for _, row := range table.Rows {
		if row.Done != 2 || row.Of != 2 || row.Values[0].N != 2 || len(row.Values[0].Trials) != 2 ||
			row.Values[0].Median == nil || *row.Values[0].Median <= 0 {
			t.Errorf("%+v", row)
		}
	}
	said := b.run("show", b.in("study")).wants(t, 0)
	for _, want := range []string{table.Note, table.SweepNote, "order of trials: random within each block, seed"} {
		if want == "" || !strings.Contains(said.stdout, want) {
			t.Errorf("does not say %q\n%v", want, said)
		}
	}
	if !strings.Contains(table.SweepNote, "No test was made") || len(table.Sweeps) != 1 {
		t.Errorf("%d sweeps, with the note %q", len(table.Sweeps), table.SweepNote)
	}
	b.run(append(args, "--repetitions", "3")...).wants(t, 1) // the study has changed
	b.clean()
}

// TestStudyOrder checks that trials run in the order that a dry run lists, which is shuffled within
// each repetition. Each value belongs to a trial and is null where the trial has none.
func TestStudyOrder(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("study.yaml", `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: order}
spec:
  seed: 3
  repetitions: 2
  factors: {spec.actions.vol.createObjSpec.count: [1, 2, 3]}
  responses: [p50(vol), p50(never)]
  benchmark:
    runtime: 100ms
    actions:
      - {name: vol, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
      - {name: never, startAfter: 1h, createObjSpec: {volume: {storageClass: "null", size: 64Mi}}}
`)
	args := []string{"study", "run", file, "--out", b.in("study"), "--storage-dir", b.in("storage")}
	dry := b.run(append(args, "--dry-run")...).wants(t, 0)
	r := b.run(append(args, "--output", "json")...).wants(t, 0)
	trials := b.order(b.in("study"))
	var listed, done []string
	for _, line := range strings.Split(dry.stdout, "\n") {
		if name, _, ok := strings.Cut(line, " "); ok && strings.Contains(name, "_count=") {
			listed = append(listed, name)
		}
	}
	for _, line := range strings.Split(r.stderr, "\n") {
		if _, what, ok := strings.Cut(line, " of 6: "); ok {
			done = append(done, fmt.Sprintf("%d_%s", len(done)+1, strings.Replace(what, ", repetition ", "_r", 1)))
		}
	}
	for what, got := range map[string][]string{"a dry run lists": listed, "run were": done} {
		if diff := cmp.Diff(trials, got); diff != "" {
			t.Errorf("%s other trials than recorded: %s", what, diff)
		}
	}
	inTurn := []string{"1_count=1_r1", "2_count=2_r1", "3_count=3_r1", "4_count=1_r2", "5_count=2_r2", "6_count=3_r2"}
	if slices.Equal(trials, inTurn) {
		t.Errorf("the trials are in the order of the cells: %v", trials)
	}
	if !strings.Contains(dry.stdout, "order of trials: random within each block, seed 3\n") {
		t.Errorf("the order is not printed\n%v", dry)
	}
	var table studyJSON
	decode(t, r.stdout, &table)
	for _, row := range table.Rows {
		for i := range 2 {
			v, none := row.Values[0].Trials[i], row.Values[1].Trials[i]
			of := fmt.Sprintf("count=%s_r%d", row.Levels[0].Value, i+1)
			if v.Repetition != i+1 || v.Value == nil || !strings.HasSuffix(v.Trial, of) {
				t.Errorf("a value that is not of its trial: %+v", v)
			}
			if none.Trial != v.Trial || none.Value != nil || none.Missing != "noData" {
				t.Errorf("want no value of trial %s: %+v", v.Trial, none)
			}
		}
	}
	b.clean()
}

// TestStudyOfChangedLibrary checks that a study does not resume if the library entry of its
// workload has changed since its earlier trials.
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
	b.run(args...).wants(t, 0) // all trials are done
	b.write("mine/one/pod.yaml", strings.Replace(pod, "0.1", "0.2", 1))
	r := b.run(args...).wants(t, 1)
	if !strings.Contains(r.stderr, "workload one (mine) has changed since") ||
		!strings.Contains(r.stderr, "another --out") {
		t.Error(r)
	}
	b.clean()
}

// figures lists the figures that each report must have.
var figures = map[string][]string{
	"section-5.2":     {"<svg", "Operations a minute by parallelism", "Operations by state", "pending", "creating"},
	"attach-new":      {"<svg"},
	"attach-existing": {"<svg"},
	"section-5.4":     {"half-pgbench"}, // a table, because it does nothing at a rate
}

// TestSuites checks small versions of the built-in suites and of the study in examples on engine
// local.
func TestSuites(t *testing.T) {
	for name, args := range map[string][]string{
		"section-5.2": {"suite:section-5.2", "--scale", "small", "--factor", "vars.storageClass=null", "--factor",
			"spec.rates.parallel.concurrencySpec.parallelism=1,4", "--set", "spec.runtime=2s"},
		"attach-new": {"suite:attach-new", "--scale", "small", "--factor", "vars.storageClass=null,hostdir"},
		"attach-existing": {"suite:attach-existing", "--scale", "small", "--factor",
			`spec.actions.volumes.createObjSpec.volume.storageClass=hostdir`},
		"section-5.4": {filepath.Join(module, "examples", "paper", "section-5.4.yaml"), "--repetitions", "1",
			"--factor", "vars.storageClass=hostdir",
			"--set", "vars.runtime=1", "--set", "vars.volumeSize=32Mi", "--set", "spec.actions.assembly.createObjSpec.count=2",
			"--set", "spec.actions.fio.createObjSpec.count=2", "--set", "spec.actions.pgbench.createObjSpec.count=2"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			needProgram(t, "fio")
			b := newBox(t)
			r := b.run(append([]string{"study", "run", "--out", b.in("study"), "--storage-dir", b.in("storage"),
				"--output", "json"}, args...)...).wants(t, 0)
			var table studyJSON
			if err := json.Unmarshal([]byte(r.stdout), &table); err != nil {
				t.Fatalf("%v\n%v", err, r)
			}
			for _, row := range table.Rows {
				for i, v := range row.Values {
					if !v.tooFew() && (v.N != 1 || v.Median == nil) {
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

// TestFioSuites runs small versions of the suites of fio tests, and checks that each test has the figures of its
// direction and no others.
func TestFioSuites(t *testing.T) {
	for suite, cells := range map[string]int{"dbench": 9, "fsync": 10} {
		t.Run(suite, func(t *testing.T) {
			t.Parallel()
			needProgram(t, "fio")
			b := newBox(t)
			r := b.run("study", "run", "suite:"+suite, "--scale", "small", "--factor", "vars.storageClass=hostdir", "--out",
				b.in("study"), "--storage-dir", b.in("storage"), "--output", "json").wants(t, 0)
			var table studyJSON
			decode(t, r.stdout, &table)
			if len(table.Rows) != cells {
				t.Errorf("%d cells, want %d", len(table.Rows), cells)
			}
			for _, row := range table.Rows {
				name := row.Levels[0].Value
				reads := strings.Contains(name, "read") || strings.HasPrefix(name, "mixed")
				writes := strings.Contains(name, "write") || strings.HasPrefix(name, "mixed")
				for i, v := range row.Values {
					var want bool
					switch response := table.Responses[i]; {
					case strings.Contains(response, "fio.read"):
						want = reads
					case strings.Contains(response, "fio.write"):
						want = writes
					default:
						want = strings.Contains(name, "-fsync-")
					}
					// A tool that had no I/O in a direction may report 0 IOPS.
					if has := v.tooFew() || v.N == 1 && v.Median != nil && *v.Median > 0; has != want {
						t.Errorf("%s of %s: %+v, want a value: %v", table.Responses[i], name, v, want)
					}
				}
			}
			b.clean()
		})
	}
}
