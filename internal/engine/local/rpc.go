package local

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// opTrace is the trace of an op in its context, with the suffix of its milestones.
type opTrace struct {
	trace  *op.Trace
	suffix string
}

type opTraceKey struct{}

func withTrace(ctx context.Context, tr *op.Trace, suffix string) context.Context {
	return context.WithValue(ctx, opTraceKey{}, opTrace{tr, suffix})
}

// mark adds a milestone of the engine to the op of ctx.
func mark(ctx context.Context, name string) {
	if t, ok := ctx.Value(opTraceKey{}).(opTrace); ok {
		t.trace.Mark(name+t.suffix, "runner")
	}
}

// traceRPC marks the start and the end of each call as milestones of its op. It is the innermost interceptor:
// nothing retries beneath it.
func (e *Engine) traceRPC(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn,
	invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
	rpc := method[strings.LastIndexByte(method, '/')+1:]
	t, ok := ctx.Value(opTraceKey{}).(opTrace)
	if !ok {
		return rpcError(rpc, invoke(ctx, method, req, reply, cc, opts...))
	}
	var trailer metadata.MD
	start := e.session.Clock.Now()
	t.trace.MarkAt(rpc+".start"+t.suffix, start, 0, "csi")
	err := invoke(ctx, method, req, reply, cc, append(slices.Clone(opts), grpc.Trailer(&trailer))...)
	end := e.session.Clock.Now()
	t.markParts(trailer.Get(op.PartsKey), start, end)
	t.trace.MarkAt(rpc+".end"+t.suffix, end, 0, "csi")
	awaitDeadline(ctx, err)
	return rpcError(rpc, err)
}

// markParts marks the parts of a call that the driver reports. The call arrived at the driver after start and was
// answered before end: the part of that time that the driver does not account for is assumed half on each way, and
// half of it is the error.
func (t *opTrace) markParts(reported []string, start, end op.Time) {
	if len(reported) != 1 {
		return
	}
	total, parts, ok := op.ParseParts(reported[0])
	slack := int64(end-start) - total
	if !ok || slack < 0 {
		return
	}
	arrived := start + op.Time(slack/2)
	for _, p := range parts {
		t.trace.MarkAt(p.Name+".start"+t.suffix, arrived+op.Time(p.Start), slack/2, "csi")
		t.trace.MarkAt(p.Name+".end"+t.suffix, arrived+op.Time(p.End), slack/2, "csi")
	}
}

// deadlineSlack is how far the driver's deadline may be ahead of ctx's: it receives the remaining time in
// coarse steps.
const deadlineSlack = 50 * time.Millisecond

// awaitDeadline waits for the end of ctx before its deadline is reported as missed, so that ctx has a cause.
// It does not wait for a driver that reports a deadline of its own at another time.
func awaitDeadline(ctx context.Context, err error) {
	if status.Code(err) != codes.DeadlineExceeded {
		return
	}
	if at, ok := ctx.Deadline(); ok && time.Until(at) < deadlineSlack {
		<-ctx.Done()
	}
}

// rpcError converts a gRPC status to the engine's error and preserves the end of the op's own context.
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
	return engine.Errorf(s.Code().String(), "%s: %s", rpc, s.Message()).Wrap(err)
}
