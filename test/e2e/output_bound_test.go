package e2e

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// printer returns a Benchmark with count instances of a workload that runs command.
func printer(count int, command string) string {
	return fmt.Sprintf("%sspec: {actions: [{name: w, createObjSpec: {count: %d, workload: mine}}]}\n%s%s",
		head, count, class("hostdir"), workload(fmt.Sprintf("[sh, -c, %q]", command)))
}

// size returns the total size of the files in a directory in bytes.
func (b *box) size(dir string) (bytes int64) {
	b.Helper()
	err := filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			bytes += info.Size()
		}
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		b.Fatal(err)
	}
	return bytes
}

// text returns the content of a file in the box.
func (b *box) text(name string) string {
	b.Helper()
	text, err := os.ReadFile(b.in(name))
	if err != nil {
		b.Fatal(err)
	}
	return string(text)
}

// flagOf returns a validity flag of the bundle. The flag must occur exactly once.
func (b *box) flagOf(name string) (severity, evidence string) {
	b.Helper()
	var run struct {
		Validity []struct{ Name, Severity, Evidence string }
	}
	decode(b, b.text("bundle/run.json"), &run)
	for _, f := range run.Validity {
		if f.Name == name {
			if severity != "" {
				b.Errorf("flag %s twice: %s", name, f.Evidence)
			}
			severity, evidence = f.Severity, f.Evidence
		}
	}
	return severity, evidence
}

// TestOutputWithoutEnd checks that a workload with endless output ends as usual, that its bundle
// stays within the limit on kept output, and that the flag appears in all views.
func TestOutputWithoutEnd(t *testing.T) {
	b := newBox(t)
	const lasts, most = 3 * time.Second, 64<<20 + 8<<20 // a quarter of 256 MiB, plus the rest of the bundle
	began := time.Now()
	r := b.bench(printer(1, "timeout 3 yes; true"), "--strict").wants(t, 4)
	if took := time.Since(began); took > lasts+20*time.Second {
		t.Errorf("it took %v, want little more than %v", took, lasts)
	}
	if got := b.size(b.bundle()); got > most || got < 64<<20 {
		t.Errorf("the bundle has %d MiB, want 64 and a little", got>>20)
	}
	evidence := regexp.MustCompile(`^w-0/main stdout: 64 MiB kept, [0-9.]+ [MG]iB discarded; spec.maxOutput`)
	if severity, text := b.flagOf("outputCut"); severity != "warning" || !evidence.MatchString(text) {
		t.Errorf("flag %s: %s", severity, text)
	}
	for where, text := range map[string]string{"terminal": r.stdout, "report": b.text("bundle/report.html"),
		"show": b.run("show", b.bundle()).wants(t, 0).stdout, "JSON": b.run("show", "--output", "json",
			b.bundle()).wants(t, 0).stdout} {
		if !strings.Contains(text, "outputCut") || !strings.Contains(text, "64 MiB") {
			t.Errorf("%s does not say that output was cut", where)
		}
	}
	if text := b.text("bundle/raw/w-0/main/stdout"); strings.Trim(text, "y\n") != "" ||
		!strings.HasPrefix(text, "y\ny\n") {
		t.Error("what was kept is not the beginning of what was printed")
	}
}

// TestOutputOfARun checks that the total output of all instances is limited and that their files
// fit beside it.
func TestOutputOfARun(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	text := strings.ReplaceAll(printer(3, "yes | head -c 3000000; head -c 200000 /dev/zero > /output/file"),
		"role: workload", "role: workload, outputFile: /output/file")
	b.bench(text, "--set", "spec.maxOutput.perInstance=1Mi", "--set", "spec.maxOutput.perRun=1Mi").wants(t, 0)
	var got int64
	for i := range 3 {
		got += b.size(b.in("bundle", "raw", fmt.Sprintf("w-%d", i)))
	}
	if got != 3*200000+(1<<20)/4 {
		t.Errorf("%d bytes of output, want the files and a quarter of 1 MiB", got)
	}
	if got := b.size(b.bundle()); got > 5<<20 { // 1 MiB of log for each instance
		t.Errorf("the bundle has %d bytes", got)
	}
	severity, evidence := b.flagOf("outputCut")
	if severity != "warning" || strings.Count(evidence, "stdout: ") != 3 || strings.Contains(evidence, "file") {
		t.Errorf("flag %s: %s", severity, evidence)
	}
	if n := strings.Count(b.text("bundle/log.jsonl"), `"line":"y"`); n > 3<<20/64 {
		t.Errorf("%d lines of the workload in the log", n)
	}
}

// TestParsedOutputCut checks that figures that were parsed from a truncated file are invalid.
func TestParsedOutputCut(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	text := strings.ReplaceAll(printing("#!/bin/sh\nwc -l < $1 | sed s/^/lines,/\n"),
		"echo 1 > /output/a.txt; echo 2 > /output/b.txt",
		"seq 10 > /output/b.txt; sleep 1; seq 100000 > /output/a.txt")
	small := []string{"--set", "spec.maxOutput.perInstance=64Ki", "--set", "spec.maxOutput.perRun=64Ki"}
	r := b.bench(text, append(small, "--strict")...).wants(t, 4)
	severity, evidence := b.flagOf("outputCut")
	if want := "p-0/c: its figures are of a part of /output/a.txt: 64 KiB kept, "; severity != "invalid" ||
		!strings.HasPrefix(evidence, want) {
		t.Errorf("flag %s: %s, want %s", severity, evidence, want)
	}
	if !strings.Contains(r.stdout, "p: invalid: p-0") {
		t.Errorf("the summary does not say that the figures are invalid\n%v", r)
	}
}
