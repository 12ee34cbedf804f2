// Package mixtest runs mixes of actions (enginetest.Mix) on an engine and checks the property that the driver
// lists exactly what was created and not deleted.
package mixtest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/internal/plan"
	"github.com/cnsbench/cnsbench/internal/run"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

// Made is the result of a run, in the order of its ops' ids.
type Made struct {
	ID     string // of the run
	Ops    []op.Op
	Ledger *enginetest.Ledger
	// Identity marks what the run made.
	Identity owned.Identity
	Failed   string // why the run failed; empty: it did not

	plan *plan.Plan
	late bool
}

// Options of one run.
type Options struct {
	ID         string
	Text       string // of the mix
	ToolsImage string
	// Endpoint is the socket of a driver that the engine did not start, if any.
	Endpoint string
	// Late platforms may finish making a volume after its claim has been deleted.
	Late bool
	// Hurry is how long after a first interrupt a second may come.
	Hurry time.Duration
}

// Execute runs a mix, to its end or until it is interrupted at a moment drawn from r, and leaves everything
// in place.
func Execute(t *testing.T, e engine.Engine, o Options, r *rand.Rand) *Made {
	t.Helper()
	p, problems := plan.Load(t.Context(), plan.Input{Files: []plan.File{{Name: "mix.yaml", Data: []byte(o.Text)}},
		Capabilities: e.Capabilities(), Endpoints: map[string]string{"": "/s"}, ToolsImage: o.ToolsImage})
	for _, problem := range problems {
		t.Error(problem)
	}
	if p == nil {
		t.FailNow()
	}
	m := &Made{ID: o.ID, plan: p, late: o.Late, Ledger: &enginetest.Ledger{}}
	m.Identity = owned.New(o.ID)
	m.Identity.Scratch = filepath.Join(t.TempDir(), owned.ScratchName(o.ID))
	if err := os.Mkdir(m.Identity.Scratch, 0o700); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	hard, hurry := context.WithCancel(t.Context())
	defer hurry()
	if r.IntN(2) == 0 {
		after := time.Duration(r.Int64N(int64(p.Runtime + time.Second)))
		defer time.AfterFunc(after, func() { cancel(run.ErrInterrupted) }).Stop()
		if r.IntN(2) == 0 {
			defer time.AfterFunc(after+time.Duration(r.Int64N(int64(o.Hurry))), hurry).Stop()
		}
	}
	clock, rec := op.NewClock(), &enginetest.Recorder{}
	result := run.Run(ctx, hard, run.Config{RunID: m.ID, Plan: p, Engine: e, Clock: clock,
		Record: rec, Observer: enginetest.Unobserved{}, RawDir: t.TempDir(), Keep: true,
		Session: engine.Session{RunID: m.ID, Identity: m.Identity, Clock: clock, Ledger: m.Ledger,
			Dir: m.Identity.Scratch, Queue: engine.Queue{Policy: v1alpha1.QueueShare}, Needs: p.Needs,
			StorageClasses: p.StorageClasses, SnapshotClasses: p.SnapshotClasses}})
	if result.State == bundle.Failed {
		m.Failed = result.Reason
	}
	m.Ops = rec.Ops()
	for _, o := range m.Ops {
		enginetest.CheckMilestones(t, o)
	}
	return m
}

// Accounts evaluates the ops.
func (m *Made) Accounts() *enginetest.Accounts {
	a := enginetest.Account(m.Ops, m.makes, func(workload string) string { return workload + "-data" })
	made := map[string]bool{}
	for _, o := range m.Ops {
		if o.Outcome == op.OK && o.Kind != op.Delete {
			made[fmt.Sprintf("%s-%d", o.Action, o.Instance)] = true
		}
	}
	for _, o := range m.Ops {
		if m.late && o.Kind == op.Delete && o.Outcome != op.Dropped && !made[o.Target] {
			a.MaybeVolumes[o.Target], a.MaybeVolumes[o.Target+"-data"] = true, true
		}
	}
	return a
}

// TimedOut reports whether an op's deadline passed.
func (m *Made) TimedOut() bool {
	return slices.ContainsFunc(m.Ops, func(o op.Op) bool { return o.Outcome == op.Timeout })
}

// makes returns what an action makes.
func (m *Made) makes(action string) string {
	for i := range m.plan.Actions {
		a := &m.plan.Actions[i]
		switch {
		case a.Name != action:
		case a.Workload != nil:
			return "workload"
		case a.Volume != nil, a.Manifest != nil && strings.HasPrefix(a.Name, "claim"):
			return "volume"
		case a.Snapshot != nil && a.Snapshot.Group:
			return "group"
		case a.Snapshot != nil:
			return "snapshot"
		}
	}
	return ""
}

// Compare compares what a driver lists with the objects that must exist, and those that may; ids maps a name
// to the driver's ids.
func (m *Made) Compare(t *testing.T, what string, listed []string, sure, maybe map[string]bool,
	ids func(name string) []string) {
	t.Helper()
	may := map[string]bool{}
	for n := range maybe {
		for _, id := range ids(n) {
			may[id] = true
		}
	}
	for n := range sure {
		of := ids(n)
		if len(of) == 0 {
			t.Errorf("%s %s was created, but no such request was seen", what, n)
		}
		for _, id := range of {
			may[id] = true
			if !slices.Contains(listed, id) {
				t.Errorf("%s %s was created and not deleted, but is not listed", what, n)
			}
		}
	}
	for _, id := range listed {
		if !may[id] {
			t.Errorf("%s %s is listed, but was deleted or never created:%s", what, id, m.history(id, ids))
		}
	}
}

// history returns the ops on a driver's id.
func (m *Made) history(id string, ids func(name string) []string) string {
	var text strings.Builder
	for _, o := range m.Ops {
		made := fmt.Sprintf("%s-%d", o.Action, o.Instance)
		for _, n := range []string{made, made + "-data", o.Target, o.Target + "-data"} {
			if slices.Contains(ids(n), id) {
				fmt.Fprintf(&text, "\n\t%v: %s %s", &o, o.Code, o.Message)
			}
		}
	}
	return text.String()
}
