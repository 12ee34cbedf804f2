package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// traced is what an op's context carries: where its milestones go, and the
// suffix that tells its volumes apart.
type traced struct {
	trace  *op.Trace
	suffix string
}

type tracedKey struct{}

func withTrace(ctx context.Context, tr *op.Trace, suffix string) context.Context {
	return context.WithValue(ctx, tracedKey{}, traced{tr, suffix})
}

// mark adds a milestone of the engine to the op that ctx belongs to.
func mark(ctx context.Context, name string) {
	if t, ok := ctx.Value(tracedKey{}).(traced); ok {
		t.trace.Mark(name+t.suffix, "runner")
	}
}

// traceRPC stamps the start and the end of each call as milestones of the op
// that made it. It is the innermost layer: nothing retries beneath it.
func (e *Engine) traceRPC(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	rpc := method[strings.LastIndexByte(method, '/')+1:]
	t, ok := ctx.Value(tracedKey{}).(traced)
	if !ok {
		return rpcError(rpc, invoke(ctx, method, req, reply, cc, opts...))
	}
	t.trace.Mark(rpc+".start"+t.suffix, "csi")
	err := invoke(ctx, method, req, reply, cc, opts...)
	t.trace.Mark(rpc+".end"+t.suffix, "csi")
	awaitDeadline(ctx, err)
	return rpcError(rpc, err)
}

// deadlineSlack is by how much the other side may be ahead of our own timer:
// it is told the time that is left, in coarse steps.
const deadlineSlack = 50 * time.Millisecond

// awaitDeadline lets ctx end before its deadline is reported as missed, so
// that whoever asks ctx for the cause is told it. A driver that reports a
// deadline of its own, at another time, is not waited for.
func awaitDeadline(ctx context.Context, err error) {
	if status.Code(err) != codes.DeadlineExceeded {
		return
	}
	if at, ok := ctx.Deadline(); ok && time.Until(at) < deadlineSlack {
		<-ctx.Done()
	}
}

// rpcError translates a gRPC status into the engine's error. The end of the
// op's own context stays recognisable.
func rpcError(rpc string, err error) error {
	if err == nil {
		return nil
	}
	s, _ := status.FromError(err)
	switch s.Code() {
	case codes.DeadlineExceeded:
		err = errors.Join(context.DeadlineExceeded, err)
	case codes.Canceled:
		err = errors.Join(context.Canceled, err)
	}
	return &engine.Error{Code: s.Code().String(), Message: fmt.Sprintf("%s: %s", rpc, s.Message()), Err: err}
}
