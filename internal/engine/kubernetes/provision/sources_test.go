package provision

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/api"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/names"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/pods"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/tracker"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/watch"
	"github.com/cnsbench/cnsbench/internal/op"
)

// sized returns a resource list with this storage.
func sized(bytes int64) corev1.ResourceList {
	return corev1.ResourceList{corev1.ResourceStorage: *resource.NewQuantity(bytes, resource.BinarySI)}
}

// A clone has at least the current size, or the claimed size, of its source, not its size when the
// op was planned; a restored volume has that of the snapshot.
func TestSizeOfSource(t *testing.T) {
	const mi = 1 << 20
	planned := engine.Object{Kind: engine.VolumeObject, Name: "v-0", Bytes: 400 * mi}
	fromSnapshot := engine.Object{Kind: engine.SnapshotObject, Name: "s-0", Bytes: 400 * mi}
	tests := []struct {
		name                string
		claimed, has, asked int64 // of the source's claim; asked by the new claim
		restore             int64 // restoreSize; 0: a clone
		want                int64
	}{
		{"as planned", 400 * mi, 400 * mi, 64 * mi, 0, 400 * mi},
		{"grown since", 500 * mi, 500 * mi, 400 * mi, 0, 500 * mi},
		{"growing", 500 * mi, 400 * mi, 400 * mi, 0, 500 * mi},
		{"the driver gave more than was asked for", 400 * mi, 512 * mi, 400 * mi, 0, 512 * mi},
		{"more is asked for", 500 * mi, 500 * mi, 600 * mi, 0, 600 * mi},
		{"a snapshot of a volume that has grown since it was planned", 500 * mi, 500 * mi, 400 * mi, 500 * mi,
			500 * mi},
		{"a snapshot of before the volume grew", 500 * mi, 500 * mi, 64 * mi, 300 * mi, 300 * mi},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := New(pods.New(core.New(core.Options{Namespace: "ns"})))
			e.Tracker, e.Session.RunID = tracker.New("ns"), "r1"
			e.StoreVolume(&pods.Volume{Name: e.Name("v-0"), Object: planned})
			e.storeSnapshot(&snapshot{name: e.Name("s-0"), object: fromSnapshot})
			source := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: e.Name("v-0")}}
			source.Spec.Resources.Requests, source.Status.Capacity = sized(tt.claimed), sized(tt.has)
			e.Tracker.See(watch.Event{Object: source})
			want := &engine.Volume{FromVolume: &planned}
			if tt.restore > 0 {
				want = &engine.Volume{FromSnapshot: &fromSnapshot}
				vs := &api.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: e.Name("s-0")}}
				vs.Status = &api.SnapshotStatus{RestoreSize: resource.NewQuantity(tt.restore, resource.BinarySI)}
				e.Tracker.See(watch.Event{Object: vs})
			}
			spec := corev1.PersistentVolumeClaimSpec{Resources: corev1.VolumeResourceRequirements{Requests: sized(tt.asked)}}
			if err := e.setSource(&spec, &engine.Object{}, want); err != nil {
				t.Fatal(err)
			}
			if got := spec.Resources.Requests[corev1.ResourceStorage]; got.Value() != tt.want {
				t.Errorf("asks for %d MiB, want %d", got.Value()/mi, tt.want/mi)
			}
		})
	}
}

// The members of a group have their own sizes and handles.
func TestSizesOfGroupMembers(t *testing.T) {
	e := New(pods.New(core.New(core.Options{Namespace: "ns"})))
	e.Tracker, e.Session.RunID = tracker.New("ns"), "r1"
	e.Session.Clock = op.NewClock()
	c := e.newSnapshotCreation(op.NewTrace(e.Session.Clock))
	defer c.close()
	for name, size := range map[string]string{"a": "300Mi", "b": "500Mi"} {
		c.follow(names.Raw+name, name)
		ready, handle, q := true, "h-"+name, resource.MustParse(size)
		at := metav1.Now()
		e.Tracker.See(watch.Event{Object: &api.VolumeSnapshotContent{
			Spec:   api.VolumeSnapshotContentSpec{VolumeSnapshotRef: corev1.ObjectReference{Namespace: "ns", Name: name}},
			Status: &api.SnapshotContentStatus{SnapshotHandle: &handle}}})
		e.Tracker.See(watch.Event{Object: &api.VolumeSnapshot{ObjectMeta: metav1.ObjectMeta{Name: name},
			Status: &api.SnapshotStatus{ReadyToUse: &ready, CreationTime: &at, RestoreSize: &q}}})
	}
	if err := c.wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, mi := range map[string]int64{"a": 300, "b": 500} {
		o := engine.Object{Kind: engine.SnapshotObject, Name: names.Raw + name}
		c.describe(&o, engine.Object{Bytes: 400 << 20})
		if o.Bytes != mi<<20 || o.Handle != "h-"+name {
			t.Errorf("%+v, want %d MiB", o, mi)
		}
	}
}

// A claim that will never be provisioned fails its op at once, with the provisioner's message, and
// leaves no possible orphan. Other failures are waited out.
func TestRefusedClaim(t *testing.T) {
	const class = `failed to provision volume with StorageClass "fast": `
	const source = class + "error getting handle for DataSource Type "
	const rpc = "rpc error: code = "
	tests := []struct{ name, message, code string }{
		{"the clone is smaller than its source", source + "PersistentVolumeClaim by Name cnsb-r1-v-0: " +
			"error, new PVC request must be greater than or equal in size to the specified PVC data source, " +
			"requested 419430400 but source is 524288000", "OutOfRange"},
		{"the volume is smaller than its snapshot", source + "VolumeSnapshot by Name s: " +
			"requested volume size 1 is less than the size 2 for the source snapshot s", "OutOfRange"},
		{"the driver refuses the size", class + rpc + "OutOfRange desc = too small", "OutOfRange"},
		{"infeasible", "Volume provisioning failed with infeasible error. Retries will be delayed. " + rpc +
			"InvalidArgument desc = no such pool", "InvalidArgument"},
		{"the source is not there yet", source + "VolumeSnapshot by Name s: error getting snapshot s from api server",
			""},
		{"the pool is full for now", class + rpc + "ResourceExhausted desc = full", ""},
		{"nobody knows", class + rpc + "DeadlineExceeded desc = context deadline exceeded", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			e := New(pods.New(core.New(core.Options{Namespace: "ns"})))
			e.Tracker, e.Session.RunID = tracker.New("ns"), "r1"
			e.Session.Clock = op.NewClock()
			pr := e.NewProvision()
			pr.AddClaim("c-0", false)
			name := e.Name("c-0")
			at := e.Session.Clock.Now() + 1
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name, UID: "u"}}
			e.Tracker.See(watch.Event{Object: claim, At: at})
			e.Tracker.See(watch.Event{At: at,
				Object: &corev1.Event{Type: corev1.EventTypeWarning, Reason: "ProvisioningFailed",
					Message: tt.message, InvolvedObject: corev1.ObjectReference{Name: name, UID: "u"}}})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if tt.code == "" {
				cancel() // what is queued is still read
			}
			tr := op.NewTrace(e.Session.Clock)
			err := pr.Wait(ctx, tr)
			var coded *engine.Error
			if !errors.As(err, &coded) || !strings.Contains(coded.Message, tt.message) {
				t.Fatalf("%v, want the words of the provisioner", err)
			}
			if waits := coded.Code == "Waiting"; waits != (tt.code == "") || !waits && coded.Code != tt.code {
				t.Errorf("code %s, want %q", coded.Code, tt.code)
			}
			e.Attempts.DeletedUnbound("c-0")
			for _, f := range e.Attempts.Findings(nil) {
				if tt.code != "" && f.Name != "retried" {
					t.Errorf("of a refusal: %s: %s", f.Name, f.Evidence)
				}
			}
		})
	}
}
