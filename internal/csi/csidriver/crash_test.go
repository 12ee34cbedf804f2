package csidriver

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc/codes"
)

// TestKilledAfterUse checks that the volumes of a killed driver stay usable, and that the next driver manages them.
func TestKilledAfterUse(t *testing.T) {
	for _, tt := range stores {
		t.Run(tt.backend+tt.fsType, func(t *testing.T) {
			t.Parallel()
			p := start(t, Options{Backend: tt.backend, PoolSize: 4 * gib})
			v := p.create("v", tt.size, mountCap(tt.fsType), nil, nil).use()
			v.write("f", "before")
			snap := p.snap("s", v.id)
			p.kill()
			v.write("g", "while there is no driver")
			p.run()
			v.use() // every step is idempotent
			if got := v.read("f") + ", " + v.read("g"); got != "before, while there is no driver" {
				t.Errorf("the volume holds %q", got)
			}
			r := p.create("r", tt.size, mountCap(tt.fsType), fromSnapshot(snap), nil).use()
			if got := r.read("f"); got != "before" {
				t.Errorf("the snapshot holds %q", got)
			}
			v.drop()
			r.drop()
		})
	}
}

func TestKilledWithBlockVolume(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 16*mib, blockCap(), nil, nil).use()
	v.putRaw("before")
	p.kill()
	if got := v.getRaw(6); got != "before" {
		t.Errorf("without a driver, the device holds %q", got)
	}
	p.run()
	if got := v.use().getRaw(6); got != "before" {
		t.Errorf("the device holds %q", got)
	}
}

// freezeForLong starts a snapshot that holds the freeze. It returns once the volume is frozen. The result is the
// outcome of a write that blocks until the volume is thawed.
func freezeForLong(t *testing.T, v *testVolume, hold time.Duration) (written chan error) {
	t.Helper()
	v.hold(hold)
	go func() {
		_, _ = v.p.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: v.id})
	}()
	written = make(chan error, 1)
	image := filepath.Join(v.p.config.BaseDir, "pool/snapshots", objectID("snap", "s")+".img")
	waitFor(t, "the snapshot's image", func() bool { _, err := os.Stat(image); return err == nil })
	go func() { written <- os.WriteFile(filepath.Join(v.target, "late"), []byte("x"), 0o644) }()
	select {
	case err := <-written:
		t.Fatalf("a write went through a frozen file system: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	return written
}

func wantWritten(t *testing.T, written chan error) {
	t.Helper()
	select {
	case err := <-written:
		if err != nil {
			t.Errorf("the late write: %v", err)
		}
	case <-time.After(5 * time.Second):
		t.Error("the file system is still frozen")
	}
}

// TestKilledWhileFrozen checks that the next driver thaws the volume and removes the unfinished snapshot, and that a
// repeated request creates it.
func TestKilledWhileFrozen(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
	v.write("f", "x")
	written := freezeForLong(t, v, time.Minute)
	p.kill()
	select {
	case err := <-written:
		t.Fatalf("nobody has thawed, yet the write went through: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	p.run()
	wantWritten(t, written)
	_, err := p.GetSnapshot(t.Context(), &csi.GetSnapshotRequest{SnapshotId: objectID("snap", "s")})
	wantCode(t, "the half-made snapshot", err, codes.NotFound)
	v.hold(0)
	snap := p.snap("s", v.id)
	if got := p.create("r", 32*mib, mountCap(""), fromSnapshot(snap), nil).use().read("f"); got != "x" {
		t.Errorf("restored %q", got)
	}
	if got := v.read("f"); got != "x" {
		t.Errorf("the volume holds %q", got)
	}
}

// TestDestroyWhileFrozen checks that Destroy thaws a volume without a driver. The clean-up of start checks for
// leftovers.
func TestDestroyWhileFrozen(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
	written := freezeForLong(t, v, time.Minute)
	p.kill()
	if err := Destroy(p.config.Options); err != nil {
		t.Error(err)
	}
	wantWritten(t, written)
}

// TestTerminatedWhileFrozen checks that a terminated driver finishes the snapshot before it exits.
func TestTerminatedWhileFrozen(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
	written := freezeForLong(t, v, stopTimeout+time.Second)
	p.terminate()
	wantWritten(t, written)
}

// TestLeakedDeviceIsFreed checks that a loop device is freed that was attached just before the driver was killed and
// that is missing in the driver's state.
func TestLeakedDeviceIsFreed(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 16*mib, mountCap(""), nil, nil)
	p.kill()
	image := filepath.Join(p.config.BaseDir, "pool/volumes", v.id+".img")
	if out, err := exec.Command("losetup", "-f", image).CombinedOutput(); err != nil {
		t.Fatalf("losetup: %v: %s", err, out)
	}
	if n := len(leftovers(t, image)); n != 1 {
		t.Fatalf("%d devices carry the image, want 1", n)
	}
	p.run()
	if n := len(leftovers(t, image)); n != 0 {
		t.Errorf("%d devices still carry the image after recovery", n)
	}
	v.use()
}

// TestDestroyBusy checks that Destroy names what it cannot unmount, and succeeds when that is no longer busy.
func TestDestroyBusy(t *testing.T) {
	t.Parallel()
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
	v.write("f", "x")
	f, err := os.Open(filepath.Join(v.target, "f"))
	if err != nil {
		t.Fatal(err)
	}
	p.kill()
	if err := Destroy(p.config.Options); err == nil {
		t.Error("destroying a volume in use reports nothing")
	} else {
		t.Logf("as it should: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	waitFor(t, "the devices to go with their last user", func() bool { return Destroy(p.config.Options) == nil })
}

// TestUnprivileged checks hostdir without root, with symbolic links.
func TestUnprivileged(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("becoming an ordinary user needs root; the other hostdir tests run as one already")
	}
	dir, err := os.MkdirTemp("", "csi-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	program := filepath.Join(dir, "driver")
	text, err := os.ReadFile(os.Args[0])
	if err == nil {
		err = os.WriteFile(program, text, 0o755)
	}
	if err == nil {
		err = os.Chown(dir, 65534, 65534)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-test.run=^(TestData|TestKilledAfterUse|TestIdempotency|TestSanity)$/hostdir",
		"-test.v")
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("as an ordinary user: %v\n%s", err, out)
	}
}

// TestKilledAnywhere checks a driver that is killed at random times while a volume is created, used and deleted.
// Repeated requests must give the same result, without data loss and without leaks (checked by the clean-up of start).
func TestKilledAnywhere(t *testing.T) {
	const rounds = 12
	for _, backend := range []string{"hostdir", "loopfile", "btrfs"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			p := start(t, Options{Backend: backend, PoolSize: gib})
			for round := range rounds {
				name := fmt.Sprint("v", round)
				ctx, cancel := context.WithCancel(t.Context())
				lived := make(chan struct{})
				go func() {
					defer close(lived)
					p.live(ctx, name)
				}()
				after := time.Duration(rand.Int64N(int64(60 * time.Millisecond)))
				time.Sleep(after)
				p.kill()
				cancel()
				<-lived
				p.run()

				v := p.create(name, 32*mib, mountCap(""), nil, nil).use()
				v.write("f", name)
				r := p.create(name+"r", 32*mib, mountCap(""), fromSnapshot(p.snap(name+"s", v.id)), nil).use()
				if _, err := os.ReadDir(r.target); err != nil {
					t.Errorf("round %d, killed after %v: %v", round, after, err)
				}
				if got := v.read("f"); got != name {
					t.Errorf("round %d, killed after %v: the volume holds %q", round, after, got)
				}
				r.drop()
				v.drop()
			}
		})
	}
}

// TestProgramOutlivesDriver checks that a driver does not begin before the programs of the one that was killed have
// ended: in the kernel, a program may outlive its SIGKILL.
func TestProgramOutlivesDriver(t *testing.T) {
	setpriv, err := exec.LookPath("setpriv")
	if err != nil {
		t.Skip("setpriv is not installed")
	}
	bin, lasts := t.TempDir(), 2*time.Second
	began := filepath.Join(bin, "began")
	text := fmt.Sprintf("#!/bin/sh\nexec %s --pdeathsig clear sh -c 'echo >%s; exec sleep %g'\n", setpriv, began,
		lasts.Seconds())
	if err := os.WriteFile(filepath.Join(bin, "mkfs.ext4"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 32*mib, mountCap(""), nil, nil)
	p.kill()
	path := os.Getenv("PATH")
	t.Setenv("PATH", bin+":"+path)
	p.run()
	go p.live(t.Context(), "v")
	waitFor(t, "mkfs", func() bool { _, err := os.Stat(began); return err == nil })
	killed := time.Now()
	p.kill()
	t.Setenv("PATH", path)
	p.run()
	if took := time.Since(killed); took < lasts/2 {
		t.Errorf("the driver began %v after the other was killed, whose mkfs lasts %v", took, lasts)
	}
	v.use().write("f", "x")
}

// live runs the steps that TestKilledAnywhere repeats, until one fails.
func (p *process) live(ctx context.Context, name string) {
	dir := filepath.Dir(p.config.Socket)
	staging, target := filepath.Join(dir, name+"-staging"), filepath.Join(dir, name+"-target")
	c := mountCap("")
	id := objectID("vol", name)
	create := &csi.CreateVolumeRequest{Name: name, VolumeCapabilities: []*csi.VolumeCapability{c},
		CapacityRange: &csi.CapacityRange{RequiredBytes: 32 * mib}}
	steps := []func() error{
		func() error { _, err := p.CreateVolume(ctx, create); return err },
	}
	if p.config.Backend == "loopfile" {
		steps = append(steps, func() error {
			_, err := p.ControllerPublishVolume(ctx,
				&csi.ControllerPublishVolumeRequest{VolumeId: id, NodeId: "local", VolumeCapability: c})
			return err
		}, func() error {
			_, err := p.NodeStageVolume(ctx, &csi.NodeStageVolumeRequest{VolumeId: id, StagingTargetPath: staging,
				VolumeCapability: c})
			return err
		})
	}
	steps = append(steps, func() error {
		_, err := p.NodePublishVolume(ctx, &csi.NodePublishVolumeRequest{VolumeId: id, StagingTargetPath: staging,
			TargetPath: target, VolumeCapability: c})
		return err
	}, func() error {
		_, err := p.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: name + "s", SourceVolumeId: id})
		return err
	}, func() error {
		create.Name, create.VolumeContentSource = name+"r", fromSnapshot(objectID("snap", name+"s"))
		_, err := p.CreateVolume(ctx, create)
		return err
	})
	for _, step := range steps {
		if step() != nil {
			return
		}
	}
}

// TestDestroyBeside checks a Destroy that waits for the lock while another one removes everything, as after the kill of
// a clean-up whose driver goes on: it creates nothing again.
func TestDestroyBeside(t *testing.T) {
	t.Parallel()
	run := filepath.Join(t.TempDir(), "run")
	o := Options{Backend: "hostdir", BaseDir: filepath.Join(run, "hostdir")}
	if err := os.MkdirAll(o.BaseDir, 0o755); err != nil {
		t.Fatal(err)
	}
	lock, err := lockBase(o.BaseDir)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- Destroy(o) }()
	time.Sleep(50 * time.Millisecond) // it waits
	if err := errors.Join(os.RemoveAll(run), lock.Close(), <-done); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(run); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is there again: %v", run, err)
	}
}

// TestDestroyPinned checks that Destroy names a process whose mount namespace still contains the volume.
func TestDestroyPinned(t *testing.T) {
	t.Parallel()
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	p.create("v", 32*mib, mountCap(""), nil, nil).use()
	cmd := exec.Command("sleep", "60")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.kill()
	err := Destroy(p.config.Options)
	if want := fmt.Sprintf("sleep (%d)", cmd.Process.Pid); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Destroy: %v; want an error that names %s", err, want)
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	waitFor(t, "the devices to go with their last user", func() bool { return Destroy(p.config.Options) == nil })
}
