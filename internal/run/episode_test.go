package run

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// lifeOfVolume returns an episode: create, snapshot and delete a volume.
func lifeOfVolume(rateName string) []plan.Action {
	head := makes("vol", rateName, 1)
	head.Then = []string{"snap", "del"}
	snap := snaps("snap", "", "vol")
	snap.Chained = true
	del := plan.Action{Name: "del", Kind: op.Delete, Count: 1, Timeout: time.Minute, Chained: true,
		Target: &plan.Target{Kind: engine.VolumeObject, Action: "vol", Select: plan.SelectOldest}}
	return []plan.Action{head, snap, del}
}

// seconds returns the duration of each kind of request.
func seconds(create, snap, del int) func(engine.Request) (time.Duration, error) {
	return func(r engine.Request) (time.Duration, error) {
		switch {
		case r.Volume != nil:
			return time.Duration(create) * time.Second, nil
		case r.Snapshot != nil:
			return time.Duration(snap) * time.Second, nil
		}
		return time.Duration(del) * time.Second, nil
	}
}

// TestEpisodesActOnWhatTheyMade checks that each step of an episode acts on the episode's own volume, and is
// due when the previous step has ended.
func TestEpisodesActOnWhatTheyMade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := every(time.Second)
		r.Limit = 20
		p := plan.Plan{Actions: lifeOfVolume("r"), Rates: []plan.Rate{r}}
		m, res := carry(t.Context(), t.Context(), p, &script{took: func(q engine.Request) (time.Duration, error) {
			return time.Duration(1+(7*q.Instance)%5) * time.Second, nil // varied, so that episodes overtake each other
		}})
		byEpisode := map[int64]map[string]op.Op{}
		for _, o := range m.ops {
			if byEpisode[o.Episode] == nil {
				byEpisode[o.Episode] = map[string]op.Op{}
			}
			byEpisode[o.Episode][o.Action] = o
		}
		if len(byEpisode) != 20 || len(m.ops) != 60 {
			t.Fatalf("%d episodes of %d ops, want 20 of 60", len(byEpisode), len(m.ops))
		}
		for id, e := range byEpisode {
			if e["snap"].Target != e["vol"].Target || e["del"].Target != e["vol"].Target {
				t.Errorf("episode %d acts on %s, %s and %s", id, e["vol"].Target, e["snap"].Target, e["del"].Target)
			}
			if e["snap"].Intended != e["vol"].Ended || e["del"].Intended != e["snap"].Ended {
				t.Errorf("episode %d: a step was not due when the one before ended", id)
			}
		}
		if c := res.Rates[0]; c.Triggers != 20 || c.OK != 20 {
			t.Errorf("count %+v", c)
		}
	})
}

// TestEpisodesHoldTheirPlace checks that an episode holds its slot of a closed loop, or of maxInFlight, until
// its end.
func TestEpisodesHoldTheirPlace(t *testing.T) {
	for name, r := range map[string]plan.Rate{
		"closed loop": {Name: "r", Parallelism: 1, Limit: 3},
		"queue": {Name: "r", Schedule: schedule.Constant{Interval: time.Second}, Limit: 3, MaxInFlight: 1,
			Queue: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := plan.Plan{Actions: lifeOfVolume("r"), Rates: []plan.Rate{r}}
				m, _ := carry(t.Context(), t.Context(), p, &script{took: seconds(2, 3, 4)})
				created := m.of("vol")
				for i := 1; i < len(created); i++ {
					if got := created[i].Started - created[i-1].Started; got != op.Time(9*time.Second) {
						t.Errorf("episode %d began %v after the one before, want 9s", i, time.Duration(got))
					}
				}
			})
		})
	}
}

// TestEpisodesThatBreakOff checks the outcomes of the steps of an episode after a failed step, a stop or an
// interrupt.
func TestEpisodesThatBreakOff(t *testing.T) {
	boom := &engine.Error{Code: "Internal", Message: "boom"}
	tests := []struct {
		name   string
		took   func(engine.Request) (time.Duration, error)
		stop   time.Duration
		cancel time.Duration
		grace  time.Duration
		want   map[string]op.Outcome
		code   map[string]string
	}{
		{name: "first step", took: func(q engine.Request) (time.Duration, error) { return time.Second, boom },
			want: map[string]op.Outcome{"vol": op.Error, "snap": op.Dropped, "del": op.Dropped},
			code: map[string]string{"vol": "Internal", "snap": codeEpisode, "del": codeEpisode}},
		{name: "second step", took: func(q engine.Request) (time.Duration, error) {
			if q.Snapshot != nil {
				return time.Second, boom
			}
			return time.Second, nil
		},
			want: map[string]op.Outcome{"vol": op.OK, "snap": op.Error, "del": op.Dropped},
			code: map[string]string{"vol": "", "snap": "Internal", "del": codeEpisode}},
		{name: "the stop leaves it its grace", took: seconds(2, 2, 2), stop: 2 * time.Second, grace: time.Minute,
			want: map[string]op.Outcome{"vol": op.OK, "snap": op.OK, "del": op.OK},
			code: map[string]string{"vol": "", "snap": "", "del": ""}},
		{name: "the grace ends", took: seconds(2, 9, 2), stop: 2 * time.Second, grace: 3 * time.Second,
			want: map[string]op.Outcome{"vol": op.OK, "snap": op.Censored, "del": op.Dropped},
			code: map[string]string{"vol": "", "snap": codeRunEnded, "del": codeEpisode}},
		{name: "an interrupt ends it after the step", took: seconds(2, 2, 2), cancel: 4 * time.Second,
			grace: time.Minute,
			want:  map[string]op.Outcome{"vol": op.OK, "snap": op.OK, "del": op.Dropped},
			code:  map[string]string{"vol": "", "snap": "", "del": codeRunEnded}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				if tt.cancel > 0 {
					time.AfterFunc(tt.cancel, func() { cancel(ErrInterrupted) })
				}
				r := every(time.Second)
				r.Limit = 1
				p := plan.Plan{Runtime: tt.stop, Grace: tt.grace, Actions: lifeOfVolume("r"), Rates: []plan.Rate{r}}
				m, _ := carry(ctx, t.Context(), p, &script{took: tt.took})
				got, code := map[string]op.Outcome{}, map[string]string{}
				for _, o := range m.ops {
					got[o.Action], code[o.Action] = o.Outcome, o.Code
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff(tt.code, code); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}

// TestStartAfterAction checks that a rate starts when the first op of an action has ended, that the run waits
// for this rate, and that it does not wait for a rate whose action has no op that ended.
func TestStartAfterAction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := schedule.Constant{Interval: time.Second}
		p := plan.Plan{
			Actions: []plan.Action{makes("first", "a", 1), makes("second", "b", 1), makes("vain", "c", 1),
				snaps("none", "d", "x")},
			Rates: []plan.Rate{
				{Name: "a", Schedule: one, Limit: 2}, {Name: "b", Schedule: one, Limit: 3, StartAction: "first"},
				{Name: "c", Schedule: one, Limit: 1, StartAction: "none"}, {Name: "d", Schedule: one, Limit: 1},
			},
		}
		m, res := carry(t.Context(), t.Context(), p, &script{took: took(5 * time.Second)})
		first, second := m.of("first"), m.of("second")
		if len(second) != 3 {
			t.Fatalf("%d ops of the rate that waited, want 3", len(second))
		}
		if want := first[0].Ended + op.Time(time.Second); second[0].Intended != want {
			t.Errorf("its first trigger was due at %v, want %v", second[0].Intended, want)
		}
		if n := len(m.of("vain")); n != 0 {
			t.Errorf("%d ops of a rate whose action never ended", n)
		}
		if len(res.Flags) != 1 || res.Flags[0].Name != "notBegun" ||
			!strings.Contains(res.Flags[0].Evidence, "no operation of none has ended") {
			t.Errorf("flags %v", res.Flags)
		}
		if res.EndedAt != second[2].Ended {
			t.Errorf("the run ended at %v, its last op at %v", res.EndedAt, second[2].Ended)
		}
	})
}
