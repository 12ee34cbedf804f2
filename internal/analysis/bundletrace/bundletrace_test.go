package bundletrace

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/yaml"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/trace"
)

const spec = `
metadata: {name: b}
spec:
  actions:
    - {name: v, createObjSpec: {volume: {storageClass: sc, size: 1Gi}}}
    - {name: s, snapshotSpec: {actionName: v, snapshotClass: snap}}
    - {name: g, resizeSpec: {actionName: v, factor: 2}}
    - {name: d, deleteSpec: {actionName: s}}
`

// A trace has the ops of a bundle after the barrier, with the class and size that their actions request; what was
// created before the barrier exists at the start.
func TestRead(t *testing.T) {
	var b v1alpha1.Benchmark
	if err := yaml.Unmarshal([]byte(spec), &b); err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	clock := op.NewClock()
	w, err := bundle.Create(dir, bundle.Run{ID: "r", Name: "b", Spec: text, BarrierAt: op.Never, EndedAt: op.Never,
		Clock: bundle.ClockInfo{Start: clock.Start()}})
	if err != nil {
		t.Fatal(err)
	}
	const second = op.Time(time.Second)
	add := func(kind op.Kind, action, target string, started, ended op.Time) {
		w.Op(op.Op{Kind: kind, Action: action, Target: target, Intended: started, Started: started, Ended: ended,
			Outcome: op.OK})
	}
	add(op.Create, "v", "v-0", 1*second, 2*second)
	add(op.Snapshot, "s", "v-0", 11*second, 12*second)
	add(op.Resize, "g", "v-0", 13*second, 15*second)
	add(op.Delete, "d", "s-0", 16*second, 17*second)
	err = w.Close(func(r *bundle.Run) { r.State, r.BarrierAt, r.EndedAt = bundle.Complete, 10*second, 20*second })
	if err != nil {
		t.Fatal(err)
	}
	got, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	const ns, gib = int64(time.Second), int64(1) << 30
	want := []trace.Record{
		{Op: trace.Exists, Kind: trace.Volume, Object: "v-0", Class: "sc", Size: gib, Duration: trace.Unknown},
		{Time: 1 * ns, Op: trace.Snapshot, Kind: trace.Snapshots, Object: "s-0", Source: "v-0", Class: "snap",
			Outcome: "ok", Duration: ns},
		{Time: 3 * ns, Op: trace.Resize, Kind: trace.Volume, Object: "v-0", Size: 2 * gib, Outcome: "ok",
			Duration: 2 * ns},
		{Time: 6 * ns, Op: trace.Delete, Kind: trace.Snapshots, Object: "s-0", Outcome: "ok", Duration: ns},
		{Time: 10 * ns, Op: trace.End, Duration: trace.Unknown},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
