package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
)

// busyRuns is the number of runs of each kind, mostWrong the number of them that may be flagged
// wrongly.
const (
	busyRuns  = 20
	mostWrong = 1
)

// hostBusy repeats one run with one seed, alone and beside a compiler in random order, and checks
// the flag hostBusy.
func hostBusy(ctx context.Context, e *env) (table, error) {
	var t table
	n := pick(e, busyRuns, 3)
	kinds := append(slices.Repeat([]bool{true}, n), slices.Repeat([]bool{false}, n)...)
	rand.New(rand.NewPCG(e.seed, 2)).Shuffle(len(kinds), func(i, j int) { kinds[i], kinds[j] = kinds[j], kinds[i] })
	flagged, iops := map[bool]int{}, map[bool][]float64{}
	for i, beside := range kinds {
		trial, err := e.busyRun(ctx, beside)
		if err != nil {
			return t, fmt.Errorf("run %d: %w", i+1, err)
		}
		j := slices.IndexFunc(trial.summary.Validity, func(f bundle.Flag) bool { return f.Name == "hostBusy" })
		if j >= 0 {
			flagged[beside]++
		}
		if wrong := beside != (j >= 0); wrong {
			t.note("judged wrongly: beside a compiler %v; machines %+v", beside, trial.summary.Machines)
		}
		iops[beside] = append(iops[beside], readIOPS(trial))
		trial.remove()
	}
	t.add("quiet runs that are flagged", fmt.Sprintf("%d of %d", flagged[false], n), fmt.Sprintf("≤ %d", mostWrong),
		metIf(flagged[false] <= mostWrong), n)
	t.add("runs beside a compiler that are flagged", fmt.Sprintf("%d of %d", flagged[true], n),
		fmt.Sprintf("≥ %d", n-mostWrong), metIf(flagged[true] >= n-mostWrong), n)
	t.info(2*n, "median read IOPS beside a compiler ÷ alone", "× %.2f", middle(iops[true])/middle(iops[false]))
	return t, nil
}

// readIOPS returns the read IOPS of the single workload.
func readIOPS(t *trial) float64 {
	for _, w := range t.summary.Workloads {
		for _, m := range w.Metrics {
			if m.Name == "read" && m.PerSecond != nil {
				return *m.PerSecond
			}
		}
	}
	return math.NaN()
}

// busyRun runs the Benchmark. If beside is set, the compiler runs from before the run until after
// it.
func (e *env) busyRun(ctx context.Context, beside bool) (*trial, error) {
	if beside {
		end, err := e.compiler(ctx)
		if err != nil {
			return nil, err
		}
		defer end()
	}
	return e.run(ctx, `apiVersion: cnsbench.dev/v1alpha1
kind: Benchmark
metadata: {name: busy}
spec:
  seed: 1
  actions:
    - {name: fio, createObjSpec: {workload: fio, count: 1, vars: {storageClass: loopfile, runtime: "6", volumeSize: 512Mi}}}
`)
}

// compiler compiles Go's standard library repeatedly until end is called.
func (e *env) compiler(ctx context.Context) (end func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	cache := filepath.Join(e.tmp, "compiler")
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			c := exec.CommandContext(ctx, "go", "build", "-a", "std")
			c.Env = append(os.Environ(), "GOCACHE="+cache)
			_ = c.Run() // it is killed in the end
		}
	}()
	time.Sleep(2 * time.Second) // the time until it compiles
	return func() { cancel(); <-done; _ = os.RemoveAll(cache) }, ctx.Err()
}

func middle(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}
