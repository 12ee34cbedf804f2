package local_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/agenttest"
	"github.com/cnsbench/cnsbench/test/awkwarddriver"
)

// attached returns a request for a volume that is attached.
func attached(name string, from *engine.Object) engine.Request {
	r := volumeRequest(name, nil)
	r.Volume.FromSnapshot, r.Volume.Attach = from, true
	return r
}

func snapshotRequest(name string, of engine.Object) engine.Request {
	return engine.Request{Name: name, Kind: op.Snapshot, Target: of,
		Snapshot: &engine.Snapshot{Sources: []engine.Object{of}}}
}

// TestLies checks that an op whose driver gives an answer that cannot be true fails, names the driver, and that what
// the driver has made is removed all the same.
func TestLies(t *testing.T) {
	tests := []struct {
		name, flag string
		do         func(r *foreignRun) error // the op that meets the lie
		want       string
		left       bool // the driver has an object of which it has not told the ID
	}{
		{"a smaller volume", "-lie=CreateVolume=capacity", func(r *foreignRun) error {
			_, _, err := r.do(volumeRequest("v", nil))
			return err
		}, "CreateVolume: driver awkward.csi.example.com is at fault: it answered OK, but the volume has 33554432 bytes of " +
			"the 67108864 requested", false},
		{"a volume without an ID", "-lie=CreateVolume=noID", func(r *foreignRun) error {
			_, _, err := r.do(volumeRequest("v", nil))
			return err
		}, "but the volume has no ID", true},
		{"two volumes with one ID", "-lie=CreateVolume=sameID", func(r *foreignRun) error {
			if _, _, err := r.do(volumeRequest("v", nil)); err != nil {
				return fmt.Errorf("the first: %w", err)
			}
			_, _, err := r.do(volumeRequest("w", nil))
			return err
		}, "is the ID of volume v already", true},
		{"a restored volume without its source", "-lie=CreateVolume=source", func(r *foreignRun) error {
			_, _, err := r.do(attached("w", r.snapshotOf("v")))
			return err
		}, "but the volume is not a copy of s", false},
		{"a snapshot without an ID", "-lie=CreateSnapshot=noID", func(r *foreignRun) error {
			_, _, err := r.do(snapshotRequest("s", r.volume("v")))
			return err
		}, "but the snapshot has no ID", true},
		{"two snapshots with one ID", "-lie=CreateSnapshot=sameID", func(r *foreignRun) error {
			v := r.volume("v")
			if _, _, err := r.do(snapshotRequest("s", v)); err != nil {
				return fmt.Errorf("the first: %w", err)
			}
			_, _, err := r.do(snapshotRequest("t", v))
			return err
		}, "is the ID of snapshot s already", true},
		{"a snapshot of another volume", "-lie=CreateSnapshot=source", func(r *foreignRun) error {
			_, _, err := r.do(snapshotRequest("s", r.volume("v")))
			return err
		}, "-other\", requested was ", false},
		{"a snapshot that is ready no more", "-lie=ListSnapshots=notReady",
			func(r *foreignRun) error {
				s := r.snapshotOf("v")
				larger := attached("w", s)
				larger.Volume.Claim.Spec.Resources.Requests[corev1.ResourceStorage] = resource.MustParse("4Pi")
				_, _, err := r.do(larger)
				return err
			}, "it stated snapshot s as ready to use, and now as not ready", false},
		{"a volume that is published before it is there", "-lie=NodePublishVolume=early",
			func(r *foreignRun) error {
				_, _, err := r.do(attached("v", nil))
				return err
			}, "NodePublishVolume: driver awkward.csi.example.com is at fault: it answered OK, but there is nothing at ", false},
		{"an expansion to less", "-lie=ControllerExpandVolume=capacity", func(r *foreignRun) error {
			v := r.volume("v")
			_, _, err := r.do(engine.Request{Name: "r", Kind: op.Resize, Target: v,
				Resize: &engine.Resize{Bytes: 4 * v.Bytes}})
			return err
		}, "ControllerExpandVolume: driver awkward.csi.example.com is at fault", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d := serveAwkward(t, "", tt.flag)
			r := openForeign(t, d.socket)
			err := tt.do(r)
			var failure *engine.Error
			if !errors.As(err, &failure) || failure.Code != "DriverFault" || !strings.Contains(failure.Message, tt.want) {
				t.Errorf("got %v, want a DriverFault with %q", err, tt.want)
			}
			err = r.Teardown(t.Context(), r.ledger)
			if err != nil && !tt.left {
				t.Error(err)
			}
			if left, err := awkwarddriver.Left(t.Context(), d.socket); err != nil || (len(left) > 0) != tt.left {
				t.Errorf("the driver has %v, %v", left, err)
			}
		})
	}
}

// volume creates a volume without a lie.
func (r *foreignRun) volume(name string) engine.Object {
	r.t.Helper()
	_, v, err := r.do(volumeRequest(name, nil))
	if err != nil {
		r.t.Fatal(err)
	}
	return v
}

// TestRestoreDuringDeletion checks that a driver is not said to be at fault for a snapshot that the run deletes while it
// is restored. The driver answers DeleteSnapshot a second after it has deleted the snapshot.
func TestRestoreDuringDeletion(t *testing.T) {
	t.Parallel()
	d := startDriver(t, "null", "--inject", "rpcs: {DeleteSnapshot: {delay: 1s, when: after}}")
	r := openForeign(t, d.socket)
	s := r.snapshotOf("v")
	deleted := make(chan error, 1)
	go func() {
		_, _, err := r.do(engine.Request{Name: "d", Kind: op.Delete, Target: *s})
		deleted <- err
	}()
	agenttest.Eventually(t, "the driver has deleted the snapshot", func() bool {
		_, snapshots := list(t, d)
		return len(snapshots) == 0
	})
	_, _, err := r.do(attached("w", s))
	var failure *engine.Error
	if err == nil || errors.As(err, &failure) && failure.Code == "DriverFault" {
		t.Errorf("the restore: %v, want an error that does not accuse the driver", err)
	}
	if err := <-deleted; err != nil {
		t.Errorf("the deletion: %v", err)
	}
	if err := r.Teardown(t.Context(), r.ledger); err != nil {
		t.Error(err)
	}
}

// snapshotOf creates a volume and a snapshot of it, s.
func (r *foreignRun) snapshotOf(volume string) *engine.Object {
	r.t.Helper()
	_, s, err := r.do(snapshotRequest("s", r.volume(volume)))
	if err != nil {
		r.t.Fatal(err)
	}
	return &s
}
