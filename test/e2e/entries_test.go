package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cnsbench/cnsbench/internal/entrycheck"
)

// entryResult is what `workloads test --output json` prints.
type entryResult struct {
	entrycheck.Report
	code int
}

// failed lists the checks that failed.
func (r *entryResult) failed() (names []string) {
	for _, c := range r.Checks {
		if c.Status == entrycheck.Fail {
			names = append(names, c.Name)
		}
	}
	return names
}

// says returns the message of a check, and what to do.
func (r *entryResult) says(name string) string {
	for _, c := range r.Checks {
		if c.Name == name {
			return string(c.Status) + ": " + c.Message + "; " + c.Do
		}
	}
	return ""
}

// testEntry runs `workloads test` on an entry in the box.
func (b *box) testEntry(name string, more ...string) *entryResult {
	b.Helper()
	r := b.run(append([]string{"workloads", "test", name, "--storage-dir", b.in("storage"), "--output", "json"},
		more...)...)
	got := &entryResult{code: r.code}
	if r.code != 0 && r.code != 2 {
		b.Fatal(r)
	}
	decode(b, r.stdout, &got.Report)
	return got
}

// replace replaces a text that a file of the box has.
func (b *box) replace(file, old, new string) {
	b.Helper()
	text, err := os.ReadFile(b.in(file))
	if err == nil && !strings.Contains(string(text), old) {
		b.Fatalf("%s has no %q", file, old)
	}
	if err == nil {
		err = os.WriteFile(b.in(file), []byte(strings.ReplaceAll(string(text), old, new)), 0o644)
	}
	if err != nil {
		b.Fatal(err)
	}
}

// TestNewEntries checks that what each template makes is valid, and passes its test without a change.
func TestNewEntries(t *testing.T) {
	t.Parallel()
	for template, programs := range map[string][]string{"script": nil, "fio": {"fio"},
		"server": {"redis-server", "redis-cli", "redis-benchmark"}} {
		t.Run(template, func(t *testing.T) {
			t.Parallel()
			needProgram(t, programs...)
			b := newBox(t)
			b.run("workloads", "new", "mine", "--template", template).wants(t, 0)
			b.run("validate", "mine.yaml").wants(t, 0)
			before := b.tree("workloads")
			again := b.run("workloads", "new", "mine", "--template", "script").wants(t, 1)
			if !strings.Contains(again.stderr, "workloads/mine exists and is not overwritten") || b.tree("workloads") != before {
				t.Errorf("a second time: %v", again)
			}
			r := b.testEntry("mine", "--timeout", "40s")
			if r.code != 0 || r.Failed > 0 || r.Passed < 16 {
				t.Errorf("exit %d: %+v", r.code, r.Report)
			}
			for _, m := range r.Metrics {
				if m.Unit == "" || m.Kind == "" || template != "fio" && m.Better == "" {
					t.Errorf("metric %+v", m)
				}
			}
			b.clean()
		})
	}
}

// tree returns the names and the contents of the files of a folder.
func (b *box) tree(dir string) string {
	b.Helper()
	var all strings.Builder
	files, err := filepath.Glob(b.in(dir, "*", "*"))
	if err != nil {
		b.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			b.Fatal(err)
		}
		all.WriteString(f + "\n" + string(text))
	}
	return all.String()
}

// Files of an entry that the template script made.
const (
	entryRun   = "workloads/mine/run.sh"
	entryPod   = "workloads/mine/pod.yaml"
	entryParse = "workloads/mine/parse.sh"
	entryHead  = "workloads/mine/workload.yaml"
)

// Parts of run.sh.
const (
	oneWrite = "dd if=/scratch/random of=/data/file conv=fsync status=none\n"
	oneRound = "n=$(date +%s.%N)\nsleep 0.01\necho $n $(date +%s.%N) 1 >>/output/rounds.txt\n"
)

func writeFault(file, text string) func(*box)    { return func(b *box) { b.write(file, text) } }
func editFault(file, old, new string) func(*box) { return func(b *box) { b.replace(file, old, new) } }

// brokenEntry is an entry of the template script with a fault.
type brokenEntry struct {
	name  string
	harm  func(*box)
	flags []string
	fails string // checks
	says  string // by the first of them
}

// test checks that the fault is found by its check, and by no other.
func (e *brokenEntry) test(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.run("workloads", "new", "mine").wants(t, 0)
	e.harm(b)
	r := b.testEntry("mine", append([]string{"--vars", "duration=1"}, e.flags...)...)
	if got := strings.Join(r.failed(), ", "); r.code != 2 || got != e.fails {
		t.Fatalf("exit %d, failed: %s; want %s\n%+v", r.code, got, e.fails, r.Checks)
	}
	first, _, _ := strings.Cut(e.fails, ", ")
	if !strings.Contains(r.says(first), e.says) {
		t.Errorf("%s: %s; want %q", first, r.says(first), e.says)
	}
	b.clean()
}

// TestBrokenEntries checks that each fault of an entry is found by its check, and by no other.
func TestBrokenEntries(t *testing.T) {
	t.Parallel()
	for _, e := range []brokenEntry{
		{name: "exits 1", harm: writeFault(entryRun, "echo no such table >&2\nexit 1\n"), fails: "exit",
			says: "exited with 1: no such table"},
		{name: "a program of the script is missing", harm: writeFault(entryRun, "no-such-tool\n"), fails: "exit",
			says: "no-such-tool: not found"},
		{name: "writes nothing", harm: writeFault(entryRun, "sleep 0.1\n"), fails: "volume, output", says: "/data"},
		{name: "writes outside of the volume", harm: editFault(entryRun, "of=/data/file", "of=/scratch/file"),
			fails: "volume",
			says:  "nothing was written to its volume"},
		{name: "writes noise", harm: writeFault(entryRun, oneWrite+"head -c 5000 /dev/urandom >/output/rounds.txt\n"),
			fails: "parser",
			says:  "outputUnread"},
		{name: "half a JSON", harm: writeFault(entryParse, "#!/bin/sh\necho '{\"metric\": \"a\", \"val'\n"), fails: "parser",
			says: "unexpected EOF"},
		{name: "never ready", harm: editFault(entryPod, "command: [dd, if=/dev/urandom", "command: [sleep, '1000'] # [dd"),
			flags: []string{"--timeout", "5s"}, fails: "ready", says: "random"},
		{name: "ignores SIGTERM", harm: writeFault(entryRun, "trap '' TERM\n"+oneWrite+oneRound+"sleep 2\n"+oneRound+
			"echo end >>/output/rounds.txt\n"), fails: "stops", says: "after SIGTERM"},
		{name: "a kind of object that is not supported", harm: editFault(entryPod, "kind: Pod\n", "kind: DaemonSet\n"),
			fails: "parses", says: "DaemonSet"},
		{name: "a variable without a value", harm: editFault(entryHead, "    cnsbench.default.volumeSize: 1Gi\n", ""),
			fails: "parses", says: "--vars volumeSize=VALUE"},
		{name: "a program is missing", harm: editFault(entryPod, "[/bin/sh, /config/run.sh]", "[no-such-tool]"),
			fails: "programs",
			says:  "no-such-tool"},
		{name: "no interpreter of the parser", harm: editFault(entryParse, "#!/bin/sh", "#!/usr/bin/no-such-tool"),
			fails: "programs", says: "parser parse.sh"},
	} {
		t.Run(e.name, e.test)
	}
}

// TestEntryOfAFile checks an entry in a file with its Benchmark, by a user without root, whose bundles are kept.
func TestEntryOfAFile(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	if os.Getuid() == 0 {
		b.asNobody()
	}
	entry := strings.NewReplacer("storageClassName: sut", `storageClassName: "{{storageClass}}"`,
		"role: workload", `role: workload, sync: "true"`,
		"labels: {type: workload}", `labels: {type: workload}, annotations: `+
			`{cnsbench.type.storageClass: storageClass, cnsbench.description.storageClass: class of the volume}`).
		Replace(workload(`[sh, -c, "echo text >/data/file; echo done"]`))
	file := b.write("writes.yaml", head+"spec: {actions: [{name: w, createObjSpec: {workload: mine}}]}\n"+entry)
	r := b.testEntry(file, "--out", b.in("kept"))
	if r.code != 0 || r.Entry != "mine" || !strings.HasPrefix(r.says(entrycheck.Output), "skip") {
		t.Errorf("exit %d: %+v", r.code, r.Report)
	}
	b.run("show", b.in("kept", "full")).wants(t, 0)
	b.clean()
}

// TestEntryInterrupted checks that an interrupt leaves nothing.
func TestEntryInterrupted(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.run("workloads", "new", "mine").wants(t, 0)
	l := b.start(b.cnsbench(), "workloads", "test", "mine", "--storage-dir", b.in("storage"), "--vars", "duration=60",
		"--verbose")
	l.reaches("running")
	l.until("the workload writes", func() bool {
		files, _ := filepath.Glob(b.in("storage", "*", "hostdir", "volumes", "*", "file"))
		return len(files) > 0
	})
	l.signal(syscall.SIGINT)
	if r := l.wait(); r.code != 130 || !strings.Contains(r.stderr, "interrupted") {
		t.Error(r)
	}
	b.clean()
}

// TestEntryArguments checks what is said about wrong arguments.
func TestEntryArguments(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.run("workloads", "new", "mine").wants(t, 0)
	b.write("two.yaml", workload(`[sh]`)+strings.ReplaceAll(workload(`[sh]`), "mine", "other"))
	for _, tt := range []struct {
		args []string
		says string
	}{
		{[]string{"test", "min"}, `did you mean "mine"?`},
		{[]string{"test", "./no.yaml"}, "not found"},
		{[]string{"test", "workloads"}, "want one of mine"},
		{[]string{"test", "mine.yaml"}, "has no workload"},
		{[]string{"test", "two.yaml"}, "several workloads (mine, other)"},
		{[]string{"test", "object"}, "cnsbench object run"},
		{[]string{"test", "mine", "--vars", "duraton=1"}, `did you mean "duration"?`},
		{[]string{"test", "mine", "--vars", "duration=1h"}, "write 3600"},
		{[]string{"test", "mine", "--vars", "duration"}, "want VAR=VALUE"},
		{[]string{"test", "mine", "--vars", "storageClass=null"}, "of driver hostdir"},
		{[]string{"test", "mine", "--timeout", "0s"}, "at least 1s"},
		{[]string{"test", "mine", "--out", "workloads"}, "not empty"},
		{[]string{"test"}, "usage"},
		{[]string{"new", "My_DB"}, "invalid name"},
		{[]string{"new", "../x"}, "invalid name"},
		{[]string{"new", "fio"}, "built-in"},
		{[]string{"new", "x", "--template", "scipt"}, "want one of script, fio, server"},
		{[]string{"new", "x", "--library", "."}, "want a folder below"},
		{[]string{"new", "x", "--library", "mine.yaml"}, "not a directory"},
	} {
		if r := b.run(append([]string{"workloads"}, tt.args...)...); r.code != 1 || !strings.Contains(r.stderr, tt.says) {
			t.Errorf("want exit 1 and %q: %v", tt.says, r)
		}
	}
	files, _ := filepath.Glob(b.in("*"))
	if slices.Contains(files, b.in("x.yaml")) {
		t.Error("a refused name has a file")
	}
	b.clean()
}
