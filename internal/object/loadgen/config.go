package loadgen

import (
	"context"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/model"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Config of a run.
type Config struct {
	Workload *model.Workload
	// Open opens the store of a work.
	Open  func(*model.Store) (client.Store, error)
	Clock op.Clock
	// Sleep waits for an instant; false if ctx ended first.
	Sleep func(ctx context.Context, until time.Time) bool
	Seed  uint64 // of all that is drawn
	// Grace is how long to wait for operations in flight after a work's end.
	Grace    time.Duration
	Observer Observer
	Log      Log // of each operation; nil: none
	// Begin is called when the stage is ready; it waits for the instant at which its works begin, and returns it. An
	// error ends the stage. Nil: they begin at once.
	Begin func(ctx context.Context) (op.Time, error)

	nonce uint64 // distinguishes the writes of this run from others
	// owned and absent are the containers that were found so before a stage, by store and name. Nothing is deleted
	// from an absent one: another program may have made it since.
	owned, absent map[string]bool
}

// Observer follows a run. Its methods are called from one goroutine at a time and must not block for long: the clock
// goes on.
type Observer interface {
	StageBegan(s *model.Stage, at op.Time)
	// Second receives, about each second, the operations that ended in it.
	Second(stage string, w *model.Work, from, to op.Time, cells Cells)
}
