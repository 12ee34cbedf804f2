package tenant

import (
	"cmp"
	"slices"

	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
)

// few is the number of I/Os of an interval below which one I/O decides on a p99.
const few = 100

// verdictOf is what a target says about one interval.
type verdictOf func(x *interval) (missed, byFew bool)

// missesP99 says whether more than one percent of the I/Os took longer. In an interval with a gap one I/O
// that took longer is enough.
func missesP99(target int64) verdictOf {
	return func(x *interval) (missed, byFew bool) {
		slow := x.slowerThan(target)
		missed = 100*slow > x.all() || slow > 0 && x.gap || x.stalled
		return missed, missed && x.all() < few
	}
}

// missesFloor says whether fewer I/Os completed than the floor, per second; in a gap none did.
func missesFloor(floor int64) verdictOf {
	return func(x *interval) (missed, byFew bool) { return x.rate() < float64(floor) || x.gap, false }
}

// judge sets the violations of the tenant, of its targets and of its steps.
func (t *Tenant) judge(facts *dataset.Tenant, series []stream) {
	var all, measured []dataset.Window
	for _, x := range facts.Targets {
		if x.P99Ns > 0 {
			t.judgeTarget(Target{Metric: x.Metric, P99Ns: x.P99Ns}, missesP99(x.P99Ns), series, &all, &measured)
		}
		if x.IOPSFloor > 0 {
			t.judgeTarget(Target{Metric: x.Metric, IOPSFloor: x.IOPSFloor}, missesFloor(x.IOPSFloor), series, &all, &measured)
		}
	}
	if len(facts.Targets) == 0 {
		for _, s := range series {
			for _, x := range s.intervals {
				measured = append(measured, dataset.Window{From: x.from, To: x.to})
			}
		}
	}
	missed, known := union(all), union(measured)
	length := func(u dataset.Union, from, to op.Time) *int64 {
		if len(facts.Targets) == 0 {
			return nil
		}
		n := u.Within(from, to)
		return &n
	}
	first, last := t.Steps[0].From, t.Steps[len(t.Steps)-1].To
	t.MeasuredNs, t.ViolationsNs = known.Within(first, last), length(missed, first, last)
	for i := range t.Steps {
		s := &t.Steps[i]
		s.MeasuredNs, s.ViolationsNs = known.Within(s.From, s.To), length(missed, s.From, s.To)
	}
}

// judgeTarget adds a target, and its windows to those of the tenant.
func (t *Tenant) judgeTarget(target Target, verdict verdictOf, series []stream, all, measured *[]dataset.Window) {
	var bad, weak, known []dataset.Window
	for _, s := range series {
		if s.metric != target.Metric {
			continue
		}
		for i := range s.intervals {
			w := dataset.Window{From: s.intervals[i].from, To: s.intervals[i].to}
			known = append(known, w)
			missed, byFew := verdict(&s.intervals[i])
			if missed {
				bad = append(bad, w)
			}
			if byFew {
				weak = append(weak, w)
			}
		}
	}
	first, last := t.Steps[0].From, t.Steps[len(t.Steps)-1].To
	target.MeasuredNs = union(known).Within(first, last)
	target.ViolationsNs, target.FewNs = union(bad).Within(first, last), union(weak).Within(first, last)
	t.Targets = append(t.Targets, target)
	*all, *measured = append(*all, bad...), append(*measured, known...)
}

func union(ws []dataset.Window) dataset.Union {
	slices.SortFunc(ws, func(a, b dataset.Window) int { return cmp.Compare(a.From, b.From) })
	return dataset.UnionOf(ws)
}
