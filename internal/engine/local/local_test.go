package local_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/test/enginetest"
	"github.com/cnsbench/cnsbench/test/looptest"
)

// bin is the directory of the built programs. In tests, too, drivers and agents run as separate processes.
var bin string

func TestMain(m *testing.M) {
	if os.Getenv(parserEnv) != "" {
		os.Exit(parseAlone())
	}
	code := func() int {
		if bin = os.Getenv("CNSBENCH_BIN"); bin != "" { // programs that exist
			return m.Run()
		}
		var err error
		if bin, err = os.MkdirTemp("", "cnsbench-test-"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(bin)
		// The same flags as in the Makefile, so that the build cache is used.
		build := exec.Command("go", "build", "-trimpath", "-o", bin, "../../../cmd/cnsbench",
			"../../../cmd/cnsbench-agent")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%v\n%s", err, out)
			return 1
		}
		return m.Run()
	}()
	os.Exit(code)
}

func TestConformance(t *testing.T) {
	for _, tt := range []struct {
		backend string
		params  map[string]string
		program string // program that the driver executes
		skip    map[string]string
		size    string
		unseen  map[string]bool
		shared  corev1.PersistentVolumeAccessMode // ReadWriteOnce if the pods of one machine can share such a volume
	}{
		{backend: "null"},
		{backend: "hostdir", skip: join(noScripts, noPhases, map[string]string{
			"group": "hostdir has no group snapshots", "modify": "hostdir has no mutable parameters"}), unseen: unattached},
		{backend: "loopfile", program: "mkfs.ext4", skip: join(noScripts, noResource()), shared: corev1.ReadWriteOnce},
		{backend: "loopfile", program: "mkfs.xfs", params: map[string]string{"csi.storage.k8s.io/fstype": "xfs"},
			skip: join(noScripts, noPhases), size: "320Mi", shared: corev1.ReadWriteOnce},
		{backend: "btrfs", program: "mkfs.btrfs", skip: join(noScripts, noPhases, map[string]string{
			"group": "btrfs has no group snapshots", "modify": "btrfs has no mutable parameters"}), unseen: unattached},
	} {
		name := tt.backend + tt.params["csi.storage.k8s.io/fstype"]
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.program != "" {
				if os.Geteuid() != 0 {
					t.Skipf("%s mounts file systems: needs root", tt.backend)
				}
				if _, err := exec.LookPath(tt.program); err != nil {
					t.Skipf("%s is not installed", tt.program)
				}
			}
			storage := t.TempDir()
			provisioner := tt.backend + ".csi.cnsbench.dev"
			dead := func(_ *testing.T, own owned.Identity) engine.Engine {
				return local.New(local.Options{
					DriverCommand: []string{filepath.Join(bin, "cnsbench"), "csi", "driver"},
					AgentPath:     filepath.Join(bin, "cnsbench-agent"), StorageDir: storage, Seed: 1, Identity: own})
			}
			enginetest.Run(t, enginetest.Target{
				New:  func(t *testing.T) engine.Engine { return dead(t, owned.Identity{}) },
				Dead: dead, Storage: storage,
				StorageClass: storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "sc"},
					Provisioner: provisioner, Parameters: tt.params},
				SnapshotClass: engine.SnapshotClass{Name: "vsc", Driver: provisioner},
				Leaks:         func(t *testing.T) []string { return leaks(t, storage) },
				Skip:          tt.skip, Size: tt.size,
				DetachLosesData: tt.backend == "null", Unobserved: tt.unseen, Shared: tt.shared,
			})
		})
	}
}

// Parts that wait for fixed times and in which the driver does not take part run with some drivers only.
var (
	noScripts = map[string]string{"parser": "parser scripts have no volume: run with null"}
	noPhases  = map[string]string{"live": "the agent sends samples, whatever the volume: run with null and loopfile",
		"phases":            "the agent ends phases, whatever the volume: run with null and loopfile",
		"phases made again": "the agent ends phases, whatever the volume: run with null and loopfile"}
)

// join returns all parts to skip.
func join(skip ...map[string]string) map[string]string {
	all := map[string]string{}
	for _, s := range skip {
		maps.Copy(all, s)
	}
	return all
}

// unattached has the milestones that a driver without ControllerPublishVolume does not reach.
var unattached = map[string]bool{op.Attached: true, op.Detached: true}

// noResource returns the operations to skip if the kernel does not permit growing a mounted ext4: EXT4_IOC_RESIZE_FS
// requires CAP_SYS_RESOURCE.
func noResource() map[string]string {
	const capSysResource = 24
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(b)) {
		var caps uint64
		if n, _ := fmt.Sscanf(line, "CapEff: %x", &caps); n == 1 && caps&(1<<capSysResource) == 0 {
			return map[string]string{"resize": "growing a mounted ext4 needs CAP_SYS_RESOURCE, which this machine does not give to root"}
		}
	}
	return nil
}

// leaks returns the remaining resources of a storage directory: files, mounts, loop devices, processes.
func leaks(t *testing.T, storage string) (left []string) {
	t.Helper()
	entries, err := os.ReadDir(storage)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		left = append(left, filepath.Join(storage, e.Name()))
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, storage) {
			left = append(left, "mount "+line)
		}
	}
	left = append(left, looptest.Below(storage)...)
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, p := range processes {
		if b, _ := os.ReadFile(p); strings.Contains(string(b), storage) {
			left = append(left, "process "+strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return left
}
