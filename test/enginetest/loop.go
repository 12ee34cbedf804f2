package enginetest

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
)

const loopText = `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: loop}
spec:
  actions:
    - {name: v, createObjSpec: {count: 2, volume: {storageClass: "SC", size: SIZE, attach: true}}}
    - {name: snap, rateName: once, snapshotSpec: {actionName: v, snapshotClass: "VSC", select: newest}}
    - {name: gone, rateName: once, deleteSpec: {actionName: v, select: oldest}}
  rates: [{name: once, limit: 1, constantRateSpec: {interval: 10ms}}]
`

// testLoop runs a Benchmark as the product does: with the engine itself, so that the loop finds its optional
// interfaces.
func testLoop(t *testing.T, s *session) {
	class, snapshots := s.target.StorageClass, s.target.SnapshotClass
	text := strings.NewReplacer("VSC", snapshots.Name, "SC", class.Name, "SIZE", s.target.Size).Replace(loopText)
	if class.Provisioner != "" {
		class.APIVersion, class.Kind = "storage.k8s.io/v1", "StorageClass"
		b, err := json.Marshal(class)
		if err != nil {
			t.Fatal(err)
		}
		text += "---\n" + string(b) + "\n"
	}
	e := s.target.New(t)
	p, problems := plan.Load(t.Context(), plan.Input{Files: []plan.File{{Name: "loop.yaml", Data: []byte(text)}},
		Capabilities: e.Capabilities(), Endpoints: map[string]string{"": "/s"}})
	if p == nil || len(problems) > 0 {
		t.Fatalf("problems: %v", problems)
	}
	given := s.current
	given.RunID, given.Dir, given.Ledger, given.Needs = given.RunID+"l", t.TempDir(), &Ledger{}, p.Needs
	given.Identity = owned.Identity{}
	var rec Recorder
	var described map[string]any
	result := run.Run(t.Context(), t.Context(), run.Config{RunID: given.RunID, Plan: p, Engine: e, Clock: s.clock,
		Record: &rec, RawDir: t.TempDir(), Observer: Unobserved{}, Session: given,
		Opened: func(ctx context.Context) (err error) { described, err = e.Environment(ctx); return err }})
	if result.State != bundle.Complete || result.Leftovers != nil || len(described) == 0 {
		t.Errorf("%s: %s; left: %v; environment %v", result.State, result.Reason, result.Leftovers, described)
	}
	done := map[string]int{}
	for _, o := range rec.Ops() {
		CheckMilestones(t, o)
		if o.Outcome != op.OK {
			t.Errorf("%s-%d: %s %s: %s", o.Action, o.Instance, o.Outcome, o.Code, o.Message)
		}
		done[o.Action]++
	}
	if done["v"] != 2 || done["snap"] != 1 || done["gone"] != 1 {
		t.Errorf("ops by action: %v", done)
	}
	if open := given.Ledger.Open(); len(open) > 0 {
		t.Errorf("the ledger still lists %v", open)
	}
}

// Recorder keeps the ops of a run in memory and discards everything else. The zero Recorder is empty; it is
// safe for concurrent use.
type Recorder struct {
	run.Recorder
	mu  sync.Mutex
	ops []op.Op
}

// Ops lists the recorded ops in the order of dispatch.
func (r *Recorder) Ops() []op.Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedFunc(slices.Values(r.ops), func(a, b op.Op) int { return int(a.ID - b.ID) })
}

// Op keeps o.
func (r *Recorder) Op(o op.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ops = append(r.ops, o)
}

// Started does nothing.
func (r *Recorder) Started(op.InstanceStart) {}

// Ended does nothing.
func (r *Recorder) Ended(op.InstanceEnd) {}

// Sample does nothing.
func (r *Recorder) Sample(op.Sample) {}

// Machine is of no interest.
func (r *Recorder) Machine(op.Machine) {}

// Volume is of no interest.
func (r *Recorder) Volume(op.VolumeReading) {}

// Canary does nothing.
func (r *Recorder) Canary(string, string, []op.CanaryIO) {}

// Raw does nothing.
func (r *Recorder) Raw(string, string, string, []byte) error { return nil }

// Flush does nothing.
func (r *Recorder) Flush() error { return nil }

// Log does nothing.
func (r *Recorder) Log(op.Time, string, string) {}

// Unobserved is an Observer that does nothing.
type Unobserved struct{}

// Phase does nothing.
func (Unobserved) Phase(run.Phase) {}

// OpEnded does nothing.
func (Unobserved) OpEnded(*op.Op) {}

// Log does nothing.
func (Unobserved) Log(string, string) {}
