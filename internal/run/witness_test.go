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

// witness is an engine that has something to say once all is removed.
type witness struct {
	*script
	asked int // how often, with everything removed
}

func (w *witness) Witnessed(context.Context) engine.Testimony {
	if w.torn == 1 {
		w.asked++
	}
	return engine.Testimony{Findings: []engine.Finding{{Name: "orphan", Severity: "warning", Evidence: "one is left"}},
		Distributions: []op.Distribution{{Source: "kubelet", Name: "mount", N: 3}}}
}

// TestWitness: what the engine has to say of a run is asked for once, after the
// removal, and is in the result, also of a run that failed.
func TestWitness(t *testing.T) {
	for name, openErr := range map[string]error{"a run": nil, "one that did not open": errors.New("no driver")} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &witness{script: &script{took: took(time.Second), openErr: openErr}}
				p := plan.Plan{Actions: []plan.Action{makes("v", "", 1)}, Grace: time.Second}
				got := Run(t.Context(), t.Context(), Config{Plan: &p, Engine: e, Clock: op.NewClock(), Record: &memory{}, Observer: quiet{}})
				if e.asked != 1 {
					t.Errorf("asked %d times after the removal, want once", e.asked)
				}
				if diff := cmp.Diff([]bundle.Flag{{Name: "orphan", Severity: "warning", Evidence: "one is left"}}, got.Flags); diff != "" {
					t.Error(diff)
				}
				if diff := cmp.Diff([]op.Distribution{{Source: "kubelet", Name: "mount", N: 3}}, got.Distributions); diff != "" {
					t.Error(diff)
				}
			})
		})
	}
}
