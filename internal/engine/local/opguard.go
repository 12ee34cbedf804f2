package local

import (
	"context"
	"errors"
	"sync"

	"github.com/cnsbench/cnsbench/internal/engine"
)

// opGuard allows one disruptive op (kill, rollout, reattach) on an object at a time. A second one is refused,
// since waiting would be an unrecorded queue. The zero value is ready to use; it is safe for concurrent use.
type opGuard struct {
	mu     sync.Mutex
	cancel context.CancelCauseFunc // of the op in progress
	done   chan struct{}           // closed when it ends; nil: none
	closed bool
}

var errRemoved = errors.New("the object is being removed")

// start starts an op, whose context also ends when its object is removed.
func (d *opGuard) start(ctx context.Context, name string) (context.Context, func(), error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case d.closed:
		return nil, nil, &engine.Error{Code: "NotFound", Message: name + " does not exist any more"}
	case d.done != nil:
		return nil, nil, &engine.Error{Code: "Aborted", Message: "another operation on " + name + " is in progress"}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	d.cancel, d.done = cancel, done
	return ctx, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		cancel(nil)
		d.cancel, d.done = nil, nil
		close(done)
	}, nil
}

// reopen undoes shut, after a failed removal for one.
func (d *opGuard) reopen() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = false
}

// shut refuses further ops, cancels the one in progress and waits for its end or ctx's. It reports whether there was
// one.
func (d *opGuard) shut(ctx context.Context) (waited bool) {
	d.mu.Lock()
	d.closed = true
	done := d.done
	if d.cancel != nil {
		d.cancel(errRemoved)
	}
	d.mu.Unlock()
	if done == nil {
		return false
	}
	select {
	case <-done:
	case <-ctx.Done():
	}
	return true
}
