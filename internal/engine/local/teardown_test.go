package local_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine/local"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
)

// processEntry returns the ledger entry that a run adds for a process it starts.
func processEntry(t *testing.T, pid int) op.LedgerEntry {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		t.Fatal(err)
	}
	_, fields, _ := strings.Cut(string(stat), ") ")
	return op.LedgerEntry{Kind: "process", Name: "w", Data: map[string]string{
		"pid": strconv.Itoa(pid), "start": strings.Fields(fields)[19], "boot": strings.TrimSpace(string(boot))}}
}

// TestTeardownWhileFrozen checks the clean-up after a killed driver that left a file system frozen. A process that
// writes to the file system cannot end until it is thawed.
func TestTeardownWhileFrozen(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("loopfile mounts file systems: needs root")
	}
	if _, err := exec.LookPath("mkfs.ext4"); err != nil {
		t.Skip("mkfs.ext4 is not installed")
	}
	d := startDriver(t, "loopfile", "--pool-size", "1Gi")
	own := owned.New("run")
	own.Storage = filepath.Dir(filepath.Dir(d.base))
	target := d.publish(t, 32<<20)
	if _, err := d.ControllerModifyVolume(t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: target.id,
		MutableParameters: map[string]string{"freezeHold": "1m"}}); err != nil {
		t.Fatal(err)
	}
	go func() {
		_, _ = d.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: target.id})
	}()
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		if images, _ := filepath.Glob(filepath.Join(d.base, "pool/snapshots/*.img")); len(images) > 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the snapshot has not begun")
		}
	}
	d.kill()
	writer := exec.Command("sh", "-c", "echo x > "+filepath.Join(target.path, "late"))
	writer.Env = []string{owned.Environment(own.RunID)}
	if err := writer.Start(); err != nil {
		t.Fatal(err)
	}
	entry := processEntry(t, writer.Process.Pid)
	ended := make(chan error, 1)
	go func() { ended <- writer.Wait() }()
	select {
	case err := <-ended:
		t.Fatalf("a write went through a frozen file system: %v", err)
	case <-time.After(200 * time.Millisecond):
	}

	dir := t.TempDir()
	ledger, err := bundle.OpenLedger(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer ledger.Close()
	for _, e := range []op.LedgerEntry{{Kind: "driver", Name: "loopfile", Data: map[string]string{"baseDir": d.base}},
		entry} {
		if err := ledger.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	began := time.Now()
	e := local.New(local.Options{DriverCommand: []string{filepath.Join(bin, "cnsbench"), "csi", "driver"}, Identity: own})
	if err := e.Teardown(t.Context(), ledger); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 30*time.Second {
		t.Errorf("it took %v", took)
	}
	if open := ledger.Open(); len(open) > 0 {
		t.Errorf("still owed: %v", open)
	}
	select {
	case <-ended:
	default:
		t.Error("the process is still there")
	}
}

// published is a published volume.
type published struct{ id, path string }

func (d *handDriver) publish(t *testing.T, size int64) published {
	t.Helper()
	c := &csi.VolumeCapability{
		AccessType: &csi.VolumeCapability_Mount{Mount: &csi.VolumeCapability_MountVolume{}},
		AccessMode: &csi.VolumeCapability_AccessMode{Mode: csi.VolumeCapability_AccessMode_SINGLE_NODE_WRITER},
	}
	v, err := d.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "v",
		CapacityRange:      &csi.CapacityRange{RequiredBytes: size},
		VolumeCapabilities: []*csi.VolumeCapability{c}})
	if err != nil {
		t.Fatal(err)
	}
	id, dir := v.GetVolume().GetVolumeId(), t.TempDir()
	stage, path := filepath.Join(dir, "stage"), filepath.Join(dir, "mount")
	if err := os.Mkdir(stage, 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = d.ControllerPublishVolume(t.Context(),
		&csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "local", VolumeCapability: c})
	if err == nil {
		_, err = d.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: stage,
			VolumeCapability: c})
	}
	if err == nil {
		_, err = d.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: stage,
			TargetPath: path, VolumeCapability: c})
	}
	if err != nil {
		t.Fatal(err)
	}
	return published{id, path}
}
