package run

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// stuck is an engine that removes nothing.
type stuck struct {
	*script
	waited time.Duration
}

func (s *stuck) Teardown(ctx context.Context, _ engine.Ledger) error {
	began := time.Now()
	<-ctx.Done()
	s.waited = time.Since(began)
	return errors.New("all is left")
}

// owes is a ledger with a number of objects.
type owes int

func (owes) Add(op.LedgerEntry) error  { return nil }
func (owes) Note(op.LedgerEntry) error { return nil }
func (owes) Done(string, string) error { return nil }
func (n owes) Open() []op.LedgerEntry  { return make([]op.LedgerEntry, n) }

// TestRemovalLimit checks that a run waits longer for the removal of more objects, and then ends.
func TestRemovalLimit(t *testing.T) {
	for n, want := range map[owes]time.Duration{0: 5 * time.Minute, 10_000: 5*time.Minute + 1000*time.Second} {
		synctest.Test(t, func(t *testing.T) {
			e := &stuck{script: &script{took: took(time.Second)}}
			p := plan.Plan{Actions: []plan.Action{makes("v", "", 1)}, Grace: time.Second}
			c := Config{Plan: &p, Engine: e, Clock: op.NewClock(), Record: &memory{}, Observer: quiet{}}
			c.Session.Ledger = n
			if got := Run(t.Context(), t.Context(), c); got.Leftovers == nil || e.waited != want {
				t.Errorf("%d objects: waited %v, want %v; left: %v", n, e.waited, want, got.Leftovers)
			}
		})
	}
}
