package csidriver

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/inject"
	"github.com/cnsbench/cnsbench/internal/op"
)

// RPCs lists the RPCs that an injection can name.
func RPCs() []string {
	var names []string
	for _, desc := range []grpc.ServiceDesc{csi.Identity_ServiceDesc, csi.Controller_ServiceDesc,
		csi.GroupController_ServiceDesc, csi.Node_ServiceDesc} {
		for _, m := range desc.Methods {
			names = append(names, m.MethodName)
		}
	}
	return names
}

// callInfo collects what a handler reports to the truth log and to the client. One goroutine serves a call, so it
// needs no lock.
type callInfo struct {
	began  time.Time
	queued time.Duration
	parts  []op.Part
}

// part reports a step of the call that began at an instant and ends now.
func part(ctx context.Context, name string, began time.Time) {
	n := callInfoOf(ctx)
	n.parts = append(n.parts, op.Part{Name: name, Start: int64(began.Sub(n.began)), End: int64(time.Since(n.began))})
}

type callInfoKey struct{}

func callInfoOf(ctx context.Context) *callInfo {
	if n, ok := ctx.Value(callInfoKey{}).(*callInfo); ok {
		return n
	}
	return &callInfo{}
}

// intercept applies the injector's decision and logs the call.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any,
	error) {
	start := time.Now()
	rpc := path.Base(info.FullMethod)
	decision := s.inject.Decide(rpc, start.Sub(s.start))
	n := &callInfo{began: start}
	if around := s.driver.opts.Around; around != nil {
		work := handler
		handler = func(ctx context.Context, req any) (any, error) { return around(ctx, req, info, work) }
	}
	resp, err := s.callInjected(context.WithValue(ctx, callInfoKey{}, n), req, decision, handler)
	if err != nil {
		err = answered(toStatus(err), rpc)
	}
	took := time.Since(start)
	if len(n.parts) > 0 {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(op.PartsKey, op.FormatParts(int64(took), n.parts))) // only without a stream
	}

	r := Record{
		Event: eventRPC, RPC: rpc, Node: s.driver.nodeOf(ctx), StartUnixNs: start.UnixNano(), EndUnixNs: wall(start,
			took), DurationNs: int64(took),
		InjectedDelayNs: int64(decision.Window + decision.Delay + decision.Stall), Injected: injectedNames(decision), QueuedNs: int64(n.queued),
		Code: status.Code(err).String(), Message: status.Convert(err).Message(),
	}
	identify(&r, req, resp)
	s.driver.log.write(r)
	return resp, err
}

// answered marks an Unavailable of this driver, so that its client knows it from a driver that has ended.
func answered(err error, rpc string) error {
	st := status.Convert(err)
	if st.Code() != codes.Unavailable {
		return err
	}
	marked, markErr := st.WithDetails(wrapperspb.String(rpc))
	if markErr != nil {
		return err
	}
	return marked.Err()
}

// callInjected runs the handler with the injected effects before or after it.
func (s *Server) callInjected(ctx context.Context, req any, decision inject.Decision,
	handler grpc.UnaryHandler) (any, error) {
	if err := s.sleep(ctx, decision.Window); err != nil {
		return nil, err
	}
	if !decision.After {
		if err := s.applyInjection(ctx, decision); err != nil {
			return nil, err
		}
	}
	resp, err := handler(ctx, req)
	if decision.After && err == nil {
		if err := s.applyInjection(ctx, decision); err != nil {
			return nil, err
		}
	}
	return resp, err
}

// applyInjection delays, hangs or fails a call.
func (s *Server) applyInjection(ctx context.Context, decision inject.Decision) error {
	if decision.Hang {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stopping:
			return status.Error(codes.Unavailable, "the driver is stopping")
		}
	}
	if err := s.sleep(ctx, decision.Delay+decision.Stall); err != nil {
		return err
	}
	if decision.Code != codes.OK {
		return status.Error(decision.Code, "injected error")
	}
	return nil
}

// sleep ends early when the caller gives up or the server stops.
func (s *Server) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-s.stopping:
		return status.Error(codes.Unavailable, "the driver is stopping")
	}
}

func injectedNames(decision inject.Decision) string {
	var what []string
	for _, w := range []struct {
		on   bool
		name string
	}{
		{decision.Window > 0, "window"}, {decision.Delay > 0, "delay"}, {decision.Stall > 0, "stall"},
		{decision.Hang, "hang"}, {decision.Code != codes.OK, "error"},
	} {
		if w.on {
			what = append(what, w.name)
		}
	}
	return strings.Join(what, "+")
}

// identify sets the objects of the call from the request's fields and, for created objects, the response's.
func identify(r *Record, req, resp any) {
	if m, ok := req.(interface{ GetName() string }); ok {
		r.Name = m.GetName()
	}
	if m, ok := req.(interface{ GetVolumeId() string }); ok {
		r.Volume = m.GetVolumeId()
	}
	if m, ok := req.(interface{ GetSourceVolumeId() string }); ok {
		r.Volume = m.GetSourceVolumeId()
	}
	if m, ok := req.(interface{ GetSnapshotId() string }); ok {
		r.Snapshot = m.GetSnapshotId()
	}
	if m, ok := req.(interface{ GetGroupSnapshotId() string }); ok {
		r.Group = m.GetGroupSnapshotId()
	}
	switch m := resp.(type) {
	case *csi.CreateVolumeResponse:
		r.Volume = m.GetVolume().GetVolumeId()
	case *csi.CreateSnapshotResponse:
		r.Snapshot = m.GetSnapshot().GetSnapshotId()
	case *csi.CreateVolumeGroupSnapshotResponse:
		r.Group = m.GetGroupSnapshot().GetGroupSnapshotId()
	}
}
