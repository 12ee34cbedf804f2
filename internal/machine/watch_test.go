package machine_test

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/machine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// TestWatch reads this machine while a child of this process is busy: its time is
// the run's, and grows.
func TestWatch(t *testing.T) {
	if _, err := machine.NewProcesses().Read(); err != nil {
		t.Skip("not all processes are visible here:", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	busy := exec.CommandContext(ctx, "sh", "-c", "while :; do :; done")
	if err := busy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = busy.Wait() }()
	var all []op.Machine
	if err := machine.Watch(ctx, op.NewClock(), nil, func(m op.Machine) { all = append(all, m) }); err != nil {
		t.Fatal(err)
	}
	if len(all) < 2 {
		t.Fatalf("%d readings, want one at least at the beginning and one at the end", len(all))
	}
	first, last := all[0], all[len(all)-1]
	if last.BusyNanos <= first.BusyNanos || last.At <= first.At || last.CPUs < 1 || last.ID == "" {
		t.Errorf("from %+v\nto %+v", first, last)
	}
	for i := len(all) - 1; i > 0; i-- {
		if u := all[i].Use; u != nil {
			if u.RunNanos <= first.Use.RunNanos {
				t.Errorf("the run used %d ns, then %d", first.Use.RunNanos, u.RunNanos)
			}
			return
		}
	}
	t.Error("processes were read only once")
}
