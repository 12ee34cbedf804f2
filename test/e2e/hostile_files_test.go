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

// soon runs a command that must end quickly.
func (b *box) soon(args ...string) result {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.Context(), quick)
	defer cancel()
	return b.finish(ctx, b.command(ctx, b.cnsbench(), args...))
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
		{"trace", "sample", "--hosts", "1", "--length", "1m"}, {"trace", "profile", trace}} {
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
