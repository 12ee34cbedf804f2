package study

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

const preconditioned = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: x}
spec:
  seed: 7
  blocks: 2
  factors:
    vars.storageClass: [slow, fast]
    fio.bs: [4k]
  precondition:
    rounds: 2
    benchmark: {actions: [{name: fill, createObjSpec: {workload: fio}}]}
    steadyState: {response: iops(fio.read), atMost: 8}
  responses: [iops(fio.read)]
  benchmark: {actions: [{name: fio, createObjSpec: {workload: fio}}]}
`

// TestPrecondition: rounds repeat until the rule holds for a cell that becomes steady at a known round, and end at the
// bound for a cell that never does; an interruption in between repeats no round.
func TestPrecondition(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	rounds := map[string]int{}
	x := &platform{t: t, now: time.Date(2026, 11, 23, 10, 0, 0, 0, time.UTC), left: 4}
	x.value = func(j Job) (float64, time.Duration) {
		if !j.Precondition {
			return 50, time.Second
		}
		class := j.Set[0]
		rounds[class]++
		if class == "vars.storageClass=slow" {
			return float64(100 * rounds[class]), time.Second // rises without end
		}
		return map[int]float64{1: 300, 2: 200}[rounds[class]] + 100, time.Second // steady from the third round on
	}
	var log strings.Builder
	for range 40 {
		dir, err := Begin(path, designOf(t, preconditioned), Occasion{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = dir.Run(t.Context(), x, 1, &log)
		if closed := dir.Close(); closed != nil {
			t.Fatal(closed)
		}
		if err == nil {
			break
		}
		if !errors.Is(err, ErrInterrupted) {
			t.Fatal(err)
		}
		x.left = 4
	}
	if rounds["vars.storageClass=slow"] != 8 || rounds["vars.storageClass=fast"] != 7 || len(x.ran) != 15+4 {
		t.Errorf("rounds %v, %d runs; want 8 that are not steady, 7 of which the last five are, 4 trials", rounds,
			len(x.ran))
	}
	for _, j := range x.jobs {
		if j.Precondition && (len(j.Set) != 1 || !strings.HasPrefix(j.Set[0], "vars.")) {
			t.Errorf("a round has %v: want the variables only", j.Set)
		}
	}
	if !strings.Contains(log.String(), "storageClass=slow bs=4k is not steady after 8 rounds") {
		t.Errorf("not said:\n%s", &log)
	}
	checkWarmUps(t, path)
}

// checkWarmUps reads what was recorded: the rounds, and a table without them.
func checkWarmUps(t *testing.T, path string) {
	t.Helper()
	dir, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	list, err := dir.WarmUps()
	if err != nil || len(list) != 2 {
		t.Fatalf("%+v, %v", list, err)
	}
	for _, w := range list {
		if want := strings.Contains(w.Cell, "fast"); w.Steady == nil || *w.Steady != want || w.Occasion != 1 {
			t.Errorf("%+v", w)
		}
	}
	table, err := dir.Table()
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range table.Rows {
		if v := r.Values[0]; v.N != 2 || *v.Max != 50 {
			t.Errorf("a round is among the values: %+v", v)
		}
	}
}

// TestRounds: a number of rounds without a rule.
func TestRounds(t *testing.T) {
	text := strings.Replace(preconditioned, "    steadyState: {response: iops(fio.read), atMost: 8}\n", "", 1)
	text = strings.Replace(text, "    benchmark: {actions: [{name: fill, createObjSpec: {workload: fio}}]}\n", "", 1)
	x := &platform{t: t, left: -1, value: func(Job) (float64, time.Duration) { return 1, time.Second }}
	dir, err := Begin(filepath.Join(t.TempDir(), "s"), designOf(t, text), Occasion{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := dir.Run(t.Context(), x, 1, io.Discard); err != nil {
		t.Fatal(err)
	}
	warm := slices.DeleteFunc(slices.Clone(x.ran), func(name string) bool { return !strings.Contains(name, "_w") })
	if len(warm) != 4 || len(x.ran) != 8 || !slices.Equal(warm, x.ran[:4]) {
		t.Errorf("ran %v: want two rounds of each cell first", x.ran)
	}
	if j := x.jobs[0]; j.Precondition || len(j.Set) != 2 {
		t.Errorf("%+v: want the study's Benchmark with the cell's values", j)
	}
}

// TestFailedRounds: rounds that fail count, so that those after them are listed too.
func TestFailedRounds(t *testing.T) {
	x := &platform{t: t, left: -1, fails: "vars.storageClass=slow",
		value: func(Job) (float64, time.Duration) { return 1, time.Second }}
	dir, err := Begin(filepath.Join(t.TempDir(), "s"), designOf(t, preconditioned), Occasion{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := dir.Close(); err != nil {
			t.Error(err)
		}
	}()
	if _, err := dir.Run(t.Context(), x, 1, io.Discard); err != nil {
		t.Fatal(err)
	}
	list, err := dir.WarmUps()
	if err != nil || len(list) != 2 || list[0].Rounds != 8 || *list[0].Steady || list[1].Rounds != 5 || !*list[1].Steady {
		t.Errorf("%+v, %v: want 8 rounds that failed, and 5 that are steady", list, err)
	}
}
