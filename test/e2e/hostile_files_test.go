package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// quick is the time within which a command over a hostile bundle must end.
const quick = 10 * time.Second

// hostileFiles are ways to replace a file of a bundle. made replaces the file at a path; canary is a file outside.
var hostileFiles = map[string]struct {
	made func(path, canary string) error
	want string // in the error
}{
	"link":   {func(path, canary string) error { return os.Symlink(canary, path) }, "symbolic link"},
	"zero":   {func(path, _ string) error { return os.Symlink("/dev/zero", path) }, "symbolic link"},
	"pipe":   {func(path, _ string) error { return syscall.Mkfifo(path, 0o644) }, "named pipe"},
	"folder": {func(path, _ string) error { return os.Mkdir(path, 0o755) }, "directory"},
	"hard":   {func(path, canary string) error { return os.Link(canary, path) }, "cp -r"},
	"sparse": {func(path, _ string) error {
		f, err := os.Create(path)
		if err == nil {
			err = f.Truncate(1 << 40)
		}
		return err
	}, "sparse file"},
}

// TestHostileFiles checks that no command over a bundle follows a link, waits for a pipe, or reads or writes a device
// that the author of the bundle has put in the place of a file, whichever file and whatever is there.
func TestHostileFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	const spec = "spec:\n  outputs: [{name: lines, fileSpec: {path: results.jsonl}}]\n" +
		"  actions: [{name: v, createObjSpec: {volume: {storageClass: sut}}, outputs: {outputName: lines}}]\n"
	b.bench(head+spec+class("hostdir")).wants(t, 0)
	canary := b.in("outside", "canary")
	if err := os.Mkdir(filepath.Dir(canary), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("outside/canary", "sing")
	dir := b.in("hostile")
	commands := [][]string{{"show", dir}, {"show", "--events", dir}, {"verify", dir}, {"report", "-o", b.in("r.html"), dir},
		{"export", "--all", dir}, {"export", "--format", "csv", "-o", b.in("r.csv"), dir}, {"cleanup", "--dry-run", dir},
		{"cleanup", dir}, {"list", dir}, {"index", "-o", b.in("r.sqlite"), dir}, {"compare", dir, b.bundle()}}
	// reads names a command that must fail because of the file; a temporary file is replaced.
	files := map[string]string{"run.json": "show", "manifest.json": "verify", "events/ops.parquet": "show",
		"ledger": "verify", "instances.jsonl": "show", "plan.json": "verify", "run.json.tmp": "", "manifest.json.tmp": "",
		"outputs/results.jsonl.tmp": "", "report.html": ""}
	for file, reads := range files {
		for kind, k := range hostileFiles {
			name := kind + " " + file
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(dir, os.DirFS(b.bundle())); err != nil {
				t.Fatal(err)
			}
			missing := os.Remove(filepath.Join(dir, file)) != nil
			if err := k.made(filepath.Join(dir, file), canary); err != nil {
				t.Fatal(err)
			}
			for _, args := range commands {
				r := b.soon(args...)
				// The size of the last two kinds is not that of the manifest.
				if args[0] == reads && len(args) == 2 && !strings.Contains(r.said(), k.want) &&
					(reads == "show" || kind != "hard" && kind != "sparse") {
					t.Errorf("%s: want %q\n%v", name, k.want, r)
				}
				if args[0] == "verify" && reads != "" && r.code == 0 && !(missing && kind == "folder") {
					t.Errorf("%s: verified\n%v", name, r)
				}
				if args[0] == "list" && !strings.Contains(r.stdout, "hostile") {
					t.Errorf("%s: not listed\n%v", name, r)
				}
				if strings.Contains(r.stderr, "goroutine ") {
					t.Errorf("%s: %v", name, r)
				}
			}
			untouched(t, name, canary)
		}
	}
}

// soon runs a command that must end quickly.
func (b *box) soon(args ...string) result {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), quick)
	defer cancel()
	return b.finish(ctx, b.command(ctx, b.cnsbench(), args...))
}

// untouched checks that a file outside of a bundle is as before, and alone in its directory.
func untouched(t *testing.T, name, canary string) {
	t.Helper()
	if text, err := os.ReadFile(canary); err != nil || string(text) != "sing" {
		t.Errorf("%s: the file outside: %.80q, %v", name, text, err)
	}
	if list, err := os.ReadDir(filepath.Dir(canary)); err != nil || len(list) != 1 {
		t.Errorf("%s: beside the file outside: %v, %v", name, list, err)
	}
}

// TestHostileFolders is TestHostileFiles for the files of studies and imported folders.
func TestHostileFolders(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	canary := b.in("outside", "canary")
	if err := os.Mkdir(filepath.Dir(canary), 0o755); err != nil {
		t.Fatal(err)
	}
	b.write("outside/canary", "sing")
	dir := b.in("folder")
	commands := [][]string{{"study", "show", dir}, {"study", "status", dir}, {"study", "report", dir}, {"verify", dir},
		{"list", dir}, {"compare", dir}, {"compare", "--history", b.dir}, {"index", "-o", b.in("r.sqlite"), dir},
		{"study", "add-occasion", dir}}
	for _, file := range []string{"study.json", "imported.json", "observations.csv", ".lock", "report.html.tmp"} {
		for kind, k := range hostileFiles {
			name := kind + " " + file
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			if file != "study.json" {
				b.write("folder/study.json", `{"format": 1, "name": "s", "cells": [], "trials": []}`)
			}
			if file == "observations.csv" {
				b.write("folder/imported.json", `{"format": 1}`)
			}
			if err := k.made(filepath.Join(dir, file), canary); err != nil {
				t.Fatal(err)
			}
			for _, args := range commands {
				r := b.soon(args...)
				if args[1] == "show" && (file == "study.json" || file == "imported.json") && kind != "sparse" &&
					!strings.Contains(r.said(), k.want) {
					t.Errorf("%s: want %q\n%v", name, k.want, r)
				}
				if strings.Contains(r.stderr, "goroutine ") {
					t.Errorf("%s: %v", name, r)
				}
			}
			untouched(t, name, canary)
		}
	}
}

// TestHostileInterrupt checks that SIGTERM ends a command that waits for the reader of a pipe.
func TestHostileInterrupt(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.bench(head+"spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: sut}}}]}\n"+class("hostdir")).wants(t, 0)
	pipe := b.in("pipe")
	if err := syscall.Mkfifo(pipe, 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"export", "--format", "csv", "-o", pipe, b.bundle()}, {"report", "-o", pipe, b.bundle()}} {
		l := b.start(b.cnsbench(), args...)
		time.Sleep(time.Second)
		l.signal(syscall.SIGTERM)
		select {
		case <-l.exited:
		case <-time.After(quick):
			t.Errorf("%v did not end", args)
		}
	}
}

// TestOutputsThatAreNoFiles checks that what the user names for output is written as other tools do: devices and pipes
// are opened, links are followed, and neither is replaced by a file. An error names it, with status 1.
func TestOutputsThatAreNoFiles(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	b.bench(head+"spec: {actions: [{name: v, createObjSpec: {volume: {storageClass: sut}}}]}\n"+class("hostdir")).wants(t, 0)
	full := b.in("full") // another node of /dev/full, so that the test cannot harm that
	if err := syscall.Mknod(full, syscall.S_IFCHR|0o666, 1<<8|7); err != nil {
		full = "/dev/full"
		if os.Geteuid() == 0 {
			t.Skip("cannot make a device: ", err)
		}
	}
	if f, err := os.OpenFile(full, os.O_WRONLY, 0); err != nil {
		t.Skip("cannot open a device here: ", err)
	} else {
		_ = f.Close()
	}
	pipe, link, dangling := b.in("pipe"), b.in("link"), b.in("dangling")
	b.write("target", "old")
	for _, err := range []error{syscall.Mkfifo(pipe, 0o644), os.Symlink("target", link), os.Symlink("made", dangling)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	trace := b.write("trace.csv", b.run("trace", "sample", "--hosts", "1", "--length", "1m").wants(t, 0).stdout)
	for _, args := range [][]string{{"report", b.bundle()}, {"report", "--output", "markdown", b.bundle()},
		{"export", "--format", "csv", b.bundle()}, {"export", "--format", "perfetto", b.bundle()},
		{"index", b.bundle()}, {"trace", "sample", "--hosts", "1", "--length", "1m"}, {"trace", "profile", trace}} {
		to := func(out string) []string { return append(append([]string{}, args...), "-o", out) }
		r := b.soon(to(full)...)
		if info, err := os.Lstat(full); err != nil || info.Mode()&os.ModeCharDevice == 0 {
			t.Fatalf("%v: the device is gone: %v, %v", args, info, err)
		}
		if r.wants(t, 1); !strings.Contains(r.stderr, "write "+full+": no space left on device") {
			t.Errorf("the full device is not named\n%v", r)
		}
		// A pipe is read to its end.
		cat := exec.Command("cat", pipe)
		read := make(chan string)
		go func() { text, err := cat.Output(); read <- fmt.Sprint(len(text) > 0, err) }()
		b.soon(to(pipe)...).wants(t, 0)
		if got := <-read; got != "true <nil>" {
			t.Errorf("%v: from the pipe: %s", args, got)
		}
		// Links are followed, also to a file that is not there.
		b.write("target", "old")
		_ = os.Remove(b.in("made"))
		for path, target := range map[string]string{link: b.in("target"), dangling: b.in("made")} {
			b.soon(to(path)...).wants(t, 0)
			if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("%v: the link %s is gone: %v", args, path, err)
			}
			if text, err := os.ReadFile(target); err != nil || len(text) < 10 {
				t.Errorf("%v: the end of %s has %q, %v", args, path, text, err)
			}
		}
		if left, _ := filepath.Glob(b.in(".cnsbench-*")); len(left) > 0 {
			t.Errorf("%v: left %v", args, left)
		}
		if out := b.soon(to("/dev/stdout")...).wants(t, 0).stdout; len(out) < 10 {
			t.Errorf("%v: to standard output: %q", args, out)
		}
	}
}
