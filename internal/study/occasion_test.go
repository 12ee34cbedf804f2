package study

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// platform is an Executor whose runs leave bundles with known values.
type platform struct {
	t   *testing.T
	now time.Time
	// value is the response of a job, and how long it took.
	value func(j Job) (iops float64, took time.Duration)
	// fails has the settings of trials that fail.
	fails string
	// refuses has the settings of trials that fail before they have a bundle.
	refuses string
	// left is the number of runs after which the study is interrupted; negative: never.
	left int
	ran  []string
	jobs []Job
}

func (p *platform) Load(context.Context, Job, bool) (*plan.Plan, error) { return nil, nil }
func (p *platform) Open(string) (io.ReadCloser, error)                  { return nil, os.ErrNotExist }
func (p *platform) CleanUp(context.Context, string) error               { return nil }
func (p *platform) Interrupted() bool                                   { return false }

func (p *platform) Run(_ context.Context, dir string, j Job) (int, error) {
	if p.left == 0 {
		return 0, ErrInterrupted
	}
	p.left--
	p.ran, p.jobs = append(p.ran, filepath.Base(dir)), append(p.jobs, j)
	if p.refuses != "" && slices.Contains(j.Set, p.refuses) {
		return 2, errors.New("connect to the driver: refused")
	}
	iops, took := p.value(j)
	state := bundle.Complete
	if p.fails != "" && slices.Contains(j.Set, p.fails) {
		state = bundle.Failed
	}
	writeTrial(p.t, dir, p.now, took, iops, state)
	p.now = p.now.Add(took + time.Second)
	return 0, nil
}

// writeTrial leaves a closed bundle.
func writeTrial(t *testing.T, dir string, start time.Time, took time.Duration, iops float64, state bundle.State) {
	t.Helper()
	w, err := bundle.Create(dir, bundle.Run{ID: "r", Name: "x", Engine: "local",
		Spec:  []byte(`{"actions":[{"name":"fio","createObjSpec":{"workload":"fio"}}]}`),
		Clock: bundle.ClockInfo{Start: start, Source: "test", Resolution: 1}})
	if err != nil {
		t.Fatal(err)
	}
	w.Scalar(bundle.Scalar{Labels: bundle.Labels{Instance: "fio-0", Action: "fio"},
		Scalar: metric.Scalar{Metric: "read.iops", Unit: "1/s", Value: iops}})
	if err := w.Close(func(r *bundle.Run) { r.State, r.EndedAt = state, op.Time(took) }); err != nil {
		t.Fatal(err)
	}
}

const occasions = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: x}
spec:
  seed: 7
  occasions: 2
  blocks: 3
  factors:
    vars.storageClass: [slow, fast]
    fio.bs: {choice: [4k, 8k, 16k, 32k, 64k, 128k]}
    fio.iodepth: {loguniform: {min: 1, max: 64}, integer: true}
  aaArm: {levels: {vars.storageClass: fast}}
  metrics:
    - {response: iops(fio.read), marginPercent: 10}
  benchmark: {actions: [{name: fio, createObjSpec: {workload: fio}}]}
`

func designOf(t *testing.T, text string) *Design {
	t.Helper()
	d, err := New(loaded(t, text), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestAddOccasion checks that a further occasion has every cell in every block, an order of its own, further
// repetitions, and trials that follow from the seed alone.
func TestAddOccasion(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	monday := time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC)
	x := &platform{t: t, now: monday, left: -1,
		value: func(Job) (float64, time.Duration) { return 100, time.Minute }}
	dir, err := Begin(path, designOf(t, occasions), Occasion{Begun: monday, Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.AddOccasion(Occasion{}); err == nil || !strings.Contains(err.Error(), "not finished") {
		t.Errorf("an occasion was added to an unfinished one: %v", err)
	}
	if _, err := dir.Run(t.Context(), x, 1, io.Discard); err != nil {
		t.Fatal(err)
	}
	want := dir.NextTrials(Occasion{})
	second, err := dir.AddOccasion(Occasion{Begun: monday.AddDate(0, 0, 5), Zone: "UTC", Blocks: 3})
	if err != nil || second.Number != 2 || dir.OccasionCount() != 2 {
		t.Fatalf("%+v, %v", second, err)
	}
	if diff := cmp.Diff(want, dir.Trials[9:]); diff != "" {
		t.Error(diff)
	}
	for i, trial := range dir.Trials[9:] {
		if trial.Occasion != 2 || trial.Block != 1+i/3 || trial.Repetition != 4+i/3 ||
			!strings.HasPrefix(trial.Name, fmt.Sprintf("o2_%d_", i+1)) {
			t.Errorf("%+v", trial)
		}
	}
	if err := dir.Close(); err != nil {
		t.Fatal(err)
	}
	resumed := begin(t, path, designOf(t, occasions), Occasion{Begun: monday})
	if diff := cmp.Diff(dir.Design, resumed.Design); diff != "" {
		t.Errorf("resumed: %s", diff)
	}
	changed := designOf(t, strings.Replace(occasions, "128k", "256k", 1))
	if _, err := Begin(path, changed, Occasion{}); err == nil || !strings.Contains(err.Error(), "another study") {
		t.Errorf("another distribution: %v", err)
	}
}

// TestDraws checks that a block draws one value of each distribution for all cells, that blocks differ, and that the
// draws are in the settings and the seed is the cells'.
func TestDraws(t *testing.T) {
	d := designOf(t, occasions)
	if len(d.Cells) != 3 || len(d.Trials) != 9 || !slices.Equal(d.Factors, []string{"storageClass"}) {
		t.Fatalf("%d cells, %d trials, factors %v", len(d.Cells), len(d.Trials), d.Factors)
	}
	blocks := map[string][]Level{}
	for _, trial := range append(slices.Clone(d.Trials), d.NextTrials(Occasion{})...) {
		key := fmt.Sprint(trial.Occasion, "/", trial.Block)
		if was, ok := blocks[key]; ok && !slices.Equal(was, trial.Draws) {
			t.Errorf("block %s has %v and %v", key, was, trial.Draws)
		}
		blocks[key] = trial.Draws
		for _, draw := range trial.Draws {
			if !slices.Contains(trial.Set, "fio."+draw.Factor+"="+draw.Value) {
				t.Errorf("%v is not among %v", draw, trial.Set)
			}
		}
		if !strings.HasPrefix(trial.Set[len(trial.Set)-1], "spec.seed=") {
			t.Errorf("no seed: %v", trial.Set)
		}
	}
	distinct := map[string]bool{}
	for _, draws := range blocks {
		distinct[nameOf(draws)] = true
	}
	if len(blocks) != 6 || len(distinct) < 5 {
		t.Errorf("six blocks draw %v", blocks)
	}
}

func TestAAArm(t *testing.T) {
	two := strings.Replace(occasions, "fio.bs: {choice: [4k, 8k, 16k, 32k, 64k, 128k]}", "fio.bs: [4k, 64k]", 1)
	none := strings.Replace(occasions, "vars.storageClass: [slow, fast]", "", 1)
	for _, tt := range []struct {
		name, text string
		aa         []string
		want       []string // names of the arms
		err        string
	}{
		{"of the study", occasions, nil, []string{"storageClass=fast (A/A) of storageClass=fast"}, ""},
		{"of each other factor", two, nil, []string{"storageClass=fast (A/A) bs=4k of storageClass=fast bs=4k",
			"storageClass=fast (A/A) bs=64k of storageClass=fast bs=64k"}, ""},
		{"by the short name", two, []string{"bs=4k", "storageClass=slow"},
			[]string{"storageClass=slow (A/A) bs=4k of storageClass=slow bs=4k"}, ""},
		{"all", occasions, []string{"all"}, []string{"storageClass=slow (A/A) of storageClass=slow",
			"storageClass=fast (A/A) of storageClass=fast"}, ""},
		{"no factor", none, []string{"all"}, []string{"arm=A (A/A) of arm=A"}, ""},
		{"no such level", occasions, []string{"storageClass=other"}, nil, "selects no cell"},
		{"a distribution", occasions, []string{"fio.bs=4k"}, nil, "no factor with a list"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			aa, err := ParseAA(tt.aa)
			if err != nil {
				t.Fatal(err)
			}
			d, err := New(loaded(t, tt.text), Options{AA: aa})
			if err != nil || tt.err != "" {
				if err == nil || tt.err == "" || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				return
			}
			var got []string
			for _, c := range d.Cells {
				if c.AAOf != nil {
					got = append(got, c.Name()+" of "+d.Cells[*c.AAOf].Name())
					if !slices.Equal(c.Set, d.Cells[*c.AAOf].Set) {
						t.Errorf("%v has other settings", c)
					}
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if _, err := ParseAA([]string{"fast"}); err == nil {
		t.Error("--aa fast was taken")
	}
}

// TestLock checks that only one process at a time runs trials of a study, so that trials of one block never overlap.
func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	first, err := Begin(path, designOf(t, occasions), Occasion{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(path, designOf(t, occasions), Occasion{}); !errors.Is(err, ErrInUse) {
		t.Errorf("two at once: %v", err)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	begin(t, path, designOf(t, occasions), Occasion{})
}

// TestTornBegin checks that what a process leaves that was killed before it wrote study.json does not hinder the next.
func TestTornBegin(t *testing.T) {
	path := t.TempDir()
	for _, name := range []string{lockFile, "." + designFile + ".123"} {
		if err := os.WriteFile(filepath.Join(path, name), []byte("{"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if dir := begin(t, path, designOf(t, occasions), Occasion{}); !dir.Created {
		t.Error("a study was found")
	}
}

// TestOccasionOfEarlierVersion: a study whose version recorded no occasions gets a second one, and keeps its trials.
func TestOccasionOfEarlierVersion(t *testing.T) {
	path := t.TempDir()
	if err := os.CopyFS(path, os.DirFS("../../test/e2e/testdata/kept-2026-11/study")); err != nil {
		t.Fatal(err)
	}
	dir, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dir.AddOccasion(Occasion{Begun: time.Date(2026, 12, 1, 0, 0, 0, 0, time.UTC)}); err != nil {
		t.Fatal(err)
	}
	if dir, err = Open(path); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, trial := range dir.Trials {
		got = append(got, fmt.Sprint(trial.Name, " ", trial.Occasion, " ", trial.Block))
	}
	slices.Sort(got[2:]) // the order was drawn
	for i := range got[2:] {
		got[2+i] = got[2+i][len("o2_1_"):]
	}
	want := []string{"1_parallelism=1_r1 1 1", "2_parallelism=2_r1 1 1", "parallelism=1_r2 2 1", "parallelism=2_r2 2 1"}
	slices.Sort(got[2:])
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if first := dir.Occasions[0].Begun.UTC().Format(time.DateTime); first != "2026-11-24 11:18:48" {
		t.Errorf("the first occasion began at %s, want the start of its first trial", first)
	}
	if dir.Unfinished() != 2 {
		t.Errorf("%d trials remain, want those of the second occasion", dir.Unfinished())
	}
}

// TestFailingProvider: a provider that always fails, with a bundle or before there is one, does not keep the study from
// its next occasion, whose run does not repeat trials of the occasion before; study run does.
func TestFailingProvider(t *testing.T) {
	for name, x := range map[string]*platform{
		"with a bundle":   {fails: "vars.storageClass=slow"},
		"before a bundle": {refuses: "vars.storageClass=slow"},
	} {
		t.Run(name, func(t *testing.T) { failingProvider(t, x) })
	}
}

func failingProvider(t *testing.T, x *platform) {
	x.t, x.left = t, -1
	x.value = func(Job) (float64, time.Duration) { return 1, time.Minute }
	dir, err := Begin(filepath.Join(t.TempDir(), "s"), designOf(t, occasions), Occasion{Zone: "UTC"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	run := func(from, want int) {
		t.Helper()
		x.ran = nil
		if _, err := dir.Run(t.Context(), x, from, io.Discard); err != nil || len(x.ran) != want {
			t.Errorf("%d trials ran, want %d: %v", len(x.ran), want, err)
		}
	}
	run(1, 9)
	if n := dir.Unfinished(); n != 0 {
		t.Errorf("%d trials are unfinished, want none: each ran to its end", n)
	}
	if _, err := dir.AddOccasion(Occasion{Zone: "UTC"}); err != nil {
		t.Fatal(err)
	}
	run(2, 9)
	s, err := dir.Status()
	if err != nil || s.Done != 12 || s.Of != 18 || s.Failed != 6 || s.Metrics[0].Cells[0].Problem != "no values" {
		t.Errorf("%+v, %v", s, err)
	}
	run(1, 6)
}

// TestPlannedOccasions: another number of planned occasions continues the study, is recorded, and is that of the
// command that adds occasions; another number of blocks is refused.
func TestPlannedOccasions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	of := func(o Options, args ...string) *Design {
		d, err := New(loaded(t, occasions), o)
		if err != nil {
			t.Fatal(err)
		}
		d.Command = &Command{Files: []string{"/x.yaml"}, Args: args, Dir: "/"}
		return d
	}
	begin(t, path, of(Options{}), Occasion{})
	more := begin(t, path, of(Options{Occasions: 4}, "--occasions=4"), Occasion{})
	if more.PlannedBefore != 2 || more.Planned != 4 {
		t.Errorf("planned %d, before %d; want 4 and 2", more.Planned, more.PlannedBefore)
	}
	there, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if there.Planned != 4 || !slices.Equal(there.Command.Args, []string{"--occasions=4"}) || len(there.Trials) != 9 {
		t.Errorf("recorded: %d planned, %v, %d trials", there.Planned, there.Command.Args, len(there.Trials))
	}
	if again := begin(t, path, of(Options{Occasions: 4}), Occasion{}); again.PlannedBefore != 0 ||
		!slices.Equal(again.Command.Args, []string{"--occasions=4"}) {
		t.Errorf("the same number again: %+v", again)
	}
	if _, err := Begin(path, of(Options{Occasions: 4, Blocks: 5}), Occasion{}); err == nil ||
		!strings.Contains(err.Error(), "(with other blocks)") {
		t.Errorf("another number of blocks: %v", err)
	}
}
