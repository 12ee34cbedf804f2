package oplog

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Selection has the ops whose lines are kept.
type Selection struct {
	Records []Record // in order of From; without lines
	About   About
}

// candidate is an op that may be selected.
type candidate struct {
	id       int64
	started  op.Time
	ended    op.Time
	why      Reason
	observed int64 // service time
	names    []string
	action   *tally
}

// tally has the ops of one action.
type tally struct {
	name        string
	took        []int64     // service times of ops that were ok, in ns
	slowest     []candidate // of them, at most MaxOps, slowest first
	median, p95 int64
}

// sameFailure groups ops that failed alike.
type sameFailure struct {
	action  string
	outcome op.Outcome
	code    string
}

// Select reads the ops of a run once. Ops that never started have no window. The error is that of reading them.
//
// Of equal failures the first ones are taken; where there are more kinds of failures, or more slow ops, than have
// room, each kind and each action in turn gives one.
func Select(ops iter.Seq2[op.Op, error]) (Selection, error) {
	actions := map[string]*tally{}
	failures := map[sameFailure][]candidate{}
	var s Selection
	for o, err := range ops {
		if err != nil {
			return Selection{}, err
		}
		took, ok := o.Service()
		if !ok {
			continue
		}
		t := actions[o.Action]
		if t == nil {
			t = &tally{name: o.Action}
			actions[o.Action] = t
		}
		c := candidate{id: o.ID, started: o.Started, ended: o.Ended, observed: took, action: t,
			names: append(strings.Split(o.Target, ","), o.Object)}
		if o.Outcome == op.OK {
			t.add(c)
			continue
		}
		s.About.Failed++
		c.why = Reason(o.Outcome)
		k := sameFailure{o.Action, o.Outcome, o.Code}
		if len(failures[k]) < maxSame {
			failures[k] = append(failures[k], c)
		}
	}
	s.choose(actions, failures)
	return s, nil
}

// add counts an op that was ok.
func (t *tally) add(c candidate) {
	t.took = append(t.took, c.observed)
	if len(t.slowest) == MaxOps && c.observed <= t.slowest[MaxOps-1].observed {
		return
	}
	at, _ := slices.BinarySearchFunc(t.slowest, c, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.observed, a.observed), cmp.Compare(a.id, b.id))
	})
	t.slowest = slices.Insert(t.slowest, at, c)[:min(len(t.slowest)+1, MaxOps)]
}

// isSlow is the rule for slow ops.
func (t *tally) isSlow(took int64) bool { return took > t.p95 && took > 2*t.median }

// summarise computes the quantiles by the nearest rank, and returns the number of slow ops and the selectable ones.
func (t *tally) summarise() (slow int64, list []candidate) {
	if len(t.took) == 0 {
		return 0, nil
	}
	slices.Sort(t.took)
	rank := func(percent int) int64 { return t.took[(len(t.took)*percent+99)/100-1] }
	t.median, t.p95 = rank(50), rank(95)
	for _, ns := range t.took {
		if t.isSlow(ns) {
			slow++
		}
	}
	for i, c := range t.slowest {
		switch {
		case t.isSlow(c.observed):
			c.why = Slow
		case i < fewest:
			c.why = Slowest
		default:
			return slow, list
		}
		list = append(list, c)
	}
	return slow, list
}

// choose fills the selection.
func (s *Selection) choose(actions map[string]*tally, failures map[sameFailure][]candidate) {
	var slow [][]candidate
	for _, name := range slices.Sorted(maps.Keys(actions)) {
		n, list := actions[name].summarise()
		s.About.Slow += n
		slow = append(slow, list)
	}
	alike := slices.Collect(maps.Values(failures))
	slices.SortFunc(alike, func(a, b []candidate) int { return cmp.Compare(a[0].id, b[0].id) })
	chosen := inTurn(alike, maxFailed)
	s.About.FailedKept = int64(len(chosen))
	for _, c := range inTurn(slow, MaxOps-len(chosen)) {
		if c.why == Slow {
			s.About.SlowKept++
		}
		chosen = append(chosen, c)
	}
	for _, c := range chosen {
		s.Records = append(s.Records, Record{ID: c.id, Why: c.why, From: c.started - op.Time(Margin),
			To: c.ended + op.Time(Margin), N: int64(len(c.action.took)), MedianNs: c.action.median,
			P95Ns: c.action.p95, names: c.names})
	}
	slices.SortFunc(s.Records, func(a, b Record) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.ID, b.ID))
	})
}

// inTurn takes the first of each list, then the second of each, up to most.
func inTurn(lists [][]candidate, most int) (taken []candidate) {
	for rank := 0; len(taken) < most; rank++ {
		more := false
		for _, l := range lists {
			if rank < len(l) && len(taken) < most {
				taken, more = append(taken, l[rank]), true
			}
		}
		if !more {
			break
		}
	}
	return taken
}

// Windows returns the windows of the selected ops, merged where they overlap, in order of time.
func (s *Selection) Windows() []Window {
	var list []Window
	for _, r := range s.Records { // in order of From
		if n := len(list); n > 0 && r.From <= list[n-1].To {
			list[n-1].To = max(list[n-1].To, r.To)
			continue
		}
		list = append(list, Window{r.From, r.To})
	}
	return list
}
