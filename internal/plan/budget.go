package plan

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/internal/op"
)

// budget adds up what the plan makes at most, as if nothing failed, nothing
// was dropped and nothing deleted. What rates without an end contribute is not
// in it: they are listed.
func (l *loader) budget(order []*info) {
	b := &l.plan.Budget
	for i := range l.plan.Rates {
		r := &l.plan.Rates[i]
		if _, ended := l.triggers(r); !ended {
			b.Open = append(b.Open, openRate(r))
		}
	}
	made := map[*info]int64{} // volumes, or snapshots
	var of func(n *info) int64
	of = func(n *info) int64 {
		if v, ok := made[n]; ok {
			return v
		}
		made[n] = 0 // a cycle has been reported
		times := int64(1)
		for i := range l.plan.Rates {
			if r := &l.plan.Rates[i]; r.Name == n.out.Rate {
				times, _ = l.triggers(r)
			}
		}
		var targets, volumes int64 // of one trigger, existing
		for _, a := range n.aims {
			targets = plus(targets, of(a))
		}
		if n.out.Target != nil && n.out.Target.Select != SelectAll {
			targets = min(targets, 1)
		}
		switch n.kind {
		case op.Create:
			ops := mul(times, int64(n.out.Count))
			b.Ops = plus(b.Ops, ops)
			b.Pods = plus(b.Pods, mul(ops, int64(n.pods)))
			volumes = mul(ops, int64(len(n.claims)))
			b.Bytes = plus(b.Bytes, mul(ops, sizes(n.claims)))
		case op.Restore, op.Clone:
			volumes = mul(times, targets)
			b.Ops = plus(b.Ops, volumes)
			b.Bytes = plus(b.Bytes, mul(volumes, sizes(n.claims)))
		case op.Snapshot:
			made[n] = mul(times, targets)
			b.Snapshots = plus(b.Snapshots, made[n])
			if n.out.Snapshot != nil && n.out.Snapshot.Group {
				targets = min(targets, 1)
			}
			b.Ops = plus(b.Ops, mul(times, targets))
			return made[n]
		default:
			b.Ops = plus(b.Ops, mul(times, targets))
			return 0
		}
		made[n] = volumes
		b.Volumes = plus(b.Volumes, volumes)
		return volumes
	}
	for _, n := range order {
		of(n)
	}
	if b.Volumes > manyVolumes {
		l.warn("spec", "see the budget: cnsbench run --dry-run", "this makes up to %d volumes", b.Volumes)
	}
}

// manyVolumes is more than is likely to be meant.
const manyVolumes = 1_000_000

// triggers is how often a rate triggers at most; ended is false if that has no
// bound that is known beforehand.
func (l *loader) triggers(r *Rate) (n int64, ended bool) {
	length := r.Duration
	if l.plan.Runtime > 0 {
		left := max(l.plan.Runtime-r.StartAfter, 0)
		if length == 0 || left < length {
			length = left
		}
	}
	if r.Schedule == nil || length == 0 && l.plan.Runtime == 0 {
		return r.Limit, r.Limit > 0
	}
	// A hair more, so that 30 s at one a tenth of a second is not 299.
	expected := math.Floor(r.Schedule.PerSecond()*length.Seconds() + 1e-6)
	n = int64(min(expected, math.MaxInt64/4))
	if r.Limit > 0 && r.Limit < n {
		n = r.Limit
	}
	return n, true
}

func openRate(r *Rate) string {
	if r.Schedule == nil {
		return fmt.Sprintf("%s (%d at once)", r.Name, r.Parallelism)
	}
	per := r.Schedule.PerSecond()
	if per >= 1 {
		return fmt.Sprintf("%s (%.4g/s)", r.Name, per)
	}
	return fmt.Sprintf("%s (1 each %v)", r.Name, time.Duration(float64(time.Second)/per).Round(time.Millisecond))
}

func sizes(claims []corev1.PersistentVolumeClaim) int64 {
	var bytes int64
	for _, c := range claims {
		bytes = plus(bytes, c.Spec.Resources.Requests.Storage().Value())
	}
	return bytes
}

// mul and plus stop at the largest number instead of wrapping round.
func mul(a, b int64) int64 {
	if a != 0 && b > math.MaxInt64/a {
		return math.MaxInt64
	}
	return a * b
}

func plus(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
