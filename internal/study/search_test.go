package study

import (
	"errors"
	"io"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/schedule"
	"github.com/cnsbench/cnsbench/internal/stats/search"
)

// planOf is a plan with a volume created at a rate, and fio.
func planOf(s schedule.Schedule) *plan.Plan {
	return &plan.Plan{Name: "x", Runtime: 20 * time.Second,
		Actions: []plan.Action{{Name: "fio"}, {Name: "create", Rate: "r"}},
		Rates:   []plan.Rate{{Name: "r", Schedule: s}}}
}

// find searches in a directory.
func find(t *testing.T, path string, x *station, s *Search, of schedule.Schedule) (*summary.FindMax, error) {
	t.Helper()
	d, err := NewSearch(planOf(of), s, []string{"vars.a=b"})
	if err != nil {
		t.Fatal(err)
	}
	x.t, x.search = t, s
	dir, err := Begin(path, d, Occasion{Number: 1})
	if err != nil {
		t.Fatal(err)
	}
	m, err := dir.Find(t.Context(), x, io.Discard)
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	return m, err
}

func TestFind(t *testing.T) {
	constant, poisson := schedule.Constant{Rate: 8}, schedule.Poisson{Rate: 8}
	worker := func(x station) *station { x.servers, x.service, x.left = 1, 50*time.Millisecond, -1; return &x }
	falling := func(r float64) float64 { return 1000 - 20*r }
	short := worker(station{})
	for _, tt := range []struct {
		name, condition string
		window          time.Duration
		x               *station
		of              schedule.Schedule
		verdict         search.Verdict
		truth           float64 // the highest rate that holds
		says            string
	}{
		{"capacity of a worker", "p99(create) < 100ms", 0, worker(station{}), constant, search.Found, 20, "storage-bound"},
		{"capacity alone", "count(create) > 0", 0, worker(station{}), constant, search.Found, 20, "storage-bound"},
		// The median response of M/D/1 is 1.5 service times at a utilisation of 0.64.
		{"random arrivals", "p50(create) < 75ms", 0, worker(station{}), poisson, search.Found, 13, ""},
		{"writes", "iops(fio.write) >= 0.9 * baseline(iops(fio.write))", 0, worker(station{iops: falling}), constant,
			search.Found, 5, "iops(fio.write) = "},
		{"failures", "p99(create) < 100ms", 0, worker(station{fails: func(n int) bool { return n == 5 }}), constant,
			search.Never, 0, "never holds"},
		{"no baseline", "iops(fio.write) >= baseline(iops(fio.write))", 0, worker(station{}), constant,
			search.Undecided, 0, "no data"},
		{"too slow to see", "count(create) > 0", 0, &station{service: 15 * time.Second, left: -1}, constant,
			search.Undecided, 0, "longer than half the window"},
		{"a short window", "count(create) > 0", time.Second, short, constant, search.Found, 0,
			"use a longer --window"},
		{"slow, in parallel", "count(create) > 0", 0, &station{service: 5 * time.Second, left: -1}, constant,
			search.Always, 100, "no limit was found"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := &Search{Condition: tt.condition, Window: tt.window, Most: 100, Resolution: 0.05}
			m, err := find(t, filepath.Join(t.TempDir(), "s"), tt.x, s, tt.of)
			if err != nil {
				t.Fatal(err)
			}
			text := m.Line() + m.Evidence
			if search.Verdict(m.Verdict) != tt.verdict || !strings.Contains(text, tt.says) {
				t.Errorf("%s, want %s and %q", text, tt.verdict, tt.says)
			}
			if tt.truth > 0 && (m.PerSecond == nil || math.Abs(*m.PerSecond/tt.truth-1) > 0.1) {
				t.Errorf("%s; want %g", text, tt.truth)
			}
		})
	}
}

// TestFindContinues interrupts a search after each number of steps. The continued one runs the remaining steps only
// and comes to the same result, as does reading the directory.
func TestFindContinues(t *testing.T) {
	s := func() *Search {
		return &Search{Condition: "iops(fio.write) >= 0.9 * baseline(iops(fio.write))", Most: 100, Resolution: 0.05}
	}
	station := func(left int) *station {
		return &station{servers: 1, service: 50 * time.Millisecond, left: left,
			iops: func(r float64) float64 { return 1000 - 20*r }}
	}
	of := schedule.Constant{Rate: 8}
	whole := station(-1)
	want, err := find(t, filepath.Join(t.TempDir(), "s"), whole, s(), of)
	if err != nil {
		t.Fatal(err)
	}
	for after := 0; after < len(whole.ran); after += 5 {
		path := filepath.Join(t.TempDir(), "s")
		first, second := station(after), station(-1)
		m, err := find(t, path, first, s(), of)
		if !errors.Is(err, ErrInterrupted) || m.Verdict != string(search.Interrupted) || len(m.Steps) != after {
			t.Fatalf("after %d steps: %v, %+v", after, err, m)
		}
		got, err := find(t, path, second, s(), of)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
		if diff := cmp.Diff(whole.ran, append(first.ran, second.ran...)); diff != "" {
			t.Errorf("after %d steps: %s", after, diff)
		}
		dir, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if read, err := dir.Found(); err != nil || cmp.Diff(want, read) != "" {
			t.Errorf("read: %v, %s", err, cmp.Diff(want, read))
		}
	}
}

// TestFindIsAnother checks that a directory continues only the same search.
func TestFindIsAnother(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	of := schedule.Constant{Rate: 8}
	s := func(most float64) *Search {
		return &Search{Condition: "count(create) > 0", Most: most, Resolution: 0.05}
	}
	if _, err := find(t, path, &station{servers: 1, service: time.Second, left: -1}, s(100), of); err != nil {
		t.Fatal(err)
	}
	d, err := NewSearch(planOf(of), s(50), []string{"vars.a=b"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(path, d, Occasion{}); err == nil || !strings.Contains(err.Error(), "choose another --out") {
		t.Errorf("another range: %v", err)
	}
	if _, err := Begin(path, designOf(t, file), Occasion{}); err == nil {
		t.Error("a study continued in the directory of a search")
	}
}

// with is a plan with a change.
func with(change func(*plan.Plan)) *plan.Plan {
	p := planOf(schedule.Constant{Rate: 2})
	if change != nil {
		change(p)
	}
	return p
}

const p99 = "p99(create) < 5s"

var newSearches = []struct {
	name string
	p    *plan.Plan
	s    Search
	want string // the error, or the settings of the first step
}{
	{"a window has p99's operations", with(nil), Search{Condition: p99},
		"spec.runtime=2m30s spec.rates.r.duration=2m30s spec.rates.r.constantRateSpec={perSecond: 2}"},
	{"Poisson needs more", with(func(p *plan.Plan) { p.Rates[0].Schedule = schedule.Poisson{Rate: 2} }),
		Search{Condition: p99}, "spec.runtime=3m6.1s"},
	{"a later start", with(func(p *plan.Plan) { p.Rates[0].StartAfter = 5 * time.Second }),
		Search{Condition: "max(create) < 5s"}, "spec.runtime=20s spec.rates.r.duration=15s"},
	{"what waits is not dropped", with(func(p *plan.Plan) { p.Rates[0].Queue, p.Rates[0].MaxInFlight = true, 1 }),
		Search{Condition: "max(create) < 5s"}, "spec.runtime=25s spec.rates.r.duration=20s"},
	{"the first rate is raised", with(func(p *plan.Plan) { p.Rates[0].Schedule = schedule.Constant{Rate: 0.1} }),
		Search{Condition: p99}, "{perSecond: 1.5}"},
	{"a least rate without enough operations", with(nil), Search{Condition: p99, Least: 0.5},
		"at 0.5 per second a step has too few operations of create: the condition needs 299, which the longest " +
			"step, 3m20s, has from 1.5 per second on; give --find-least 1.5 or more, or a longer --window"},
	{"a greatest rate without", with(nil), Search{Condition: p99, Most: 1}, "give --find-most 1.5 or more"},
	{"unknown action", with(nil), Search{Condition: p99, Action: "snap"},
		`action "snap" not found: want one of fio, create`},
	{"no rate", with(nil), Search{Condition: p99, Action: "fio"}, "action fio has no rate"},
	{"unknown name", with(nil), Search{Condition: "p99(creates) < 5s"}, `action "creates" not found`},
	{"not a condition", with(nil), Search{Condition: "p99(create)"}, "compare it with a bound"},
	{"baseline of nothing", with(nil), Search{Condition: "p99(create) < baseline(5s)"}, "baseline takes one call"},
	{"closed loop", with(func(p *plan.Plan) { p.Rates[0] = plan.Rate{Name: "r", Parallelism: 3} }),
		Search{Condition: p99, Action: "create"}, "neither constant nor Poisson"},
	{"no open loop", with(func(p *plan.Plan) { p.Rates[0] = plan.Rate{Name: "r", Parallelism: 3} }),
		Search{Condition: p99}, "no action has a constant or Poisson rate"},
	{"two", with(func(p *plan.Plan) { p.Actions[0].Rate = "r" }), Search{Condition: p99}, "choose one with --action"},
	{"a limit", with(func(p *plan.Plan) { p.Rates[0].Limit = 5 }), Search{Condition: p99}, "has a limit of 5"},
	{"a start by an action", with(func(p *plan.Plan) { p.Rates[0].StartAction = "fio" }), Search{Condition: p99},
		"starts after action fio"},
	{"a window of nothing", with(nil), Search{Condition: p99, Window: 1}, "invalid window 1ns"},
	{"resolution", with(nil), Search{Condition: p99, Resolution: 3}, "resolution"},
}

func TestNewSearch(t *testing.T) {
	for _, tt := range newSearches {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.s
			if s.Most == 0 {
				s.Most = 1000
			}
			if s.Resolution == 0 {
				s.Resolution = 0.05
			}
			_, err := NewSearch(tt.p, &s, nil)
			var got string
			if err != nil {
				got = err.Error()
			} else {
				got = strings.Join(s.Set(s.From), " ")
			}
			if !strings.Contains(got, tt.want) {
				t.Errorf("%s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestBaselineSet checks that the rate never triggers in the baseline.
func TestBaselineSet(t *testing.T) {
	s := &Search{Rate: "r", Schedule: Constant, Window: 20 * time.Second, StartAfter: 5 * time.Second}
	want := []string{"spec.runtime=25s", "spec.rates.r.startAfter=1h0m25s"}
	if diff := cmp.Diff(want, s.Set(0)); diff != "" {
		t.Error(diff)
	}
}
