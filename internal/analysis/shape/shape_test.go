package shape_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/shape"
	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/op"
)

var names = []string{op.Acked, op.Provisioned, op.Bound, op.Scheduled, op.Attached, op.Published, op.Running, op.Ready,
	op.Gone, op.Taken, op.Detached, "ready/a", "ready/b", "claimGone", "objectGone", "unknown", "CreateVolume.start",
	"CreateVolume.end", "CreateSnapshot.start", "CreateSnapshot.end", "freeze.start", "freeze.end",
	"NodePublishVolume.start/a", "NodePublishVolume.end/a", "NodePublishVolume.start/b", "NodePublishVolume.end/b"}

// draw makes an op whose instants are in order, some of them equal.
func draw(r *rand.Rand) *op.Op {
	at := op.Time(r.IntN(100))
	next := func() op.Time {
		at += op.Time(r.IntN(3) * (1 + r.IntN(1e6)))
		return at
	}
	o := &op.Op{Kind: []op.Kind{op.Create, op.Delete, op.Snapshot, op.Kill, op.Rollout}[r.IntN(5)], Outcome: op.OK,
		Intended: at, Started: next()}
	for range r.IntN(9) {
		o.Milestones = append(o.Milestones, op.Milestone{Name: names[r.IntN(len(names))], At: next(), Err: r.Int64N(1000)})
	}
	o.Ended = next()
	return o
}

// longer returns an op of the same shape that takes twice as long.
func longer(o *op.Op) *op.Op {
	l := *o
	l.Intended, l.Started, l.Ended, l.Milestones = 2*o.Intended, 2*o.Started, 2*o.Ended, slices.Clone(o.Milestones)
	for i := range l.Milestones {
		l.Milestones[i].At *= 2
	}
	return &l
}

// TestSketch: the spans and the critical path of an op are those of its sketch.
func TestSketch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	c := shape.Cache[*op.Op]{Make: func(sketch *op.Op) *op.Op { return sketch }}
	seen := map[*op.Op]int{}
	var o *op.Op
	for i := range 20_000 {
		if i%2 == 0 {
			o = draw(r)
		} else {
			o = longer(o)
		}
		sketch, at, ok := c.Of(o)
		if !ok {
			continue // too many
		}
		seen[sketch]++
		spans := span.Of(sketch)
		for i := range spans {
			s := &spans[i]
			err := int64(0)
			for _, k := range shape.Errors(s.Err) {
				err += o.Milestones[k].Err
			}
			from, to := s.At, s.End()
			s.At, s.Ns, s.Err = at[from], int64(at[to]-at[from]), err
		}
		if diff := cmp.Diff(span.Of(o), spans); diff != "" {
			t.Fatalf("spans of %+v: (-of the op +of its sketch)\n%s", o, diff)
		}
		path := attribution.Intervals(sketch)
		for i := range path {
			path[i].From, path[i].To = at[path[i].From], at[path[i].To]
		}
		if diff := cmp.Diff(attribution.Intervals(o), path); diff != "" {
			t.Fatalf("path of %+v: (-of the op +of its sketch)\n%s", o, diff)
		}
	}
	several := 0
	for _, n := range seen {
		several += min(1, n-1)
	}
	if several < 500 {
		t.Errorf("only %d shapes of more than one op", several)
	}
}

// TestShapes: ops have different shapes if an instant is equal in one only, a milestone has another name, or the kind is
// another; and none if their milestones are not in order, or an instant is not known.
func TestShapes(t *testing.T) {
	c := shape.Cache[*op.Op]{Make: func(sketch *op.Op) *op.Op { return sketch }}
	of := func(kind op.Kind, name string, instants ...op.Time) *op.Op {
		s, _, ok := c.Of(&op.Op{Kind: kind, Intended: instants[0], Started: instants[1], Ended: instants[3],
			Milestones: []op.Milestone{{Name: name, At: instants[2]}}})
		if !ok {
			return nil
		}
		return s
	}
	first := of(op.Create, "a", 1, 2, 3, 4)
	if of(op.Create, "a", 10, 20, 300, 400) != first {
		t.Error("ops of one shape have two")
	}
	for _, other := range []*op.Op{of(op.Delete, "a", 1, 2, 3, 4), of(op.Create, "b", 1, 2, 3, 4),
		of(op.Create, "a", 1, 1, 3, 4), of(op.Create, "a", 1, 2, 2, 4), of(op.Create, "a", 1, 2, 3, 3)} {
		if other == nil || other == first {
			t.Error("ops of two shapes have one")
		}
	}
	for _, instants := range [][]op.Time{{1, 2, 1, 4}, {2, 1, 3, 4}, {1, 2, 5, 4}, {1, op.Never, 3, 4},
		{1, 2, op.Never, 4}, {1, 2, 3, op.Never}, {op.Never, 2, 3, 4}} {
		if of(op.Create, "a", instants...) != nil {
			t.Errorf("instants %v have a shape", instants)
		}
	}
	if got := shape.Errors(shape.Err(2) + shape.Err(0) + shape.Err(2)); !slices.Equal(got, []int{0, 2, 2}) {
		t.Errorf("errors of milestones %v", got)
	}
}
