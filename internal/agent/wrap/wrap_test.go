package wrap

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

func TestParseStat(t *testing.T) {
	line := "42 (a ) (b) S 7 42 42 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0 12345 1000000 250 18446744073709551615 0 0"
	got, err := parseStat([]byte(line))
	if err != nil {
		t.Fatal(err)
	}
	if want := (stat{state: 'S', ppid: 7, ticks: 50, rss: 250}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, bad := range []string{"", "42 no name", "42 (x) S 1 2"} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a ) (b) S 7 42 42 0 -1 4194304 100 200 0 0 11 12 13 14 20 0 1 0 12345 1000000 250 1 0 0"))
	f.Add([]byte("1 (x)"))
	f.Fuzz(func(_ *testing.T, b []byte) { _, _ = parseStat(b) })
}

func TestParseIOStat(t *testing.T) {
	got := parseIOStat("8:0 rbytes=100 wbytes=200 rios=3 wios=4 dbytes=0 dios=0\n259:0 rbytes=1 wbytes=2 rios=5 wios=6 dbytes=9 dios=9\n")
	want := protocol.Sample{ReadBytes: 101, WriteBytes: 202, ReadOps: 8, WriteOps: 10}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestLookPath(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"run": 0o755, "data": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), nil, mode); err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name string
		cmd  Command
		want string
		err  string
	}{
		{"in PATH", Command{Args: []string{"run"}, Env: []string{"PATH=/nowhere:" + dir}}, dir + "/run", ""},
		{"default PATH", Command{Args: []string{"sh"}}, "/usr/bin/sh", ""},
		{"absolute", Command{Args: []string{dir + "/run"}}, dir + "/run", ""},
		{"relative", Command{Args: []string{"./run"}, Dir: dir}, dir + "/run", ""},
		{"absent", Command{Args: []string{"run"}, Env: []string{"PATH=/nowhere"}}, "", `no program "run" in /nowhere`},
		{"absent file", Command{Args: []string{"/nowhere/run"}}, "", "no program /nowhere/run"},
		{"not executable", Command{Args: []string{dir + "/data"}}, "", "not executable"},
		{"directory", Command{Args: []string{dir}}, "", "no program"},
		{"nothing", Command{}, "", "no command"},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			got, err := LookPath(tc.cmd)
			if err == nil && got != tc.want || (err == nil) != (tc.err == "") || err != nil &&
				!strings.Contains(err.Error(), tc.err) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
}

// TestTreeNeverDecreases checks that the totals never decrease while processes of a fake procfs start and end.
func TestTreeNeverDecreases(t *testing.T) {
	proc := t.TempDir()
	self := os.Getpid()
	put := func(pid, ppid int, written int64) {
		dir := fmt.Sprintf("%s/%d", proc, pid)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		stat := fmt.Sprintf("%d (x) S %d 0 0 0 0 0 0 0 0 0 %d 0 0 0 20 0 1 0 1 1 1 1", pid, ppid, written/100)
		io := fmt.Sprintf("rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 2\nread_bytes: 0\nwrite_bytes: %d\n", written)
		for name, text := range map[string]string{"stat": stat, "io": io} {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	drop := func(pid int) {
		if err := os.RemoveAll(fmt.Sprintf("%s/%d", proc, pid)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(fmt.Sprint(self), proc+"/self"); err != nil {
		t.Fatal(err)
	}
	tree, err := newTree(proc, func(line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	want := func(what string, written int64) {
		t.Helper()
		if got := tree.Sample().WriteBytes; got != written {
			t.Errorf("%s: %d bytes, want %d", what, got, written)
		}
	}
	put(self, 1, 999999) // the agent's own I/O is excluded
	put(900001, self, 100)
	put(900002, 900001, 1000)
	put(900003, 1, 5000) // not a descendant of the agent
	want("two alive", 1100)
	drop(900002)
	want("a child is gone and its parent has not got its counters yet", 1100)
	put(900001, self, 1150)
	want("its parent has them", 1150)
	put(900004, self, 300) // an orphan, adopted by the agent
	want("an orphan", 1450)
	tree.Reaping(900004, func() unix.Rusage { drop(900004); return unix.Rusage{} })
	want("reaped by us", 1450)
	tree.Watch(900001)
	put(900001, self, 2150)
	if err := os.Chmod(proc+"/900001/io", 0); err != nil {
		t.Fatal(err)
	}
	tree.Reaping(900001, func() unix.Rusage { drop(900001); return unix.Rusage{} })
	want("the command, which is held", 2450)
	put(900005, self, 0)
	if err := os.Remove(proc + "/900005/io"); err != nil { // unreadable from now on
		t.Fatal(err)
	}
	tree.Reaping(900005, func() unix.Rusage { drop(900005); return unix.Rusage{Oublock: 2} })
	want("known by the kernel's summary only", 2450+1024)
}

// collect stores the data that a streamer sends.
type collect map[string]string

func (c collect) send(name string, offset int64, data []byte) error {
	if int64(len(c[name])) != offset {
		return fmt.Errorf("%s: offset %d after %d bytes", name, offset, len(c[name]))
	}
	c[name] += string(data)
	return nil
}

func TestStreamer(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		t.Helper()
		f, err := os.OpenFile(at(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	write("old.log", "unchanged")
	write("grown.log", "before,")
	got := collect{}
	s := newStreamer([]string{at("*.log")}, got.send, func(line string) { t.Log(line) }, newOutput(0, nil))
	defer s.Close()
	write("grown.log", "after")
	write("a.log", "one,")
	must(s.Drain())
	write("a.log", "two,")
	must(os.Rename(at("a.log"), at("z.log"))) // matches too, but is the same file
	write("a.log", "second")
	must(s.Drain())
	write("z.log", "three")
	must(os.Rename(at("z.log"), at("away"))) // no longer matches, but is still streamed
	must(s.Drain())
	write("away", "!")
	must(os.Truncate(at("a.log"), 2))
	must(s.Drain())
	write("empty.log", "")
	write("gone.log", "last words")
	must(s.Drain())
	must(os.Remove(at("gone.log")))
	must(os.Mkdir(at("dir.log"), 0o755))
	must(s.Drain())
	want := collect{
		at("grown.log"): "before,after", at("a.log"): "one,two,three!",
		at("a.log~1"): "second", at("a.log~2"): "se", at("gone.log"): "last words",
		at("empty.log"): "",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	lost := errors.New("lost")
	s.send = func(string, int64, []byte) error { return lost }
	write("a.log", "x")
	if err := s.Drain(); !errors.Is(err, lost) {
		t.Errorf("error %v", err)
	}
}
