package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// reporter is an engine that reports findings after everything is removed.
type reporter struct {
	*script
	calls int // calls of Report after the removal
}

func (r *reporter) Report(context.Context) engine.RunReport {
	if r.torn == 1 {
		r.calls++
	}
	return engine.RunReport{Findings: []engine.Finding{{Name: "orphan", Severity: "warning", Evidence: "one is left"}},
		Distributions: []op.Distribution{{Source: "kubelet", Name: "mount", N: 3}}}
}

// TestReporter checks that the engine's report is collected once, after the removal, and is in the result,
// also if the run failed.
func TestReporter(t *testing.T) {
	for name, openErr := range map[string]error{"a run": nil, "one that did not open": errors.New("no driver")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &reporter{script: &script{took: took(time.Second), openErr: openErr}}
				p := plan.Plan{Actions: []plan.Action{makes("v", "", 1)}, Grace: time.Second}
				got := Run(t.Context(), t.Context(),
					Config{Plan: &p, Engine: e, Clock: op.NewClock(), Record: &memory{}, Observer: quiet{}})
				if e.calls != 1 {
					t.Errorf("Report called %d times after the removal, want once", e.calls)
				}
				if diff := cmp.Diff([]bundle.Flag{{Name: "orphan", Severity: "warning", Evidence: "one is left"}},
					got.Flags); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]op.Distribution{{Source: "kubelet", Name: "mount", N: 3}},
					got.Distributions); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
