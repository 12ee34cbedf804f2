package csidriver

import (
	"context"
	"path"
	"strings"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/cnsbench/cnsbench/internal/csi/csidriver/inject"
)

// RPCs lists every RPC that can be named in an injection.
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

// note collects what a handler knows and the truth log wants. One goroutine serves a call, so it needs no lock.
type note struct{ queued time.Duration }

type noteKey struct{}

func callNote(ctx context.Context) *note {
	if n, ok := ctx.Value(noteKey{}).(*note); ok {
		return n
	}
	return &note{}
}

// intercept injects what the seed decided and logs the truth about each call.
func (s *Server) intercept(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
	start := time.Now()
	rpc := path.Base(info.FullMethod)
	fate := s.inject.Decide(rpc, start.Sub(s.start))
	n := &note{}
	resp, err := s.suffer(context.WithValue(ctx, noteKey{}, n), req, fate, handler)
	if err != nil {
		err = toStatus(err)
	}
	took := time.Since(start)

	r := Record{
		Event: eventRPC, RPC: rpc, Node: s.driver.nodeOf(ctx), StartUnixNs: start.UnixNano(), EndUnixNs: wall(start, took), DurationNs: int64(took),
		InjectedDelayNs: int64(fate.Window + fate.Delay + fate.Stall), Injected: describe(fate), QueuedNs: int64(n.queued),
		Code: status.Code(err).String(), Message: status.Convert(err).Message(),
	}
	identify(&r, req, resp)
	s.driver.log.write(r)
	return resp, err
}

// suffer runs the handler and what is injected before and after it.
func (s *Server) suffer(ctx context.Context, req any, fate inject.Decision, handler grpc.UnaryHandler) (any, error) {
	if err := s.sleep(ctx, fate.Window); err != nil {
		return nil, err
	}
	if !fate.After {
		if err := s.afflict(ctx, fate); err != nil {
			return nil, err
		}
	}
	resp, err := handler(ctx, req)
	if fate.After && err == nil {
		if err := s.afflict(ctx, fate); err != nil {
			return nil, err
		}
	}
	return resp, err
}

// afflict delays, hangs or fails a call.
func (s *Server) afflict(ctx context.Context, fate inject.Decision) error {
	if fate.Hang {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-s.stopping:
			return status.Error(codes.Unavailable, "the driver is stopping")
		}
	}
	if err := s.sleep(ctx, fate.Delay+fate.Stall); err != nil {
		return err
	}
	if fate.Code != codes.OK {
		return status.Error(fate.Code, "injected error")
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

func describe(fate inject.Decision) string {
	var what []string
	for _, w := range []struct {
		on   bool
		name string
	}{
		{fate.Window > 0, "window"}, {fate.Delay > 0, "delay"}, {fate.Stall > 0, "stall"},
		{fate.Hang, "hang"}, {fate.Code != codes.OK, "error"},
	} {
		if w.on {
			what = append(what, w.name)
		}
	}
	return strings.Join(what, "+")
}

// identify fills in what the call was about, from the request's fields and, for what was created, the answer's.
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
