package local

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/sidecar"
	"github.com/cnsbench/cnsbench/internal/op"
)

// reconnect bounds how long after its restart a driver is found again.
var reconnect = backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: time.Second}

// connectTimeout is how long one attempt to connect may take. Without it, that is the delay before the next attempt,
// within which a driver on a busy machine may not answer.
const connectTimeout = 20 * time.Second

// reachTimeout is how long calls are repeated while no driver listens on the socket. A driver that is restarted listens
// again before; one that is gone would hold each op until its deadline.
const reachTimeout = 30 * time.Second

// removalKey marks the context of a removal at the end of a run, which is repeated after all answers that may change.
type removalKey struct{}

// repeat repeats a call as the sidecar or kubelet does whose call it is, until the deadline of its op. Every attempt
// and every wait is in the op's record: a wait is not the driver's time. It is the outermost interceptor.
func (d *driver) repeat(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	rpc := path.Base(method)
	policy, repeated := sidecar.BackoffOf(rpc)
	policy = policy.Scaled(d.engine.RetryStart)
	wait := policy.Start
	for n := 1; ; n++ {
		err := invoke(ctx, method, req, reply, cc, opts...)
		d.noteReach(err)
		if err == nil || !repeated || ctx.Err() != nil || !d.mayChange(ctx, rpc, err) {
			return err
		}
		if waitErr := d.backoff(ctx, wait); waitErr != nil {
			return inVain(ctx, n, waitErr, err)
		}
		wait = policy.Next(wait)
		if t, ok := ctx.Value(opTraceKey{}).(opTrace); ok {
			t.trace.Attempt()
		}
	}
}

// inVain is the error of a call whose deadline has come before it was repeated.
func inVain(ctx context.Context, attempts int, waitErr, last error) error {
	code, message := codes.DeadlineExceeded.String(), last.Error()
	if !errors.Is(waitErr, context.DeadlineExceeded) {
		code = codes.Canceled.String()
	}
	return engine.Errorf(code, "%d attempts until the deadline; the last answer: %s", attempts, message).
		Wrap(errors.Join(waitErr, context.Cause(ctx), last))
}

// backoff waits, as a span of the op.
func (d *driver) backoff(ctx context.Context, wait time.Duration) error {
	clock := d.engine.session.Clock
	if t, ok := ctx.Value(opTraceKey{}).(opTrace); ok {
		t.trace.MarkAt(op.Backoff+".start"+t.suffix, clock.Now(), 0, "runner")
		defer func() { t.trace.MarkAt(op.Backoff+".end"+t.suffix, clock.Now(), 0, "runner") }()
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.exited:
		return fmt.Errorf("%w", d.endedError())
	case <-timer.C:
		return nil
	}
}

// mayChange reports whether the call is to be repeated after an answer.
func (d *driver) mayChange(ctx context.Context, rpc string, err error) bool {
	code := status.Code(err)
	select {
	case <-d.exited: // a built-in driver, which does not come back
		return false
	case <-d.stopped:
		return false
	default:
	}
	switch {
	case code == codes.Unavailable:
		since := d.unreachable.Load()
		return since == nil || time.Since(*since) < reachTimeout
	case sidecar.Pending(code):
		return true
	case strings.HasPrefix(rpc, "Create") && nothingMade(err):
		return false
	}
	removal := ctx.Value(removalKey{}) != nil
	return removal && d.external() && !sidecar.Hopeless(code) && code != codes.NotFound && !d.engine.tired.Load()
}

// noteReach notes since when no call has reached the driver. The answer of a driver that is up may be Unavailable, too.
func (d *driver) noteReach(err error) {
	if status.Code(err) != codes.Unavailable || d.conn.GetState() == connectivity.Ready {
		d.unreachable.Store(nil)
		return
	}
	now := time.Now()
	d.unreachable.CompareAndSwap(nil, &now)
}

// nothingMade reports whether the answer to a repeated Create call says that there is no such object: a driver that has
// one of that name answers with it, whatever its capacity is now. InvalidArgument says nothing: it may be of the
// secrets.
func nothingMade(err error) bool {
	switch status.Code(err) {
	case codes.ResourceExhausted, codes.OutOfRange:
		return true
	}
	return false
}
