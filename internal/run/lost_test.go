package run

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// prober is an engine that reports a lost platform only when it is probed.
type prober struct {
	*script
	err   error
	asked int
}

func (p *prober) Lost(context.Context) error { p.asked++; return p.err }

// TestLost checks that the engine is probed when the last op has ended, that a lost platform fails the run,
// and that an earlier failure remains the reason.
func TestLost(t *testing.T) {
	gone := errors.New("the driver is gone")
	for _, tt := range []struct {
		name          string
		lost, openErr error
		state         bundle.State
		reason        string
		asked         int
	}{
		{"serves", nil, nil, bundle.Complete, "", 1},
		{"gone", gone, nil, bundle.Failed, "the platform was lost: the driver is gone", 1},
		{"did not open", gone, errors.New("no driver"), bundle.Failed, "no driver", 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := &prober{script: &script{took: took(time.Second), openErr: tt.openErr}, err: tt.lost}
				p := plan.Plan{Actions: []plan.Action{makes("v", "", 1)}, Grace: time.Second}
				got := Run(t.Context(), t.Context(),
					Config{Plan: &p, Engine: e, Clock: op.NewClock(), Record: &memory{}, Observer: quiet{}})
				if got.State != tt.state || !strings.Contains(got.Reason, tt.reason) || e.asked != tt.asked ||
					e.torn != 1 {
					t.Errorf("%s: %s; asked %d times, removed %d times", got.State, got.Reason, e.asked, e.torn)
				}
			})
		})
	}
}

// TestFailsWhileDraining checks that a loss of the platform after the rates have stopped fails the run.
func TestFailsWhileDraining(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := &script{}
		e.took = func(engine.Request) (time.Duration, error) {
			time.AfterFunc(2*time.Second, func() { e.sink.Failed(errors.New("the driver ended")) })
			return 3 * time.Second, nil
		}
		v := makes("v", "r", 1)
		p := plan.Plan{Actions: []plan.Action{v}, Rates: []plan.Rate{every(time.Second)},
			Runtime: 1500 * time.Millisecond, Grace: 10 * time.Second}
		got := Run(t.Context(), t.Context(), Config{Plan: &p, Engine: e, Clock: op.NewClock(), Record: &memory{},
			Observer: quiet{}})
		if got.State != bundle.Failed || !strings.Contains(got.Reason, "the driver ended") {
			t.Errorf("%s: %s", got.State, got.Reason)
		}
	})
}
