package wrap

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// syncHelper is the environment variable that makes this test's program the command whose calls are counted: the file
// that it syncs.
const syncHelper = "CNSBENCH_TEST_SYNCS"

// wantSyncs are the calls of the command and of its child.
var wantSyncs = op.Syncs{Fsync: 2 * 40, Fdatasync: 2 * 30, SyncFileRange: 2 * 20, Msync: 2 * 10}

// TestSyncCommand is the command of TestSyncs; alone it does nothing.
func TestSyncCommand(t *testing.T) {
	name := os.Getenv(syncHelper)
	if name == "" {
		t.Skip("the command of TestSyncs")
	}
	syncFile(t, name)
	if strings.HasSuffix(name, "child") {
		return
	}
	c := exec.Command("/proc/self/exe", "-test.run", "^TestSyncCommand$")
	c.Env = append(os.Environ(), syncHelper+"="+name+"-child")
	if text, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
	}
}

func syncFile(t *testing.T, name string) {
	t.Helper()
	f, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Truncate(4096); err != nil {
		t.Fatal(err)
	}
	memory, err := unix.Mmap(int(f.Fd()), 0, 4096, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Munmap(memory)
	repeat := func(n int64, call func() error) {
		for range n {
			if err := call(); err != nil {
				t.Fatal(err)
			}
		}
	}
	repeat(40, func() error { return unix.Fsync(int(f.Fd())) })
	repeat(30, func() error { return unix.Fdatasync(int(f.Fd())) })
	repeat(20, func() error { return unix.SyncFileRange(int(f.Fd()), 0, 4096, unix.SYNC_FILE_RANGE_WRITE) })
	repeat(10, func() error { return unix.Msync(memory, unix.MS_SYNC) })
	repeat(5, func() error { return unix.Msync(memory, unix.MS_ASYNC) }) // asks for nothing
}

// TestSyncs: the calls of the command and of its descendants are counted exactly, and none of this process or of a
// command that is not asked about.
func TestSyncs(t *testing.T) {
	dir := t.TempDir()
	command := func() {
		t.Helper()
		c := exec.Command("/proc/self/exe", "-test.run", "^TestSyncCommand$")
		c.Env = append(os.Environ(), syncHelper+"="+filepath.Join(dir, "file"))
		if text, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	for _, asked := range []bool{false, true} {
		s := &session{welcome: &protocol.Welcome{CountSyncs: asked}}
		counter := s.countSyncs()
		others := make(chan struct{})
		go func() {
			defer close(others)
			syncFile(t, filepath.Join(dir, "other"))
		}()
		command()
		<-others
		got := counter.read()
		counter.close()
		switch {
		case !asked:
			if got != nil {
				t.Errorf("not asked for: %+v", got)
			}
		case got.NotObserved != "" && os.Geteuid() == 0:
			t.Errorf("not observed as root: %s", got.NotObserved)
		case got.NotObserved != "":
			if *got != (op.Syncs{NotObserved: got.NotObserved}) {
				t.Errorf("not observed, and counted: %+v", got)
			}
			t.Skipf("the counts need root: %s", got.NotObserved)
		case *got != wantSyncs:
			t.Errorf("counted %+v, want %+v", got, wantSyncs)
		}
	}
}

// TestSyncsOfRing: syncs by io_uring are no system calls, so that there is no count.
func TestSyncsOfRing(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("the counts need root")
	}
	if _, err := exec.LookPath("fio"); err != nil {
		t.Skipf("needs fio: %v", err)
	}
	s := &session{welcome: &protocol.Welcome{CountSyncs: true}}
	counter := s.countSyncs()
	defer counter.close()
	text, err := exec.Command("fio", "--name=x", "--filename="+filepath.Join(t.TempDir(), "f"), "--size=64k", "--rw=write",
		"--fsync=4", "--ioengine=io_uring").CombinedOutput()
	if err != nil {
		t.Skipf("this kernel has no io_uring: %v: %s", err, text)
	}
	if got := counter.read(); !strings.Contains(got.NotObserved, "io_uring") || got.Fsync != 0 {
		t.Errorf("%+v, want none, because of io_uring", got)
	}
}
