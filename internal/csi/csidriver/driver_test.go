package csidriver

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

func wantCode(t *testing.T, what string, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%s: got %v (%v), want %v", what, got, err, want)
	}
}

func TestResolveSize(t *testing.T) {
	tests := []struct {
		name                                  string
		required, limit, smallest, step, want int64
		code                                  codes.Code
	}{
		{"as asked", 5 * mib, 0, mib, mib, 5 * mib, codes.OK},
		{"rounded up", 5*mib + 1, 0, mib, mib, 6 * mib, codes.OK},
		{"rounded up to the limit", 5*mib + 1, 6 * mib, mib, mib, 6 * mib, codes.OK},
		{"rounding exceeds the limit", 5*mib + 1, 5*mib + 2, mib, mib, 0, codes.OutOfRange},
		{"too small a limit", 0, mib, 16 * mib, mib, 0, codes.OutOfRange},
		{"smallest", 1, 0, 16 * mib, mib, 16 * mib, codes.OK},
		{"default", 0, 0, 1, mib, gib, codes.OK},
		{"default under a limit", 0, 3*mib + 5, 1, mib, 3 * mib, codes.OK},
		{"limit below required", 2, 1, 1, 1, 0, codes.InvalidArgument},
		{"negative", -1, 0, 1, 1, 0, codes.InvalidArgument},
		{"huge", math.MaxInt64, 0, 1, mib, 0, codes.OutOfRange},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := resolveSize(tt.required, tt.limit, tt.smallest, tt.step)
			if got != tt.want || status.Code(err) != tt.code {
				t.Errorf("got %d, %v; want %d, %v", got, err, tt.want, tt.code)
			}
		})
	}
}

func TestOptions(t *testing.T) {
	for _, tt := range []struct {
		name string
		o    Options
		want string
	}{
		{"backend", Options{Backend: "zfs", BaseDir: "x"}, `"zfs": want one of btrfs, hostdir, loopfile, null`},
		{"base", Options{Backend: "hostdir"}, "needs a base directory"},
		{"capacity", Options{Backend: "null", Capacity: -1}, "negative"},
		{"injection", Options{Backend: "null", Inject: "rpcs: {Nope: {delay: 1s}}"}, "Nope"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if s, err := New(tt.o); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, %v; want an error with %q", s, err, tt.want)
			}
		})
	}
}

// TestIdempotency checks that a repeated request returns the same object, and that a different request with the same
// name is rejected.
func TestIdempotency(t *testing.T) {
	for _, backend := range Backends() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			p := start(t, Options{Backend: backend, PoolSize: gib})
			ctx := t.Context()
			request := func(change func(*csi.CreateVolumeRequest)) *csi.CreateVolumeRequest {
				r := &csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{mountCap("")},
					CapacityRange: &csi.CapacityRange{RequiredBytes: 32 * mib, LimitBytes: 64 * mib}}
				change(r)
				return r
			}
			same := func(*csi.CreateVolumeRequest) {}
			first := ok(p.CreateVolume(ctx, request(same)))(t).GetVolume()
			again := ok(p.CreateVolume(ctx, request(same)))(t).GetVolume()
			if first.GetVolumeId() != again.GetVolumeId() {
				t.Errorf("the same request made %s and %s", first.GetVolumeId(), again.GetVolumeId())
			}
			snap := p.snap("s", first.GetVolumeId())
			if again := p.snap("s", first.GetVolumeId()); again != snap {
				t.Errorf("the same request made %s and %s", snap, again)
			}
			_, err := p.CreateVolume(ctx, request(func(r *csi.CreateVolumeRequest) {
				r.CapacityRange.RequiredBytes, r.CapacityRange.LimitBytes = 65*mib, 0
			}))
			wantCode(t, "larger", err, codes.AlreadyExists)
			_, err = p.CreateVolume(ctx,
				request(func(r *csi.CreateVolumeRequest) { r.VolumeContentSource = fromSnapshot(snap) }))
			wantCode(t, "other source", err, codes.AlreadyExists)
			_, err = p.CreateVolume(ctx,
				request(func(r *csi.CreateVolumeRequest) { r.Parameters = map[string]string{"typo": "x"} }))
			wantCode(t, "unknown parameter", err, codes.InvalidArgument)
			_, err = p.CreateVolume(ctx, request(func(r *csi.CreateVolumeRequest) {
				r.Name, r.VolumeContentSource, r.CapacityRange = "b", fromSnapshot(snap), &csi.CapacityRange{RequiredBytes: mib, LimitBytes: 16 * mib}
			}))
			wantCode(t, "smaller than its source", err, codes.OutOfRange)
			for range 2 {
				ok(p.DeleteSnapshot(ctx, &csi.DeleteSnapshotRequest{SnapshotId: snap}))(t)
				ok(p.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: first.GetVolumeId()}))(t)
			}
		})
	}
}

// TestConcurrentCreate checks that many concurrent requests with the same name create one volume.
func TestConcurrentCreate(t *testing.T) {
	p := start(t, Options{Backend: "hostdir"})
	var (
		g   errgroup.Group
		mu  sync.Mutex
		ids = map[string]bool{}
	)
	for range 16 {
		g.Go(func() error {
			resp, err := p.CreateVolume(t.Context(),
				&csi.CreateVolumeRequest{Name: "a", VolumeCapabilities: []*csi.VolumeCapability{mountCap("")},
					CapacityRange: &csi.CapacityRange{RequiredBytes: mib}})
			mu.Lock()
			defer mu.Unlock()
			ids[resp.GetVolume().GetVolumeId()] = true
			return err
		})
	}
	if err := g.Wait(); err != nil || len(ids) != 1 {
		t.Errorf("got %d volumes, %v", len(ids), err)
	}
}

func TestCapacity(t *testing.T) {
	for _, backend := range Backends() {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			p := start(t, Options{Backend: backend, Capacity: 100 * mib, PoolSize: gib})
			ctx := t.Context()
			left := func(want int64) {
				t.Helper()
				if got := ok(p.GetCapacity(ctx, &csi.GetCapacityRequest{}))(t).GetAvailableCapacity(); got != want {
					t.Errorf("%d bytes are left, want %d", got, want)
				}
			}
			left(100 * mib)
			a := p.create("a", 40*mib, mountCap(""), nil, nil)
			p.create("b", 40*mib, mountCap(""), nil, nil)
			left(20 * mib)
			_, err := p.CreateVolume(ctx, &csi.CreateVolumeRequest{Name: "c",
				VolumeCapabilities: []*csi.VolumeCapability{mountCap("")},
				CapacityRange:      &csi.CapacityRange{RequiredBytes: 21 * mib}})
			wantCode(t, "create beyond capacity", err, codes.ResourceExhausted)
			_, err = p.ControllerExpandVolume(ctx,
				&csi.ControllerExpandVolumeRequest{VolumeId: a.id,
					CapacityRange: &csi.CapacityRange{RequiredBytes: 61 * mib}})
			wantCode(t, "expand beyond capacity", err, codes.ResourceExhausted)
			ok(p.ControllerExpandVolume(ctx, &csi.ControllerExpandVolumeRequest{VolumeId: a.id,
				CapacityRange: &csi.CapacityRange{RequiredBytes: 60 * mib}}))(t)
			left(0)
			ok(p.DeleteVolume(ctx, &csi.DeleteVolumeRequest{VolumeId: a.id}))(t)
			left(60 * mib)
			p.kill()
			p.run()
			left(60 * mib)
		})
	}
}

// TestPoolIsFinite checks that the size of the pool is the limit if no capacity is set.
func TestPoolIsFinite(t *testing.T) {
	for _, backend := range []string{"loopfile", "btrfs"} {
		t.Run(backend, func(t *testing.T) {
			p := start(t, Options{Backend: backend, PoolSize: 512 * mib})
			_, err := p.CreateVolume(t.Context(), &csi.CreateVolumeRequest{Name: "a",
				VolumeCapabilities: []*csi.VolumeCapability{mountCap("")},
				CapacityRange:      &csi.CapacityRange{RequiredBytes: gib}})
			wantCode(t, "larger than the pool", err, codes.ResourceExhausted)
		})
	}
}

func TestRounding(t *testing.T) {
	p := start(t, Options{Backend: "null", RoundTo: gib})
	v := p.create("a", gib+1, mountCap(""), nil, nil)
	get := func() int64 {
		return ok(p.ControllerGetVolume(t.Context(),
			&csi.ControllerGetVolumeRequest{VolumeId: v.id}))(t).GetVolume().GetCapacityBytes()
	}
	if got := get(); got != 2*gib {
		t.Errorf("created with %d bytes, want 2 GiB", got)
	}
	resp := ok(p.ControllerExpandVolume(t.Context(),
		&csi.ControllerExpandVolumeRequest{VolumeId: v.id,
			CapacityRange: &csi.CapacityRange{RequiredBytes: 2*gib + 1}}))(t)
	if resp.GetCapacityBytes() != 3*gib || get() != 3*gib {
		t.Errorf("expanded to %d bytes, want 3 GiB", resp.GetCapacityBytes())
	}
}

// TestListPages checks that a listing stays valid if volumes are deleted between its pages.
func TestListPages(t *testing.T) {
	p := start(t, Options{Backend: "null"})
	want := map[string]bool{}
	for _, name := range strings.Split("abcdefghij", "") {
		want[p.create(name, mib, mountCap(""), nil, nil).id] = true
	}
	got, token := map[string]bool{}, ""
	for {
		resp := ok(p.ListVolumes(t.Context(), &csi.ListVolumesRequest{MaxEntries: 3, StartingToken: token}))(t)
		for _, e := range resp.GetEntries() {
			got[e.GetVolume().GetVolumeId()] = true
		}
		if token = resp.GetNextToken(); token == "" {
			break
		}
		last := resp.GetEntries()[len(resp.GetEntries())-1].GetVolume().GetVolumeId()
		ok(p.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: last}))(t)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("pages (-want +got):\n%s", diff)
	}
}

// TestInjectedDistribution checks that the truth log has the injected distribution, that the calls took that long, and
// that the same seed injects the same delays.
func TestInjectedDistribution(t *testing.T) {
	const n = 1500
	o := Options{Backend: "null", Seed: 42, Inject: `rpcs: {CreateVolume: {delay: "4ms+exp(2ms)", stall: 2% of 60ms}}`}
	run := func() []Record {
		p := start(t, o)
		var g errgroup.Group
		g.SetLimit(64)
		for i := range n {
			g.Go(func() error {
				_, err := p.CreateVolume(t.Context(),
					&csi.CreateVolumeRequest{Name: string(rune('a'+i%26)) + time.Duration(i).String(),
						VolumeCapabilities: []*csi.VolumeCapability{mountCap("")}})
				return err
			})
		}
		if err := g.Wait(); err != nil {
			t.Fatal(err)
		}
		return p.truthOf("CreateVolume")
	}
	records := run()
	var injected, excess []time.Duration
	stalls := 0
	for _, r := range records {
		if r.Code != "OK" || r.Volume == "" || r.Name == "" {
			t.Fatalf("record %+v", r)
		}
		if strings.Contains(r.Injected, "stall") {
			stalls++
		}
		injected = append(injected, time.Duration(r.InjectedDelayNs))
		excess = append(excess, time.Duration(r.DurationNs-r.InjectedDelayNs))
	}
	slices.Sort(injected)
	slices.Sort(excess)
	if len(records) != n {
		t.Fatalf("%d records of %d calls", len(records), n)
	}
	// Without a stall, the quantile q of 4 ms + exp(2 ms) is 4 - 2·ln(1-q) ms. With 2 % of stalls, rank q corresponds
	// to q/0.98.
	for _, q := range []float64{0.1, 0.5, 0.9} {
		want := 4*time.Millisecond - time.Duration(2e6*math.Log(1-q/0.98))
		if got := injected[int(q*n)]; math.Abs(float64(got-want)) > 0.1*float64(want) {
			t.Errorf("quantile %g is %v, want %v", q, got, want)
		}
	}
	if sd := math.Sqrt(n * 0.02 * 0.98); math.Abs(float64(stalls)-n*0.02) > 5*sd {
		t.Errorf("%d stalls of %d calls at 2 %%", stalls, n)
	}
	if excess[0] < 0 || excess[n/2] > 5*time.Millisecond {
		t.Errorf("calls took %v to %v (median) longer than injected", excess[0], excess[n/2])
	}

	var again []time.Duration
	for _, r := range run() {
		again = append(again, time.Duration(r.InjectedDelayNs))
	}
	slices.Sort(again)
	if diff := cmp.Diff(injected, again); diff != "" {
		t.Errorf("the same seed injects something else:\n%s", diff)
	}
}

func TestInjectedFaults(t *testing.T) {
	p := start(t, Options{Backend: "null", Inject: `
rpcs:
  DeleteVolume: {error: 100% UNAVAILABLE}
  CreateSnapshot: {hang: 100%}
  ControllerExpandVolume: {error: 100% INTERNAL, when: after}
windows:
  - {after: 0s, for: 300ms, since: first, rpcs: [ControllerGetVolume]}`})
	v := p.create("a", mib, mountCap(""), nil, nil)

	_, err := p.DeleteVolume(t.Context(), &csi.DeleteVolumeRequest{VolumeId: v.id})
	wantCode(t, "error", err, codes.Unavailable)
	if len(status.Convert(err).Details()) == 0 {
		t.Error("the error has no details: it looks like that of a driver that has ended")
	}

	_, err = p.ControllerExpandVolume(t.Context(),
		&csi.ControllerExpandVolumeRequest{VolumeId: v.id, CapacityRange: &csi.CapacityRange{RequiredBytes: 2 * mib}})
	wantCode(t, "error after the work", err, codes.Internal)

	began := time.Now()
	got := ok(p.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: v.id}))(t).GetVolume()
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("a call in a stall window took %v, want 300ms or more", took)
	}
	if got.GetCapacityBytes() != 2*mib {
		t.Errorf("the volume has %d bytes: an error after the work must leave the work done", got.GetCapacityBytes())
	}

	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = p.CreateSnapshot(ctx, &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: v.id})
	wantCode(t, "hang", err, codes.DeadlineExceeded)

	waitFor(t, "the hung call's record", func() bool { return len(p.truthOf("CreateSnapshot")) == 1 })
	type fate struct{ Injected, Code string }
	want := map[string]fate{"DeleteVolume": {"error", "Unavailable"}, "CreateSnapshot": {"hang", "given up"},
		"ControllerExpandVolume": {"error", "Internal"}, "ControllerGetVolume": {"window", "OK"}}
	for rpc, w := range want {
		r := p.truthOf(rpc)[0]
		code := r.Code
		// The code depends on which of the client's two reasons arrives first.
		if code == "Canceled" || code == "DeadlineExceeded" {
			code = "given up"
		}
		if diff := cmp.Diff(w, fate{r.Injected, code}); diff != "" {
			t.Errorf("%s (-want +got):\n%s", rpc, diff)
		}
	}
}

// TestHungCallDoesNotPreventStopping checks that a driver with a hanging call terminates and keeps its volumes.
func TestHungCallDoesNotPreventStopping(t *testing.T) {
	p := start(t, Options{Backend: "null", Inject: "rpcs: {CreateSnapshot: {hang: 100%}}"})
	v := p.create("a", mib, mountCap(""), nil, nil)
	done := make(chan error, 1)
	go func() {
		_, err := p.CreateSnapshot(t.Context(), &csi.CreateSnapshotRequest{Name: "s", SourceVolumeId: v.id})
		done <- err
	}()
	time.Sleep(50 * time.Millisecond)
	began := time.Now()
	p.terminate()
	if took := time.Since(began); took >= stopTimeout {
		t.Errorf("stopping took %v", took)
	}
	wantCode(t, "the hung call", <-done, codes.Unavailable)
	p.run()
	ok(p.ControllerGetVolume(t.Context(), &csi.ControllerGetVolumeRequest{VolumeId: v.id}))(t)
}

func TestOneDriverPerBase(t *testing.T) {
	t.Parallel()
	p := start(t, Options{Backend: "hostdir"})
	if _, err := New(p.config.Options); err == nil || !strings.Contains(err.Error(), "in use by another driver") {
		t.Errorf("a second driver on the same base directory: %v", err)
	}
	if err := Destroy(p.config.Options); err == nil || !strings.Contains(err.Error(), "in use by another driver") {
		t.Errorf("destroying under a running driver: %v", err)
	}
	other, err := New(Options{Backend: "null"})
	if err != nil {
		t.Fatal(err)
	}
	defer shut(t, other)
	if err := other.Serve(t.Context(), p.config.Socket); err == nil ||
		!strings.Contains(err.Error(), "another process is serving") {
		t.Errorf("a second driver on the same socket: %v", err)
	}
}

func TestDestroyTwice(t *testing.T) {
	for _, backend := range Backends() {
		t.Run(backend, func(t *testing.T) {
			p := start(t, Options{Backend: backend, PoolSize: gib})
			p.create("a", 32*mib, mountCap(""), nil, nil).use().write("f", "x")
			p.kill()
			for range 2 {
				if err := Destroy(p.config.Options); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestRecoverHalfDone checks that a restarted driver undoes unfinished work.
func TestRecoverHalfDone(t *testing.T) {
	p := start(t, Options{Backend: "hostdir"})
	v := p.create("a", mib, mountCap(""), nil, nil)
	p.kill()
	base := p.config.BaseDir
	vols, err1 := openTable[volume](filepath.Join(base, "state/volumes.jsonl"), true)
	snaps, err2 := openTable[snapshot](filepath.Join(base, "state/snapshots.jsonl"), true)
	err := errors.Join(err1, err2,
		vols.put("vol-half", volume{ID: "vol-half", Phase: creating, Size: mib}),
		vols.put("vol-gone", volume{ID: "vol-gone", Phase: deleting, Size: mib}),
		snaps.put("snap-half", snapshot{ID: "snap-half", Phase: creating, Volume: v.id}),
		snaps.put("snap-orphan", snapshot{ID: "snap-orphan", Volume: v.id, Group: "group-never-made"}),
		vols.close(), snaps.close(), appendTo(filepath.Join(base, "state/volumes.jsonl"),
			`{"ID":"vol-torn","Row":{"ID":"vol-to`))
	for _, path := range []string{"volumes/vol-half", "volumes/vol-gone", "snapshots/snap-half",
		"snapshots/snap-orphan"} {
		err = errors.Join(err, os.MkdirAll(filepath.Join(base, path, "x"), 0o755))
	}
	if err != nil {
		t.Fatal(err)
	}
	p.run()
	var got []string
	for _, glob := range []string{"volumes/*", "snapshots/*"} {
		paths, _ := filepath.Glob(filepath.Join(base, glob))
		for _, path := range paths {
			got = append(got, strings.TrimPrefix(path, base+"/"))
		}
	}
	if diff := cmp.Diff([]string{"volumes/" + v.id}, got); diff != "" {
		t.Errorf("after recovery (-want +got):\n%s", diff)
	}
	if entries := ok(p.ListVolumes(t.Context(), &csi.ListVolumesRequest{}))(t).GetEntries(); len(entries) != 1 {
		t.Errorf("%d volumes are listed, want 1", len(entries))
	}
}

func appendTo(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(text)
	return errors.Join(err, f.Close())
}

// TestJournal checks that records survive a restart, that the history is bounded, and that damage is reported.
func TestJournal(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "x.jsonl")
	open := func() *table[volume] {
		t.Helper()
		tab, err := openTable[volume](path, false)
		if err != nil {
			t.Fatal(err)
		}
		return tab
	}
	tab := open()
	for i := range 2*spareLines + 10 {
		if err := tab.put("v", volume{ID: "v", Size: int64(i)}); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Size() > 100*spareLines {
		t.Errorf("the journal has %d bytes after %d changes of one record (%v)", info.Size(), 2*spareLines, err)
	}
	if err := errors.Join(tab.put("gone", volume{}), tab.delete("gone"), tab.close()); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]volume{{ID: "v", Size: 2*spareLines + 9}}, open().all()); diff != "" {
		t.Errorf("read again (-want +got):\n%s", diff)
	}
	if err := appendTo(path, "nonsense\n"); err != nil {
		t.Fatal(err)
	}
	if _, err := openTable[volume](path, false); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged journal gives %v", err)
	}
}

// BenchmarkNull measures the cost of the harness: the creation and deletion of a volume through the socket.
func BenchmarkNull(b *testing.B) {
	p := start(b, Options{Backend: "null"})
	var n atomic.Int64
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			resp, err := p.CreateVolume(b.Context(), &csi.CreateVolumeRequest{Name: strconv.FormatInt(n.Add(1), 10),
				VolumeCapabilities: []*csi.VolumeCapability{mountCap("")}})
			if err == nil {
				_, err = p.DeleteVolume(b.Context(), &csi.DeleteVolumeRequest{VolumeId: resp.GetVolume().GetVolumeId()})
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
}
