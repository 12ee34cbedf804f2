package csidriver

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc/codes"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/hostfs"
)

func shut(t testing.TB, f io.Closer) {
	t.Helper()
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

// stores lists the backends that store data, with their file systems.
var stores = []struct {
	backend, fsType string
	size            int64
}{
	{"hostdir", "", 32 * mib}, {"loopfile", "ext4", 64 * mib}, {"loopfile", "xfs", 300 * mib}, {"btrfs", "", 64 * mib},
}

func total(t *testing.T, path string) int64 {
	t.Helper()
	var st unix.Statfs_t
	if err := unix.Statfs(path, &st); err != nil {
		t.Fatal(err)
	}
	return int64(st.Blocks) * st.Bsize
}

// TestData checks that a snapshot and a clone contain the volume's data at the time of their creation, and are
// independent of the volume afterwards.
func TestData(t *testing.T) {
	for _, tt := range stores {
		t.Run(tt.backend+tt.fsType, func(t *testing.T) {
			t.Parallel()
			p := start(t, Options{Backend: tt.backend, PoolSize: 4 * gib})
			c := mountCap(tt.fsType)
			v := p.create("v", tt.size, c, nil, nil).use()
			v.write("f", "old")
			if err := errors.Join(os.Mkdir(filepath.Join(v.target, "d"), 0o755),
				os.Symlink("../f", filepath.Join(v.target, "d", "l")), os.Chmod(filepath.Join(v.target, "d"),
					0o555)); err != nil {
				t.Fatal(err)
			}
			snap := p.snap("s", v.id)
			v.write("f", "new")
			clone := p.create("c", tt.size, c, fromVolume(v.id), nil).use()
			v.write("f", "newest")
			clone.write("g", "only in the clone")
			restored := p.create("r", 2*tt.size, c, fromSnapshot(snap), nil).use()
			for _, check := range []struct {
				of   *testVolume
				want string
			}{{v, "newest"}, {clone, "new"}, {restored, "old"}} {
				if got := check.of.read("d/l"); got != check.want {
					t.Errorf("%s holds %q, want %q", check.of.target, got, check.want)
				}
			}
			if _, err := os.Stat(filepath.Join(v.target, "g")); err == nil {
				t.Error("what is written to a clone appears in its source")
			}
			if tt.backend == "loopfile" {
				if got := total(t, restored.target); got < 2*tt.size*8/10 {
					t.Errorf("restored to %d bytes, the file system has %d", 2*tt.size, got)
				}
			}
			for _, v := range []*testVolume{v, clone, restored} {
				v.drop()
			}
			ok(p.DeleteSnapshot(t.Context(), &csi.DeleteSnapshotRequest{SnapshotId: snap}))(t)
			for _, kind := range []string{"volumes", "snapshots"} {
				for _, dir := range []string{kind, "pool/" + kind} {
					if entries, _ := os.ReadDir(filepath.Join(p.config.BaseDir, dir)); len(entries) > 0 {
						t.Errorf("%d %s are left in %s after all were deleted", len(entries), kind, dir)
					}
				}
			}
		})
	}
}

// TestGrowOnline checks that a mounted file system grows and keeps its data.
func TestGrowOnline(t *testing.T) {
	for _, tt := range stores[1:3] {
		t.Run(tt.fsType, func(t *testing.T) {
			t.Parallel()
			if !growsMounted(volume{FSType: tt.fsType}) {
				t.Skip("growing a mounted ext4 needs CAP_SYS_RESOURCE, which this process lacks")
			}
			p := start(t, Options{Backend: tt.backend, PoolSize: 4 * gib})
			v := p.create("v", tt.size, mountCap(tt.fsType), nil, nil).use()
			v.write("f", "x")
			before := total(t, v.target)
			resp := ok(p.ControllerExpandVolume(t.Context(),
				&csi.ControllerExpandVolumeRequest{VolumeId: v.id,
					CapacityRange: &csi.CapacityRange{RequiredBytes: 3 * tt.size}}))(t)
			if !resp.GetNodeExpansionRequired() || resp.GetCapacityBytes() != 3*tt.size {
				t.Errorf("ControllerExpandVolume: %v", resp)
			}
			ok(p.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: v.id, VolumePath: v.target}))(t)
			if after := total(t, v.target); after < before+2*tt.size*8/10 {
				t.Errorf("the file system had %d bytes and has %d, want about %d more", before, after, 2*tt.size)
			}
			if got := v.read("f"); got != "x" {
				t.Errorf("the file holds %q", got)
			}
		})
	}
}

// TestQuota checks that a btrfs volume with a quota cannot exceed its size, and can hold more after an expansion.
func TestQuota(t *testing.T) {
	p := start(t, Options{Backend: "btrfs", PoolSize: gib})
	v := p.create("v", 16*mib, mountCap(""), nil, map[string]string{"quota": "true"}).use()
	fill := func() error {
		return errors.Join(os.WriteFile(filepath.Join(v.target, "f"), bytes.Repeat([]byte("x"), int(24*mib)), 0o644),
			hostfs.SyncFS(v.target))
	}
	if err := fill(); !errors.Is(err, unix.EDQUOT) {
		t.Fatalf("writing 24 MiB to a volume of 16: %v", err)
	}
	ok(p.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: v.id,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 64 * mib}}))(t)
	if err := fill(); err != nil {
		t.Errorf("writing 24 MiB to a volume of 64: %v", err)
	}
}

// rawAt is the offset at which the tests write to a device.
const rawAt = 8 * mib

func (v *testVolume) open(flag int) *os.File {
	v.p.t.Helper()
	f, err := os.OpenFile(v.target, flag, 0)
	if err != nil {
		v.p.t.Fatal(err)
	}
	return f
}

func (v *testVolume) putRaw(text string) {
	v.p.t.Helper()
	f := v.open(os.O_WRONLY)
	defer shut(v.p.t, f)
	if _, err := f.WriteAt([]byte(text), rawAt); err != nil {
		v.p.t.Fatal(err)
	}
}

func (v *testVolume) getRaw(n int) string {
	v.p.t.Helper()
	f := v.open(os.O_RDONLY)
	defer shut(v.p.t, f)
	buf := make([]byte, n)
	if _, err := f.ReadAt(buf, rawAt); err != nil {
		v.p.t.Fatal(err)
	}
	return string(buf)
}

func (v *testVolume) rawSize() int64 {
	v.p.t.Helper()
	f := v.open(os.O_RDONLY)
	defer shut(v.p.t, f)
	end, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		v.p.t.Fatal(err)
	}
	return end
}

// TestBlock checks that raw block volumes keep their data through snapshot, restore and growth, and are never
// formatted.
func TestBlock(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 16*mib, blockCap(), nil, nil).use()
	v.putRaw("old")
	snap := p.snap("s", v.id)
	v.putRaw("new")
	restored := p.create("r", 32*mib, blockCap(), fromSnapshot(snap), nil).use()
	if got, now := restored.getRaw(3), v.getRaw(3); got != "old" || now != "new" {
		t.Errorf("restored %q, the volume holds %q; want old, new", got, now)
	}
	ok(p.ControllerExpandVolume(t.Context(), &csi.ControllerExpandVolumeRequest{VolumeId: v.id,
		CapacityRange: &csi.CapacityRange{RequiredBytes: 24 * mib}}))(t)
	ok(p.NodeExpandVolume(t.Context(), &csi.NodeExpandVolumeRequest{VolumeId: v.id, VolumePath: v.target}))(t)
	if got := v.rawSize(); got != 24*mib {
		t.Errorf("the device has %d bytes, want 24 MiB", got)
	}
	if got := restored.rawSize(); got != 32*mib {
		t.Errorf("the restored device has %d bytes, want 32 MiB", got)
	}

	_, err := p.NodeStageVolume(t.Context(), &csi.NodeStageVolumeRequest{VolumeId: v.id, StagingTargetPath: v.staging,
		VolumeCapability: mountCap("ext4")})
	wantCode(t, "staging raw block as a file system", err, codes.InvalidArgument)
	_, err = p.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "f",
		VolumeCapabilities:  []*csi.VolumeCapability{mountCap("ext4")},
		VolumeContentSource: fromSnapshot(snap)})
	wantCode(t, "a file system from foreign raw data", err, codes.InvalidArgument)
	_, err = p.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: v.id})
	wantCode(t, "deleting a published volume", err, codes.FailedPrecondition)
	restored.drop()
}

// TestModeConversion checks that a file system can be restored through a raw block volume.
func TestModeConversion(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 32*mib, mountCap("ext4"), nil, nil).use()
	v.write("f", "x")
	raw := p.create("raw", 32*mib, blockCap(), fromSnapshot(p.snap("s", v.id)), nil).use()
	back := p.create("back", 32*mib, mountCap("ext4"), fromSnapshot(p.snap("s2", raw.id)), nil).use()
	if got := back.read("f"); got != "x" {
		t.Errorf("the file holds %q", got)
	}
}

// counter appends increasing numbers to the first file and then to the second until it is stopped. Each write is
// durable.
func counter(t *testing.T, first, second string) (stop func() int64) {
	t.Helper()
	var n atomic.Int64
	quit, done := make(chan struct{}), make(chan struct{})
	write := func(dir string, i int64) {
		f, err := os.OpenFile(filepath.Join(dir, "n"), os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o644)
		if err == nil {
			_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(i)), 0)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			t.Error(err)
		}
	}
	go func() {
		defer close(done)
		for i := int64(1); ; i++ {
			select {
			case <-quit:
				return
			default:
			}
			write(first, i)
			write(second, i)
			n.Store(i)
		}
	}()
	waitFor(t, "the writer", func() bool { return n.Load() > 10 })
	return func() int64 { close(quit); <-done; return n.Load() }
}

func readCounter(t *testing.T, v *testVolume) int64 {
	t.Helper()
	text := v.read("n")
	if len(text) != 8 {
		t.Fatalf("%d bytes, want 8", len(text))
	}
	return int64(binary.BigEndian.Uint64([]byte(text)))
}

// TestGroupSnapshotIsOfOneInstant checks that a group snapshot is consistent. A writer alternates between two volumes,
// so that at any time the first is ahead of the second by at most one.
func TestGroupSnapshotIsOfOneInstant(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	a := p.create("a", 32*mib, mountCap(""), nil, nil).use()
	b := p.create("b", 32*mib, mountCap(""), nil, nil).use()
	ids := []string{a.id, b.id}
	stop := counter(t, a.target, b.target)
	var groups []*csi.VolumeGroupSnapshot
	for i := range 5 {
		req := &csi.CreateVolumeGroupSnapshotRequest{Name: fmt.Sprint("g", i), SourceVolumeIds: ids}
		g := ok(p.CreateVolumeGroupSnapshot(t.Context(), req))(t).GetGroupSnapshot()
		if again := ok(p.CreateVolumeGroupSnapshot(t.Context(),
			req))(t).GetGroupSnapshot(); again.GetGroupSnapshotId() != g.GetGroupSnapshotId() {
			t.Errorf("the same request made %s and %s", g.GetGroupSnapshotId(), again.GetGroupSnapshotId())
		}
		groups = append(groups, g)
	}
	stop()
	for i, g := range groups {
		var n [2]int64
		for _, s := range g.GetSnapshots() {
			j := slices.Index(ids, s.GetSourceVolumeId())
			v := p.create(fmt.Sprint("r", i, j), 32*mib, mountCap(""), fromSnapshot(s.GetSnapshotId()), nil).use()
			n[j] = readCounter(t, v)
			v.drop()
		}
		if n[0] < n[1] || n[0] > n[1]+1 {
			t.Errorf("group snapshot %d holds %d and %d: not of one instant", i, n[0], n[1])
		}
		_, err := p.DeleteSnapshot(t.Context(),
			&csi.DeleteSnapshotRequest{SnapshotId: g.GetSnapshots()[0].GetSnapshotId()})
		wantCode(t, "deleting a member", err, codes.InvalidArgument)
		ok(p.DeleteVolumeGroupSnapshot(t.Context(),
			&csi.DeleteVolumeGroupSnapshotRequest{GroupSnapshotId: g.GetGroupSnapshotId()}))(t)
	}
	if left := ok(p.ListSnapshots(t.Context(), &csi.ListSnapshotsRequest{}))(t).GetEntries(); len(left) != 0 {
		t.Errorf("%d snapshots are left", len(left))
	}
	_, err := p.CreateVolumeGroupSnapshot(t.Context(),
		&csi.CreateVolumeGroupSnapshotRequest{Name: "x", SourceVolumeIds: []string{a.id, "vol-none"}})
	wantCode(t, "a member that does not exist", err, codes.NotFound)
}

// hold sets how long snapshots keep the volume frozen.
func (v *testVolume) hold(d time.Duration) {
	v.p.t.Helper()
	ok(v.p.ControllerModifyVolume(v.p.t.Context(), &csi.ControllerModifyVolumeRequest{VolumeId: v.id,
		MutableParameters: map[string]string{"freezeHold": d.String()}}))(v.p.t)
}

// TestFreezeLogMatchesWriterStall checks that the logged duration of a freeze equals the longest write of a concurrent
// writer. A busy machine makes the write longer and never shorter, so the closest of some snapshots is judged.
func TestFreezeLogMatchesWriterStall(t *testing.T) {
	const hold, tolerance = 150 * time.Millisecond, 20 * time.Millisecond
	for _, fsType := range []string{"ext4", "xfs"} {
		t.Run(fsType, func(t *testing.T) {
			p := start(t, Options{Backend: "loopfile", PoolSize: gib})
			v := p.create("v", 300*mib, mountCap(fsType), nil, nil).use()
			v.hold(hold)
			closest := time.Hour // by how much a write was longer than the freeze
			for i := 0; i < 5 && closest > tolerance; i++ {
				var snap string
				began, felt := longestWrite(t, filepath.Join(v.target, "w"), func() { snap = p.snap(fmt.Sprint("s", i), v.id) })
				r := slices.DeleteFunc(p.truth(), func(r Record) bool { return r.Event != eventFreeze || r.Snapshot != snap })
				if len(r) != 1 || r[0].Volume != v.id {
					t.Fatalf("freezes in the log: %+v", r)
				}
				held, took := time.Duration(r[0].HeldNs), time.Duration(r[0].DurationNs)
				t.Logf("logged %v to %v, felt %v", held, took, felt)
				if felt < held-tolerance || held < hold {
					t.Errorf("logged at least %v, want at least %v; the writer felt %v", held, hold, felt)
				}
				if r[0].FrozenUnixNs < r[0].StartUnixNs || r[0].EndUnixNs < r[0].FrozenUnixNs ||
					began.UnixNano() > r[0].EndUnixNs {
					t.Errorf("the record's instants are out of order: %+v; the write began at %d", r[0], began.UnixNano())
				}
				closest = min(closest, felt-took)
			}
			if closest > tolerance {
				t.Errorf("each write was longer than the logged freeze, the closest by %v", closest)
			}
		})
	}
}

// longestWrite writes to a file while do runs, and returns when the longest write began and how long it took.
func longestWrite(t *testing.T, path string, do func()) (began time.Time, took time.Duration) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, f)
	var writer sync.WaitGroup
	quit, running := make(chan struct{}), make(chan struct{})
	writer.Go(func() {
		close(running)
		for {
			select {
			case <-quit:
				return
			default:
			}
			at := time.Now()
			if _, err := f.WriteAt([]byte("x"), 0); err != nil {
				t.Error(err)
			}
			if d := time.Since(at); d > took {
				began, took = at, d
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	<-running
	time.Sleep(50 * time.Millisecond)
	do()
	close(quit)
	writer.Wait()
	return began, took
}

// TestQueueIsLogged checks that the log has the time that a call waited for another one on the same volume.
func TestQueueIsLogged(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
	v.hold(200 * time.Millisecond)
	done := make(chan error, 1)
	go func() {
		_, err := p.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "a", SourceVolumeId: v.id})
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	p.snap("b", v.id)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	var queued []time.Duration
	for _, r := range p.truthOf("CreateSnapshot") {
		queued = append(queued, time.Duration(r.QueuedNs))
	}
	slices.Sort(queued)
	if len(queued) != 2 || queued[0] > 50*time.Millisecond || queued[1] < 100*time.Millisecond {
		t.Errorf("queued %v; want about 0 and 150 ms", queued)
	}
}

// TestTmpfs checks that the pool image works on tmpfs, which has no reflinks and no disk.
func TestTmpfs(t *testing.T) {
	needs(t, "loopfile")
	base := filepath.Join(t.TempDir(), "tmpfs")
	if err := errors.Join(os.Mkdir(base, 0o755), unix.Mount("tmpfs", base, "tmpfs", 0, "size=1g")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(base, 0); err != nil {
			t.Error(err)
		}
	})
	p := start(t, Options{Backend: "loopfile", PoolSize: gib, BaseDir: filepath.Join(base, "d")})
	v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
	v.write("f", "old")
	snap := p.snap("s", v.id)
	v.write("f", "new")
	if got := p.create("r", 32*mib, mountCap(""), fromSnapshot(snap), nil).use().read("f"); got != "old" {
		t.Errorf("restored %q", got)
	}
	for _, r := range p.truth() {
		if r.Event == eventAttach {
			if r.DirectIO == nil || r.Device == "" {
				t.Errorf("attach record %+v does not say how", r)
			}
			return
		}
	}
	t.Error("no attach record")
}

// TestReflinkingBase checks that no pool image is created if the file system of the base directory supports reflinks.
func TestReflinkingBase(t *testing.T) {
	outer := start(t, Options{Backend: "loopfile", PoolSize: 2 * gib})
	p := start(t, Options{Backend: "loopfile", BaseDir: filepath.Join(outer.config.BaseDir, "pool", "inner")})
	v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
	v.write("f", "old")
	snap := p.snap("s", v.id)
	v.write("f", "new")
	if got := p.create("r", 32*mib, mountCap(""), fromSnapshot(snap), nil).use().read("f"); got != "old" {
		t.Errorf("restored %q", got)
	}
	if _, err := os.Stat(filepath.Join(p.config.BaseDir, "pool.img")); err == nil {
		t.Error("a pool image was made on a file system that can reflink")
	}
}

// TestBtrfsBase checks the same as TestReflinkingBase on btrfs, where subvolumes are deleted individually.
func TestBtrfsBase(t *testing.T) {
	outer := start(t, Options{Backend: "btrfs", PoolSize: gib})
	p := start(t, Options{Backend: "btrfs", BaseDir: filepath.Join(outer.config.BaseDir, "pool", "inner")})
	v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
	v.write("f", "x")
	p.snap("s", v.id)
	if _, err := os.Stat(filepath.Join(p.config.BaseDir, "pool.img")); err == nil {
		t.Error("a pool image was made on btrfs")
	}
}

// TestMountOptions checks that the mount options of the StorageClass reach the file system, and that invalid ones are
// rejected.
func TestMountOptions(t *testing.T) {
	p := start(t, Options{Backend: "loopfile", PoolSize: gib})
	c := mountCap("ext4")
	c.GetMount().MountFlags = []string{"noatime", "data=journal"}
	v := p.create("v", 32*mib, c, nil, nil).use()
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if strings.Contains(line, v.staging) && strings.Contains(line, "noatime") &&
			strings.Contains(line, "data=journal") {
			return
		}
	}
	t.Errorf("no mount at %s with the options asked for", v.staging)
}

// TestReadOnly checks that a volume that is published read-only is not writable.
func TestReadOnly(t *testing.T) {
	for _, backend := range []string{"hostdir", "loopfile", "btrfs"} {
		t.Run(backend, func(t *testing.T) {
			if os.Geteuid() != 0 {
				t.Skip("publishing read-only needs root")
			}
			p := start(t, Options{Backend: backend, PoolSize: gib})
			v := p.create("v", 32*mib, mountCap(""), nil, nil).use()
			other := v.target + "-ro"
			ok(p.NodePublishVolume(t.Context(), &csi.NodePublishVolumeRequest{VolumeId: v.id,
				StagingTargetPath: v.staging, TargetPath: other,
				VolumeCapability: v.cap, Readonly: true}))(t)
			if err := os.WriteFile(filepath.Join(other, "f"), nil, 0o644); !errors.Is(err, syscall.EROFS) {
				t.Errorf("writing: %v", err)
			}
			v.write("f", "x")
		})
	}
}
