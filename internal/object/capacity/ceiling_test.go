package capacity

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/hist"
	"github.com/cnsbench/cnsbench/internal/object/backend"
	"github.com/cnsbench/cnsbench/internal/object/loadgen"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/schedule"
)

// did is a stage that did so many operations of 1 ms in 10 s, in each work.
func did(s *model.Stage, n int64) *loadgen.StageResult {
	r := &loadgen.StageResult{Name: s.Name}
	for i := range s.Works {
		h := hist.New()
		_ = h.RecordN(int64(time.Millisecond), n)
		none := hist.New()
		r.Works = append(r.Works, loadgen.WorkResult{Work: &s.Works[i], From: 0, To: op.Time(10 * time.Second),
			Cells: loadgen.Cells{
				{Label: "200", OK: true}: {N: n, Response: h, Service: h, Connect: none, First: none, Drain: none,
					Late: none}}})
	}
	return r
}

// Each stage that does anything else is measured once before, by closed loops
// with the same workers and operations, on another store.
func TestCeilings(t *testing.T) {
	w := reading(7, schedule.Constant{Rate: 5})
	main := &w.Stages[1]
	main.Works[0].Store = model.Store{Kind: "s3", Settings: map[string]string{"endpoint": "https://far",
		"cafile": "x", "region": "r"}}
	main.Works[0].Ops[0].Checks = []model.IntegrityCheck{model.ReadAfterWrite}
	servers, stops := 0, 0
	var seen []model.Stage
	var said []string
	c := &Ceilings{Size: 5, Window: 3 * time.Second, WarmUp: time.Second,
		Tell: func(line string) { said = append(said, line) }, Ended: func(*loadgen.StageResult) {},
		Server: func(_ context.Context, size int64) (string, func() error, error) {
			servers++
			return "http://near", func() error { stops++; return nil }, nil
		}}
	carry := c.Around(func(_, _ context.Context, s *model.Stage) *loadgen.StageResult {
		seen = append(seen, *s)
		if strings.HasSuffix(s.Name, ".ceiling") {
			return did(s, 1000)
		}
		return did(s, 930)
	})
	for _, s := range []*model.Stage{&w.Stages[0], main, rename(main, "main.find02")} {
		r := carry(t.Context(), t.Context(), s)
		if b, evidence := r.Bound(); s != &w.Stages[0] && (b != loadgen.ClientBound ||
			!strings.Contains(evidence, "at 93 % of this client's own ceiling of 100 operations a second")) {
			t.Errorf("%s: %s: %s", s.Name, b, evidence)
		}
	}
	var names []string
	for _, s := range seen {
		names = append(names, s.Name)
	}
	if d := cmp.Diff([]string{"before", "main.ceiling", "main", "main.find02"}, names); d != "" || servers != 1 ||
		stops != 1 {
		t.Errorf("%d servers, %d stopped: %s", servers, stops, d)
	}
	got := seen[1].Works[0]
	if got.Workers != 7 || got.Rate != nil || got.RateText != "" || got.TotalOps != 0 ||
		got.Runtime != 3*time.Second || len(got.Ops[0].Checks) != 0 || len(main.Works[0].Ops[0].Checks) != 1 {
		t.Errorf("%+v", got)
	}
	if d := cmp.Diff(map[string]string{"endpoint": "http://near", "region": "r", "path_style_access": "true"},
		got.Store.Settings); d != "" {
		t.Error(d)
	}

	c.measured, c.Server = nil, func(context.Context, int64) (string, func() error, error) {
		return "", nil,
			errors.New("no port")
	}
	if r := carry(t.Context(), t.Context(), main); r.Ceiling != 0 || len(r.Works) != 1 ||
		!strings.Contains(said[len(said)-1], "of stage main: no port") {
		t.Errorf("%+v, %q: the stage is carried out without a ceiling too", r, said)
	}
}

// onHosts is a stage that each of these hosts did of so much in 10 s.
func onHosts(s *model.Stage, each map[string]int64) *loadgen.StageResult {
	r := &loadgen.StageResult{Name: s.Name}
	for _, name := range slices.Sorted(maps.Keys(each)) {
		r.Hosts = append(r.Hosts, loadgen.HostResult{Host: name, StageResult: *did(s, each[name])})
	}
	return r
}

// Each of several hosts has a ceiling of its own, by which its own figures are
// judged: here one is at 93 % of a low one, the other far below a high one.
func TestCeilingsOfHosts(t *testing.T) {
	main := &reading(8, nil).Stages[1]
	var said []string
	measured, of := 0, map[string]int64{"a": 1000, "b": 9000}
	c := &Ceilings{Size: 5, Window: time.Second, Tell: func(line string) { said = append(said, line) },
		Ended: func(*loadgen.StageResult) {},
		OnHosts: func(size int64) Carry {
			return func(_, _ context.Context, s *model.Stage) *loadgen.StageResult {
				if measured++; size != 5 || s.Name != "main.ceiling" || s.Works[0].Runtime != time.Second {
					t.Errorf("%d bytes: %+v", size, s)
				}
				return onHosts(s, of)
			}
		}}
	carried := 0
	carry := c.Around(func(_, _ context.Context, s *model.Stage) *loadgen.StageResult {
		carried++
		return onHosts(s, map[string]int64{"a": 930, "b": 930})
	})
	for _, s := range []*model.Stage{main, rename(main, "main.w2")} {
		r := carry(t.Context(), t.Context(), s)
		b, evidence := r.Bound()
		if b != loadgen.ClientBound || !strings.Contains(evidence,
			"a: at 93 % of this client's own ceiling of 100 operations a second") ||
			strings.Contains(evidence, "b: ") || r.Ceiling != 1000 {
			t.Errorf("%s, %v: %s", b, r.Ceiling, evidence)
		}
		if b, evidence := r.Hosts[1].Bound(); b == loadgen.ClientBound ||
			!strings.Contains(evidence, "at 10 % of this client's own ceiling of 900") {
			t.Errorf("b: %s: %s", b, evidence)
		}
	}
	if measured != 1 || carried != 2 || len(said) != 2 || !strings.Contains(said[1], "host b reaches at most 900") {
		t.Errorf("measured %d times, carried out %d times: %q", measured, carried, said)
	}

	c.measured, of = nil, map[string]int64{"a": 1000, "b": 0}
	if r := carry(t.Context(), t.Context(), main); carried != 3 || r.Hosts[0].Ceiling != 0 ||
		!strings.Contains(said[len(said)-1], "host b: no operation succeeded") {
		t.Errorf("carried out %d times; %q", carried, said)
	}

	gone := errors.New("it closed the connection")
	c.OnHosts = func(int64) Carry {
		return func(_, _ context.Context, s *model.Stage) *loadgen.StageResult {
			r := onHosts(s, map[string]int64{"a": 1000, "b": 5})
			r.Hosts[1].Lost, r.Err = gone, gone
			return r
		}
	}
	r := carry(t.Context(), t.Context(), main)
	if carried != 3 || !errors.Is(r.Err, gone) || r.Name != "main" || len(r.Hosts) != 1 || r.Hosts[0].Host != "b" ||
		!errors.Is(r.Hosts[0].Lost, gone) || len(r.Hosts[0].Missing) != 1 {
		t.Errorf("with a lost host the stage is not begun: carried out %d times, %+v", carried, r)
	}
}

func TestInstead(t *testing.T) {
	swift := backend.OnNullServer(&model.Store{Kind: "swift", AuthKind: "keystonev3",
		Auth:     map[string]string{"auth_url": "http://far"},
		Settings: map[string]string{"storage_url": "http://far/v1", "policy": "p"}}, "http://near", 5)
	if swift.AuthKind != "tempauth" || swift.Auth["auth_url"] != "http://near/auth/v1.0" ||
		swift.Settings["storage_url"] != "" || swift.Secrets["password"] == "" {
		t.Errorf("%+v", swift)
	}
	if file := backend.OnNullServer(&model.Store{Kind: "file", Settings: map[string]string{"root": "/"}}, "",
		5); file.Kind != "null" || file.Settings["size"] != "5B" || file.Settings["root"] != "" {
		t.Errorf("%+v", file)
	}
}

func TestScale(t *testing.T) {
	w := reading(1, nil)
	s := &Scale{Workers: []int{4, 1, 2}, Repetitions: 4, Window: 10 * time.Second, Threshold: 0.1}
	expanded, err := s.Expand(w, 1)
	if err != nil {
		t.Fatal(err)
	}
	r := &loadgen.Result{Stages: []loadgen.StageResult{{Name: "before"}}}
	seen := map[string]bool{}
	for i, stage := range expanded.Stages[1:] {
		if block := i/3 + 1; !strings.HasSuffix(stage.Name, []string{"", ".r1", ".r2", ".r3", ".r4"}[block]) ||
			seen[stage.Name] {
			t.Errorf("stage %d is %s: each block has every number once", i, stage.Name)
		}
		seen[stage.Name] = true
		work := stage.Works[0]
		if work.Name != stage.Name || work.Runtime != 10*time.Second || work.TotalOps != 0 {
			t.Errorf("%+v", work)
		}
		r.Stages = append(r.Stages, *did(&stage, 1000*int64(min(work.Workers, 2))))
	}
	if len(seen) != 12 {
		t.Errorf("%d stages, want 12", len(seen))
	}
	again, _ := (&Scale{Workers: []int{4, 1, 2}, Repetitions: 4}).Expand(w, 1)
	other, _ := (&Scale{Workers: []int{4, 1, 2}, Repetitions: 4}).Expand(w, 2)
	order := func(w *model.Workload) (names string) {
		for _, s := range w.Stages {
			names += " " + s.Name
		}
		return names
	}
	if order(again) != order(expanded) || order(other) == order(expanded) {
		t.Errorf("the order is not of the seed: %s; %s; %s", order(expanded), order(again), order(other))
	}
	r.Stages[3].Skipped = true
	got, err := s.Gather(r)
	if err != nil || got.Knee == nil || *got.Knee.Workers != 2 || len(got.Rows) != 3 ||
		len(got.Rows[0].PerSecond)+len(got.Rows[1].PerSecond)+len(got.Rows[2].PerSecond) != 11 {
		t.Errorf("%v: %+v", err, got)
	}
	if v, _ := got.Rows[0].Response.Quantile(0.5); v/1e5 != 10 {
		t.Errorf("a median of %d ns", v)
	}
	for _, bad := range []struct {
		scale Scale
		want  string
	}{
		{Scale{Workers: []int{4}, Repetitions: 1}, "[4]: want at least two"},
		{Scale{Workers: []int{4, 4}, Repetitions: 1}, "[4 4]: want each only once"},
		{Scale{Workers: []int{0, 4}, Repetitions: 1}, "invalid number of workers 0: want at least 1"},
		{Scale{Workers: []int{1, 4}}, "repetitions 0"},
		{Scale{Workers: []int{1, 4}, Repetitions: 1, Stage: "x"}, "x"},
		{Scale{Workers: []int{1, 1 << 30}, Repetitions: 1}, "too many"},
	} {
		if _, err := bad.scale.Expand(w, 1); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%+v: %v, want %q", bad.scale, err, bad.want)
		}
	}
	if _, err := (&Scale{Workers: []int{1, 2}, Repetitions: 1}).Expand(reading(1, schedule.Poisson{Rate: 1}),
		1); err == nil {
		t.Error("an open loop was scaled")
	}
}
