package e2e

import (
	"bytes"
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// difference is a recorded fact that is another now.
type difference struct{ Fact, Group, Then, Now string }

// reproduced has the fields of a reproduction's result that scripts rely on.
type reproduced struct {
	Format int
	Then   []struct{ Bundle, RunID, Version string }
	Now    []struct{ Bundle, RunID, Version string }
	Facts  struct {
		Compared, Volatile   int
		Differences          []difference
		RecordedByOneVersion []string
	}
	Comparison struct {
		Cells []struct {
			Metric, Level string
			N             int
			Median        *float64
		}
	}
	Sentences []string
}

const churning = `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: churning}
spec:
  runtime: 2s
  actions:
    - name: create
      rateName: users
      createObjSpec: {volume: {storageClass: "null", size: 1Gi}}
  rates: [{name: users, poissonRateSpec: {perSecond: 50}}]
`

// TestReproduce runs a bundle again: with a drawn seed the plan is the same, and no fact differs on the same machine.
// Then one thing at a time is different, and exactly that is named.
func TestReproduce(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	file := b.write("b.yaml", churning)
	inject := b.write("inject.yaml", "rpcs: {CreateVolume: {delay: 10ms}}\n")
	first := b.in("first")
	settings := sysctls(t)
	b.run("run", file, "--out", first, "--storage-dir", b.in("storage"), "--inject", inject).wants(t, 0)
	for _, name := range []string{file, inject} { // the bundle has both
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	var r reproduced
	decode(t, b.run("reproduce", first, "--runs", "2", "--out", b.in("again"), "--output", "json").wants(t, 0).stdout, &r)
	if len(unexplained(r.Facts.Differences, settings)) > 0 || r.Facts.Compared < 50 ||
		len(r.Facts.RecordedByOneVersion) > 0 {
		t.Errorf("facts %+v", r.Facts)
	}
	if was, is := b.text("first/plan.json"), b.text("again/run-1/plan.json"); was != is {
		t.Errorf("the plan\n%s\nis now\n%s", was, is)
	}
	seen := false
	for _, c := range r.Comparison.Cells {
		if c.Level != "now" || !strings.HasPrefix(c.Metric, "p50(") {
			continue
		}
		if seen = true; c.N != 2 || *c.Median < 10e6 {
			t.Errorf("%s of %d runs is %g ns: the recorded delay of 10 ms was not injected", c.Metric, c.N, *c.Median)
		}
	}
	if len(r.Now) != 2 || !seen {
		t.Errorf("%d runs, cells %+v", len(r.Now), r.Comparison.Cells)
	}
	b.run("verify", first, b.in("again", "run-1"), b.in("again", "run-2")).wants(t, 0)

	before, err := os.ReadDir(b.dir)
	if err != nil {
		t.Fatal(err)
	}
	dry := b.run("reproduce", first, "--dry-run").wants(t, 0)
	if !maps.Equal(settings, sysctls(t)) {
		t.Log("another program changed the kernel's settings during the test")
	} else if !strings.Contains(dry.stdout, "No recorded fact differs") {
		t.Errorf("%v", dry)
	}
	if !strings.Contains(dry.stdout, "nothing was created") {
		t.Errorf("%v", dry)
	}
	if after, err := os.ReadDir(b.dir); err != nil || len(after) != len(before) {
		t.Errorf("--dry-run made files: %v, %v", after, err)
	}
	b.oneDifference(first, settings)
	b.clean()
}

// oneDifference runs the Benchmark of a bundle once more with one thing changed.
func (b *box) oneDifference(first string, settings map[string]string) {
	b.Helper()
	file := b.write("b.yaml", churning)
	inject := b.write("inject.yaml", "rpcs: {CreateVolume: {delay: 10ms}}\n")
	seed := "spec.seed=" + b.seed(first)
	for name, tt := range map[string]struct {
		args []string
		fact string
	}{
		"variable": {[]string{"--inject", inject, "--set", "spec.runtime=1s"}, "benchmark.runtime"},
		"faults":   {nil, "inject"},
	} {
		out := b.in(name)
		args := append([]string{"run", file, "--out", out, "--storage-dir", b.in("storage"), "--set", seed}, tt.args...)
		b.run(args...).wants(b, 0)
		var r reproduced
		decode(b, b.run("reproduce", first, "--with", out, "--output", "json").wants(b, 0).stdout, &r)
		differences := unexplained(r.Facts.Differences, settings)
		for _, d := range differences {
			if d.Fact != tt.fact && !strings.HasPrefix(d.Fact, "limits.") {
				b.Errorf("%s: %s is named: %q, %q", name, d.Fact, d.Then, d.Now)
			}
		}
		if len(differences) == 0 || differences[0].Fact != tt.fact {
			b.Errorf("%s: %s is not named first: %+v", name, tt.fact, differences)
		}
	}
}

// sysctls are the kernel's settings of memory, which are among the recorded facts, by their names.
func sysctls(t *testing.T) map[string]string {
	t.Helper()
	files, err := os.ReadDir("/proc/sys/vm")
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]string{}
	for _, file := range files {
		if text, err := os.ReadFile(filepath.Join("/proc/sys/vm", file.Name())); err == nil { // some can only be written
			values["vm."+file.Name()] = strings.Join(strings.Fields(string(text)), " ")
		}
	}
	return values
}

// unexplained is differences without the settings of the kernel that another program has changed since the test began:
// a kubelet that starts on the machine changes some.
func unexplained(differences []difference, before map[string]string) []difference {
	return slices.DeleteFunc(slices.Clone(differences), func(d difference) bool {
		value, ok := before[strings.TrimPrefix(d.Fact, "sysctls.")]
		return ok && value != d.Now
	})
}

// seed is the seed of a bundle.
func (b *box) seed(dir string) string {
	b.Helper()
	var run struct{ Seed float64 }
	text, err := os.ReadFile(filepath.Join(dir, "run.json"))
	if err != nil {
		b.Fatal(err)
	}
	decode(b, string(text), &run)
	return strconv.FormatFloat(run.Seed, 'f', 0, 64)
}

// TestReproduceInputs checks that an input that is missing or has changed is an error before anything is created.
func TestReproduceInputs(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.checkout()
	folder := b.in("examples", "traces")
	first, out := b.in("first"), b.in("again")
	b.run("run", filepath.Join(folder, "replay.yaml"), "--out", first, "--storage-dir", b.in("storage"), "--set",
		"spec.runtime=2s", "--output", "json")
	b.run("verify", first).wants(t, 0)
	trace := filepath.Join(folder, "churn.csv.gz")
	moved := b.in("moved")
	if err := os.MkdirAll(moved, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(trace, filepath.Join(moved, "churn.csv.gz")); err != nil {
		t.Fatal(err)
	}
	if r := b.run("reproduce", first, "--out", out).wants(t, 1); !strings.Contains(r.stderr, "churn.csv.gz") {
		t.Errorf("%v", r)
	}
	other, err := os.ReadFile(b.write("other.csv", "cnsbench-trace,1\n"))
	if err == nil {
		err = os.WriteFile(trace, other, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	b.run("reproduce", first, "--out", out).wants(t, 1)
	if _, err := os.Stat(out); err == nil {
		t.Errorf("%s was created", out)
	}
	dry := b.run("reproduce", first, "--inputs", moved, "--dry-run").wants(t, 0)
	if !strings.Contains(dry.stdout, "No recorded fact differs") {
		t.Errorf("%v", dry)
	}
}

// TestReportSameBytes checks that the report that a run writes comes out of its bundle byte for byte: again, from a
// copy, and in another time zone.
func TestReportSameBytes(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	first, copied := b.in("first"), b.in("copied")
	b.run("run", b.write("b.yaml", churning), "--out", first, "--storage-dir", b.in("storage")).wants(t, 0)
	if err := os.CopyFS(copied, os.DirFS(first)); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(filepath.Join(first, "report.html"))
	if err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"UTC": first, "Asia/Tokyo": copied, "America/New_York": first} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		page := b.in("page.html")
		cmd := b.command(ctx, b.cnsbench(), "report", dir, "-o", page)
		cmd.Env = append(cmd.Env, "TZ="+name)
		b.finish(ctx, cmd).wants(t, 0)
		if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: the page differs from that of the run (%v)", name, err)
		}
		show := b.command(ctx, b.cnsbench(), "show", dir, "--output", "json")
		show.Env = append(show.Env, "TZ="+name)
		if a, b := b.finish(ctx, show).wants(t, 0).stdout, b.run("show", first, "--output", "json").stdout; a != b {
			t.Errorf("%s: the summary differs", name)
		}
	}
}

// TestVerifyStudy checks that each trial of a study is checked, and that a missing one is named.
func TestVerifyStudy(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	kept := b.in("kept")
	if err := os.CopyFS(kept, os.DirFS(filepath.Join("testdata", "kept-2026-11"))); err != nil {
		t.Fatal(err)
	}
	study := filepath.Join(kept, "study")
	ok := b.run("verify", filepath.Join(kept, "bundle"), study).wants(t, 0)
	trials, err := filepath.Glob(filepath.Join(study, "*_r*"))
	if err != nil || strings.Count(ok.stdout, "every file matches") != len(trials)+1 {
		t.Fatalf("%d trials, %v\n%v", len(trials), err, ok)
	}
	if err := os.RemoveAll(trials[0]); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(trials[1], "environment.json"), []byte("{}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := b.run("verify", study).wants(t, 2)
	for _, want := range []string{trials[0] + ": not verified", "changed: environment.json", "2 bundles of"} {
		if !strings.Contains(bad.stdout+bad.stderr, want) {
			t.Errorf("no %q in %v", want, bad)
		}
	}
}
