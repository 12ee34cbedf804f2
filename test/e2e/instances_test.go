//go:build e2e

package e2e

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/run"
)

// TestInstancesAtOnce runs 120 instances at once, and checks that the bundle has the records of each, and that they
// started as close to each other as this machine can start as many processes.
func TestInstancesAtOnce(t *testing.T) {
	const n = 120
	b := newBox(t)
	allowed := burst(t, n)
	r := b.bench(lightly(n)).wants(t, 0)
	allowed = max(allowed, burst(t, n))
	if _, ops := b.readable(b.bundle()); outcomes(ops, "w")["ok"] != n {
		t.Fatalf("%v\n%v", outcomes(ops, "w"), r)
	}
	made, err := bundle.Open(b.bundle())
	if err != nil {
		t.Fatal(err)
	}
	instances, err := made.Instances()
	if err != nil || len(instances) != n {
		t.Fatalf("%d instances, %v", len(instances), err)
	}
	samples := map[string]int{}
	for s, err := range made.Samples() {
		if err != nil {
			t.Fatal(err)
		}
		samples[s.Instance]++
	}
	var late []time.Duration
	for _, i := range instances {
		out, err := os.ReadFile(filepath.Join(b.bundle(), "raw", i.Name, "main", "stdout"))
		if len(i.Starts) != 1 || i.End == nil || !i.End.OK || samples[i.Name] < 3 || string(out) != "done\n" || err != nil {
			t.Fatalf("%+v, %d samples, output %q, %v", i, samples[i.Name], out, err)
		}
		s := i.Starts[0]
		if s.Intended != made.Run.BarrierAt || s.At < s.Intended {
			t.Errorf("%s began at %v, the barrier opened at %v (intended %v)", i.Name, s.At, made.Run.BarrierAt, s.Intended)
		}
		late = append(late, time.Duration(s.At-s.Intended))
	}
	slices.Sort(late)
	bound := 4*allowed + time.Second
	t.Logf("starts after the barrier: median %v, last %v; the machine starts as many processes in %v", late[n/2],
		late[n-1], allowed)
	if late[n-1] > bound {
		t.Errorf("the last instance began %v after the barrier opened, want at most %v", late[n-1], bound)
	}
	b.clean()
}

// burst starts n processes at one instant and returns how long after it the last one ran.
func burst(t *testing.T, n int) time.Duration {
	t.Helper()
	at := time.Now().Add(run.BarrierLead(n))
	late, failed := make([]time.Duration, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() {
			cmd := exec.CommandContext(t.Context(), "sh", "-c", "sleep 0.1")
			time.Sleep(time.Until(at))
			failed[i] = cmd.Start()
			late[i] = time.Since(at)
			failed[i] = errors.Join(failed[i], cmd.Wait())
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		t.Fatal(err)
	}
	return slices.Max(late)
}
