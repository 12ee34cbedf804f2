package awkwarddriver

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/container-storage-interface/spec/lib/go/csi"
)

// fails answers a call that fails before its work.
func (d *Driver) fails(c *call) error {
	if d.again("aborted", &d.config.Aborted, c) {
		return status.Errorf(codes.Aborted, "%s: an operation is pending", c.rpc)
	}
	if d.again("unavailable", &d.config.Unavailable, c) {
		return status.Errorf(codes.Unavailable, "%s: the storage is not reachable", c.rpc)
	}
	return nil
}

// again reports whether a call is one of those that fail, and counts it.
func (d *Driver) again(how string, r *Repeats, c *call) bool {
	if !r.concern(c) {
		return false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	key := how + " " + c.rpc + " " + c.object()
	d.answered[key]++
	return d.answered[key] <= r.Times
}

// background is the work of a call that has been answered.
type background struct {
	done chan struct{}
	resp any
	err  error
}

// inBackground calls work, and returns its answer, unless the options want the work to be done in the background: then
// the call, and all others of the object until the work is done, fail. The call after that gets the answer.
func (d *Driver) inBackground(ctx context.Context, c *call, work func(context.Context) (any, error)) (any, error) {
	takes, first := d.beyond(c)
	if takes == 0 {
		return work(ctx)
	}
	key := c.rpc + " " + c.object()
	d.mu.Lock()
	b, begun := d.working[key]
	if !begun {
		b = &background{done: make(chan struct{})}
		d.working[key] = b
		go func() {
			time.Sleep(takes)
			b.resp, b.err = work(context.WithoutCancel(ctx))
			close(b.done)
		}()
	}
	d.mu.Unlock()
	if !begun {
		if first == codes.DeadlineExceeded {
			_ = sleep(ctx, takes/2)
		}
		return nil, status.Errorf(first, "%s is still working", c.rpc)
	}
	select {
	case <-b.done:
	default:
		return nil, status.Errorf(codes.Aborted, "an operation with the given ID %s already exists", c.object())
	}
	if b.err != nil {
		d.mu.Lock()
		delete(d.working, key)
		d.mu.Unlock()
		return nil, b.err
	}
	return work(ctx)
}

// beyond returns how long a call works in the background, 0: not at all, and the code of the first answer.
func (d *Driver) beyond(c *call) (time.Duration, codes.Code) {
	if m, ok := c.req.(*csi.CreateVolumeRequest); ok && m.GetVolumeContentSource() != nil && d.config.AsyncCopies > 0 {
		return d.config.AsyncCopies, codes.Aborted
	}
	if c.changes() {
		return d.config.InProgress, codes.DeadlineExceeded
	}
	return 0, codes.OK
}
