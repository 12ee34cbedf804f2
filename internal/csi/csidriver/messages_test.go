package csidriver

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

func TestFormatSize(t *testing.T) {
	for bytes, want := range map[int64]string{
		0: "0", 1023: "1023", kib: "1Ki", 960 * mib: "960Mi", gib - 1: "1023.9Mi", gib: "1Gi", 3 * gib / 2: "1.5Gi",
		16 * gib: "16Gi", 1024 * gib: "1Ti", 5000 * 1024 * gib: "5000Ti",
	} {
		if got := formatSize(bytes); got != want {
			t.Errorf("%d bytes read %s, want %s", bytes, got, want)
		}
	}
}

func wantText(t *testing.T, err error, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v; want %q in it", err, text)
		}
	}
}

// TestExhausted checks that the error names the exhausted capacity and how to raise it.
func TestExhausted(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		want []string
	}{
		{"capacity", Options{Backend: "null", Capacity: 2 * gib},
			[]string{"4096Ti requested, 2Gi available of the capacity (2Gi)",
				"driver.cnsbench.dev/capacity, or csi driver --capacity"}},
		{"null", Options{Backend: "null"}, []string{"4096Ti requested, 1024Ti available of the capacity"}},
		{"disk", Options{Backend: "hostdir"}, []string{"available of the file system of ", "--storage-dir"}},
		{"pool", Options{Backend: "btrfs", PoolSize: 512 * mib},
			[]string{"available of the pool (512Mi)", "driver.cnsbench.dev/pool-size, or csi driver --pool-size"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := start(t, tt.o)
			if _, err := os.Stat(filepath.Join(p.config.BaseDir, "pool.img")); tt.name == "pool" && err != nil {
				t.Skip("the temporary directory is on btrfs itself: there is no pool image")
			}
			_, err := p.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a",
				VolumeCapabilities: []*csi.VolumeCapability{mountCap("")},
				CapacityRange:      &csi.CapacityRange{RequiredBytes: 4 << 50}})
			wantCode(t, "too large", err, codes.ResourceExhausted)
			wantText(t, err, tt.want...)
		})
	}
}

func TestUnknownMutable(t *testing.T) {
	wantText(t, null{}.checkMutable(map[string]string{"size": "1"}),
		`unknown mutable parameter "size": want one of iops, throughput`)
	wantText(t, (*loopfile)(nil).checkMutable(map[string]string{"iops": "1"}),
		`"iops": want one of freezeHold, readAheadKiB`)
}

func TestLimit(t *testing.T) {
	if got, lacks := Limit("loopfile") != "", !hostfs.HasCapability(unix.CAP_SYS_RESOURCE); got != lacks {
		t.Errorf("the limit is %q, that the capability is lacking is %t", Limit("loopfile"), lacks)
	}
	if got := Limit("null"); got != "" {
		t.Errorf("null is limited: %s", got)
	}
}

// TestWithoutRoot checks that a backend that needs root creates nothing without it.
func TestWithoutRoot(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	base := filepath.Join(dir, "base")
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread, with its changed UID, ends with the goroutine
		if os.Geteuid() == 0 {
			const nobody = 65534
			if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, nobody, nobody, nobody); errno != 0 {
				failed <- errno
				return
			}
		}
		_, err := New(Options{Backend: "loopfile", BaseDir: base})
		failed <- err
	}()
	wantText(t, <-failed, "as root")
	if _, err := os.Stat(base); err == nil {
		t.Error("the base directory was made")
	}
}
