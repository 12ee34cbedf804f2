package run

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// hangingParser is an engine whose parser scripts end with their context only.
type hangingParser struct{ engine.Engine }

func (hangingParser) Parse(ctx context.Context, _ engine.ParseRequest) ([]byte, error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}

// unrecorded drops the log.
type unrecorded struct{ Recorder }

func (unrecorded) Log(op.Time, string, string) {}

// silent observes nothing.
type silent struct{ Observer }

func (silent) Log(string, string) {}

// TestInterruptedParser: an interrupt ends a parser that hangs, and the run is not complete. After a run that was
// interrupted already, it takes a second interrupt.
func TestInterruptedParser(t *testing.T) {
	for _, tt := range []struct {
		name   string
		before bool // the run was interrupted before
		second bool
		state  string
	}{
		{"the first interrupt", false, false, string(bundle.Interrupted)},
		{"the second interrupt", true, true, string(bundle.Interrupted)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			soft, interrupt := context.WithCancelCause(t.Context())
			hard, again := context.WithCancel(t.Context())
			defer again()
			r := &runner{hard: hard, soft: soft, same: map[sameFlag]int{}}
			r.Engine, r.Observer, r.Record, r.Clock = hangingParser{}, silent{}, unrecorded{}, op.NewClock()
			r.result.State = bundle.Complete
			if tt.before {
				interrupt(ErrInterrupted)
			}
			done := make(chan struct{})
			go func() { defer close(done); r.parseByScript([]parsing{{instance: "a"}}) }()
			select {
			case <-done:
				t.Fatal("the parser has ended before the interrupt")
			case <-time.After(50 * time.Millisecond):
			}
			interrupt(ErrInterrupted)
			if tt.second {
				again()
			}
			select {
			case <-done:
			case <-time.After(10 * time.Second):
				t.Fatal("the parser goes on after the interrupt")
			}
			if string(r.result.State) != tt.state || len(r.result.Flags) != 1 {
				t.Errorf("state %v, flags %v", r.result.State, r.result.Flags)
			}
			if cause := context.Cause(soft); !errors.Is(cause, ErrInterrupted) {
				t.Error(cause)
			}
		})
	}
}
