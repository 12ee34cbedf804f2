//go:build e2e

package e2e

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/cnsbench/cnsbench/internal/integrity"
	"github.com/cnsbench/cnsbench/internal/integrity/volume"
)

// TestIntegrity writes at full speed while the volume is snapshotted, restored, cloned, resized, reattached and its
// writer killed, on drivers whose snapshots are of one instant.
func TestIntegrity(t *testing.T) {
	needRoot(t)
	for _, backend := range []string{"btrfs", "loopfile-xfs"} {
		t.Run(backend, func(t *testing.T) {
			t.Parallel()
			b := newBox(t)
			b.bench(head+`spec:
  actions:
    - {name: writer, createObjSpec: {workload: integrity, vars: {storageClass: `+backend+`, volumeSize: 512Mi,
       fileSize: 4Mi, duration: 4}}}
    - {name: snap, rateName: r, snapshotSpec: {actionName: writer}, then: [back, look, drop]}
    - {name: back, restoreSpec: {actionName: snap}}
    - {name: look, checkSpec: {actionName: back}}
    - {name: drop, deleteSpec: {actionName: snap}}
    - {name: copy, startAfter: 500ms, cloneSpec: {actionName: writer, attach: true}, then: [second, third]}
    - {name: second, cloneSpec: {actionName: copy}}
    - {name: third, checkSpec: {actionName: second}}
    - {name: die, startAfter: 1s, killSpec: {actionName: writer, signal: SIGKILL}}
    - {name: grow, startAfter: 2s, resizeSpec: {actionName: writer, factor: 2}}
    - {name: move, startAfter: 3s, reattachSpec: {actionName: writer}}
  rates: [{name: r, startAfter: 300ms, limit: 4, constantRateSpec: {interval: 500ms}}]
  slos:
    - {name: snapshots, expr: value(look.violations) == 0.0}
    - {name: clones, expr: value(third.violations) == 0.0}
    - {name: volume, expr: value(writer.violations) == 0.0}
`).wants(t, 0)
			all := b.scalars()
			for _, want := range []string{"look-0 blocks=1024 1", "look-3 checks=1 1", "third-0 blocks=1024 1", "look-0 age="} {
				if !strings.Contains(all, want) {
					t.Errorf("no %s in %s", want, all)
				}
			}
			if n := strings.Count(all, "writer-0 checks="); n != 3 { // of a writer and its two replacements
				t.Errorf("%d containers of the writer checked their volume: %s", n, all)
			}
		})
	}
}

// TestIntegrityDevice does the same with a raw block device.
func TestIntegrityDevice(t *testing.T) {
	needRoot(t)
	t.Parallel()
	b := newBox(t)
	b.bench(head+`spec:
  actions:
    - {name: writer, createObjSpec: {workload: integrity-block, vars: {storageClass: loopfile, volumeSize: 64Mi,
       fileSize: 4Mi, duration: 3}}}
    - {name: snap, rateName: r, snapshotSpec: {actionName: writer}, then: [back, look]}
    - {name: back, restoreSpec: {actionName: snap}}
    - {name: look, checkSpec: {actionName: back}}
    - {name: die, startAfter: 1s, killSpec: {actionName: writer, signal: SIGKILL}}
  rates: [{name: r, startAfter: 300ms, limit: 3, constantRateSpec: {interval: 500ms}}]
  slos:
    - {name: snapshots, expr: value(look.violations) == 0.0}
    - {name: volume, expr: value(writer.violations) == 0.0}
`).wants(t, 0)
	if all := b.scalars(); !strings.Contains(all, "look-2 blocks=1024 1") {
		t.Error(all)
	}
}

// TestIntegrityLies has a driver damage each snapshot in another way.
func TestIntegrityLies(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	f := b.foreignDriver("hostdir")
	l := &liar{box: b, to: f.conn, base: b.in("driver", "base")}
	socket := l.serve()
	r := b.bench(head+`spec:
  seed: 3
  actions:
    - {name: writer, createObjSpec: {workload: integrity, vars: {storageClass: sut, fileSize: 1Mi, rate: 40, syncEvery: 4,
       duration: 6}}}
    - {name: snap, rateName: r, snapshotSpec: {actionName: writer}, then: [back, look]}
    - {name: back, restoreSpec: {actionName: snap}}
    - {name: look, checkSpec: {actionName: back}}
  rates: [{name: r, startAfter: 1s, limit: 6, constantRateSpec: {interval: 700ms}}]
  slos: [{name: intact, expr: value(look.violations) == 0.0}, {name: kept, expr: value(writer.violations) == 0.0}]
`, "--csi-endpoint", socket).wants(t, 3)
	all := b.scalars()
	for instance, kind := range []integrity.Kind{integrity.KindStale, integrity.KindTorn, integrity.KindMisplaced,
		integrity.KindForeign, integrity.KindLost, integrity.KindLate} {
		none := strings.Replace("look-N ", "N", string(rune('0'+instance)), 1) + string(kind) + "=0 1"
		if !strings.Contains(all, strings.TrimSuffix(none, "0 1")) || strings.Contains(all, none) {
			t.Errorf("%s was not found in snapshot %d: %s", kind, instance, all)
		}
	}
	if _, evidence := b.flagOf("integrityViolated"); !strings.Contains(evidence, "more checks") {
		t.Errorf("flag: %q\n%v", evidence, r)
	}
}

// liar passes calls on to a CSI driver, and damages what it has made.
type liar struct {
	*box
	to    *grpc.ClientConn
	base  string // folder of the driver hostdir
	count int    // snapshots
	first string // the first snapshot
	later string // the snapshot that has yet to be replaced
	from  string // by this volume
}

// frame is a message that is passed on as it is.
type frame struct{ bytes []byte }

type rawCodec struct{}

func (rawCodec) Name() string                  { return "proto" }
func (rawCodec) Marshal(v any) ([]byte, error) { return v.(*frame).bytes, nil }
func (rawCodec) Unmarshal(b []byte, v any) error {
	v.(*frame).bytes = append([]byte{}, b...)
	return nil
}

func (l *liar) serve() (socket string) {
	l.Helper()
	socket = l.in("liar.sock")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		l.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(rawCodec{}), grpc.Creds(insecure.NewCredentials()),
		grpc.UnknownServiceHandler(l.pass))
	go func() { _ = server.Serve(listener) }()
	l.Cleanup(server.Stop)
	return socket
}

// pass passes one call on.
func (l *liar) pass(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var request, answer frame
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	if method == csi.Controller_CreateVolume_FullMethodName && l.later != "" {
		time.Sleep(300 * time.Millisecond) // writes, and their syncs
		if err := copyFile(l.from, l.later); err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	if err := l.to.Invoke(stream.Context(), method, &request, &answer, grpc.ForceCodec(rawCodec{})); err != nil {
		return err
	}
	if method == csi.Controller_CreateSnapshot_FullMethodName {
		var made csi.CreateSnapshotResponse
		err := proto.Unmarshal(answer.bytes, &made)
		if err == nil {
			err = l.damage(stream.Context(), made.GetSnapshot())
		}
		if err != nil {
			return status.Error(codes.Internal, err.Error())
		}
	}
	return stream.SendMsg(&answer)
}

// damage changes the blocks of a snapshot, or chooses it to be replaced later.
func (l *liar) damage(ctx context.Context, s *csi.Snapshot) error {
	dir := filepath.Join(l.base, "snapshots", s.GetSnapshotId())
	path := filepath.Join(dir, volume.Name)
	report, err := volume.Check(ctx, dir)
	if err != nil || report.Checked == 0 {
		return errors.Join(err, errors.New("no blocks"))
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	of := report.Stream
	synced := of.Floor(report.Newest)
	at := of.At(synced) * int64(of.BlockSize)
	older, other := make([]byte, of.BlockSize), make([]byte, of.BlockSize)
	of.Encode(older, of.Last(of.At(synced), synced-1))
	l.count++
	switch l.count {
	case 1: // a synced write is not there
		l.first = path
		_, err = f.WriteAt(older, at)
	case 2: // half of it is
		_, err = f.WriteAt(older[:of.BlockSize/2], at)
	case 3: // two blocks change places
		_, err = f.ReadAt(other, (at+int64(of.BlockSize))%(of.Blocks*int64(of.BlockSize)))
		if err == nil {
			_, err = f.WriteAt(other, at)
		}
	case 4: // a block of another volume
		foreign := of
		foreign.ID++
		foreign.Encode(other, synced)
		_, err = f.WriteAt(other, at)
	case 5: // the state of the first snapshot
		err = copyFile(l.first, path)
	case 6: // a later state
		l.from, l.later = filepath.Join(l.base, "volumes", s.GetSourceVolumeId(), volume.Name), path
	}
	return err
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
