package enginetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

func testVolume(t *testing.T, s *session) {
	o, v := s.must(engine.Request{Name: "v-0", Action: "v",
		Volume: &engine.Volume{Claim: s.claim("v-0"), Attach: true}})
	s.inOrder(o, op.Provisioned, op.Published, op.FirstWrite, op.Ready)
	if v.Kind != engine.VolumeObject || v.Handle == "" || v.Bytes < 64<<20 || v.Action != "v" {
		t.Errorf("object %+v", v)
	}
	o, _ = s.must(engine.Request{Kind: op.Delete, Target: v})
	s.inOrder(o, op.Unpublished, op.Gone)
}

func testSnapshot(t *testing.T, s *session) {
	v := s.volume("v-0", true)
	o, snap := s.must(engine.Request{Name: "s-0", Snapshot: &engine.Snapshot{Sources: []engine.Object{v},
		Class: s.target.SnapshotClass.Name}})
	s.inOrder(o, op.Taken, op.Ready)
	if snap.Kind != engine.SnapshotObject || snap.Source != v.Name {
		t.Errorf("object %+v", snap)
	}
	o, restored := s.must(engine.Request{Name: "r-0",
		Volume: &engine.Volume{Claim: s.claim("r-0"), FromSnapshot: &snap, Attach: true}})
	s.inOrder(o, op.Provisioned, op.Published, op.FirstRead, op.Ready)
	if restored.Source != snap.Name {
		t.Errorf("restored volume %+v", restored)
	}
	for _, x := range []engine.Object{restored, snap, v} {
		o, _ := s.must(engine.Request{Kind: op.Delete, Target: x})
		s.inOrder(o, op.Gone)
	}
}

// grow enlarges a volume, if the driver under test can. Everything made from the volume afterwards must be as
// large, also if it is requested with the earlier object.
func (s *session) grow(v engine.Object) (bytes int64) {
	s.t.Helper()
	if s.target.Skip["resize"] != "" {
		return v.Bytes
	}
	s.must(engine.Request{Kind: op.Resize, Target: v, Resize: &engine.Resize{Bytes: v.Bytes + v.Bytes/4}})
	return v.Bytes + v.Bytes/4
}

func testClone(t *testing.T, s *session) {
	v := s.volume("v-0", true)
	bytes := s.grow(v)
	o, c := s.must(engine.Request{Name: "c-0", Volume: &engine.Volume{Claim: s.claim("c-0"), FromVolume: &v,
		Attach: true}})
	s.inOrder(o, op.Provisioned, op.Published, op.FirstRead, op.Ready)
	if c.Bytes < bytes {
		t.Errorf("the clone of a volume of %d has %d", bytes, c.Bytes)
	}
	s.must(engine.Request{Kind: op.Delete, Target: c})
}

func testResize(t *testing.T, s *session) {
	v := s.volume("v-0", true)
	o, grown := s.must(engine.Request{Kind: op.Resize, Target: v, Resize: &engine.Resize{Bytes: 2 * v.Bytes}})
	s.inOrder(o, op.Ready)
	if grown.Bytes < 2*v.Bytes {
		t.Errorf("grew from %d to %d", v.Bytes, grown.Bytes)
	}
}

func testGroup(t *testing.T, s *session) {
	vs := []engine.Object{s.volume("v-0", true), s.volume("v-1", true)}
	s.grow(vs[0])
	s.grow(vs[1])
	o, made, err := s.do(t.Context(), engine.Request{Name: "g-0",
		Snapshot: &engine.Snapshot{Sources: vs, Class: s.target.SnapshotClass.Name, Group: true}})
	if err != nil {
		t.Fatal(err)
	}
	s.inOrder(o, op.Taken, op.Ready)
	kinds := map[engine.ObjectKind]int{}
	for _, m := range made {
		kinds[m.Kind]++
	}
	if kinds[engine.SnapshotObject] != 2 || kinds[engine.GroupSnapshotObject] != 1 {
		t.Errorf("made %v", kinds)
	}
	s.must(engine.Request{Name: "r-0", Volume: &engine.Volume{Claim: s.claim("r-0"), FromSnapshot: &made[0],
		Attach: true}})
	s.must(engine.Request{Kind: op.Delete, Target: made[len(made)-1]})
}

func testModify(_ *testing.T, s *session) {
	v := s.volume("v-0", false)
	o, _ := s.must(engine.Request{Kind: op.Modify, Target: v,
		Modify: &engine.Modify{Parameters: s.target.Modification}})
	s.inOrder(o, op.Modified)
}

// testErrors shows that errors carry a code and that missing objects give NotFound.
func testErrors(t *testing.T, s *session) {
	ghost := engine.Object{Kind: engine.VolumeObject, Name: "ghost"}
	for name, r := range map[string]engine.Request{
		"snapshot": {Snapshot: &engine.Snapshot{Sources: []engine.Object{ghost}}},
		"resize":   {Kind: op.Resize, Target: ghost, Resize: &engine.Resize{Bytes: 1 << 30}},
		"delete":   {Kind: op.Delete, Target: ghost},
		"clone":    {Volume: &engine.Volume{Claim: s.claim("c"), FromVolume: &ghost}},
	} {
		_, _, err := s.do(t.Context(), r)
		var coded *engine.Error
		if !errors.As(err, &coded) || coded.Code != "NotFound" {
			t.Errorf("%s of what does not exist: %v, want NotFound", name, err)
		}
	}
	if _, _, err := s.do(t.Context(), engine.Request{}); err == nil {
		t.Error("an empty request succeeded")
	}
}

// testCancel shows that an op whose context has ended returns soon with that error, and leaves nothing that
// Teardown does not find.
func testCancel(t *testing.T, s *session) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	begin := time.Now()
	_, _, err := s.do(ctx, engine.Request{Name: "v-0", Volume: &engine.Volume{Claim: s.claim("v-0"), Attach: true}})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
	if d := time.Since(begin); d > 5*time.Second {
		t.Errorf("returned after %v", d)
	}
	for i := range 10 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*2*time.Millisecond)
		_, _, err := s.do(ctx, engine.Request{Volume: &engine.Volume{Claim: s.claim("v"), Attach: true}})
		cancel()
		if err != nil && ctx.Err() == nil {
			t.Errorf("after %d ms: %v", 2*i, err)
		}
	}
}

// testDeadRun shows that an engine that was never opened cleans up after a lost one, from the ledger alone.
func testDeadRun(t *testing.T, s *session) {
	v := s.volume("v-0", true)
	s.must(engine.Request{Name: "s-0", Snapshot: &engine.Snapshot{Sources: []engine.Object{v},
		Class: s.target.SnapshotClass.Name}})
	s.must(s.workload("w-0", script("sleep 300")))
	s.sink.ignoreLoss() // its driver will be killed: that is no news
	if err := s.target.Dead(t, s.current.Identity).Teardown(t.Context(), s.ledger); err != nil {
		t.Errorf("Teardown of a dead run: %v", err)
	}
	if open := s.ledger.Open(); len(open) > 0 {
		t.Errorf("the ledger still lists %v", open)
	}
	s.closed = true
	_ = s.engine.Close() // its driver is gone: only its own sockets are left
}
