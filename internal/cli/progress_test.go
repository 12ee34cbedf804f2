package cli

import (
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
)

// TestProgressSaysWhatIsWaitedFor checks that the progress line shows the pending waits with the messages of the
// platform, until they end.
func TestProgressSaysWhatIsWaitedFor(t *testing.T) {
	p := &progress{liveLine: liveLine{w: new(strings.Builder), step: plainStep}, clock: op.NewClock(),
		plan: &plan.Plan{}, phase: run.SetUp,
		counts: map[op.Outcome]int64{}, waits: map[string]string{}}
	said := func() string { return p.lines()[0] }
	p.Log(engine.WaitsSource, engine.WaitLine("hold-1-two", "FailedMount: later"))
	long := "FailedAttachVolume: Multi-Attach\nerror " + strings.Repeat("x", 300)
	p.Log(engine.WaitsSource, engine.WaitLine("hold-0-two", long))
	if got := said(); !strings.Contains(got, "hold-0-two waits: FailedAttachVolume: Multi-Attach error x") ||
		!strings.HasSuffix(got, "… (and 1 more)") || len(got) > 250 {
		t.Errorf("%q", got)
	}
	p.Log(engine.WaitsSource, engine.WaitLine("hold-0-two", ""))
	if got := said(); !strings.HasSuffix(got, "hold-1-two waits: FailedMount: later") {
		t.Errorf("%q", got)
	}
	p.Log(engine.WaitsSource, engine.WaitLine("hold-1-two", ""))
	if got := said(); strings.Contains(got, "waits") {
		t.Errorf("%q", got)
	}
}

// TestProgressSaysWhyTheRunContinues checks that the line of a run whose workloads are restarted before they end says so,
// in place of a time that has passed.
func TestProgressSaysWhyTheRunContinues(t *testing.T) {
	p := &progress{liveLine: liveLine{w: new(strings.Builder), step: plainStep}, clock: op.NewClock(),
		plan:  &plan.Plan{Restarts: []plan.Restart{{Action: "kills", Workloads: []string{"fio"}, Needs: 45e9}}},
		phase: run.Running, counts: map[op.Outcome]int64{}, waits: map[string]string{}, started: map[string]restarts{}}
	p.began = p.clock.Now() - 50e9
	if got := p.lines()[0]; strings.Contains(got, "runtime") {
		t.Errorf("before a restart: %q", got)
	}
	for _, action := range []string{"kills", "kills", "snapshots"} {
		p.OpEnded(&op.Op{Action: action, Outcome: op.OK})
	}
	const want = "(no spec.runtime: fio began its time of 45s again 0 s ago, 2 restarts by kills)"
	if got := p.lines()[0]; !strings.Contains(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}
