package csiproxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
)

// echo is a service that the proxy does not know. It returns each message, sends the received metadata in its headers,
// and ends with an error if the metadata requests one.
func echo(_ any, stream grpc.ServerStream) error {
	md, _ := metadata.FromIncomingContext(stream.Context())
	deadline, _ := stream.Context().Deadline()
	if err := stream.SetHeader(metadata.Pairs("told", strings.Join(md["say"], "+"), "raw-bin",
		strings.Join(md["raw-bin"], ""),
		"left", time.Until(deadline).Round(time.Minute).String())); err != nil {
		return err
	}
	stream.SetTrailer(metadata.Pairs("after", "wards"))
	for {
		m := &wrapperspb.BytesValue{}
		err := stream.RecvMsg(m)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if err := stream.SendMsg(m); err != nil {
			return err
		}
	}
	if len(md["fail"]) == 0 {
		return nil
	}
	s, err := status.New(codes.ResourceExhausted, "100 % full: ünïcode\n").WithDetails(&errdetails.QuotaFailure{
		Violations: []*errdetails.QuotaFailure_Violation{{Subject: "disk"}}})
	if err != nil {
		return err
	}
	return s.Err()
}

// echoSocket serves echo on a socket, with a proxy on a second one.
func echoSocket(t *testing.T) (*csiproxy.Proxy, string) {
	t.Helper()
	dir := shortDir(t)
	listener, err := net.Listen("unix", filepath.Join(dir, "up"))
	if err != nil {
		t.Fatal(err)
	}
	const huge = 64 << 20
	server := grpc.NewServer(grpc.UnknownServiceHandler(echo), grpc.MaxRecvMsgSize(huge), grpc.MaxSendMsgSize(huge))
	go server.Serve(listener)
	t.Cleanup(server.Stop)
	p, _ := startProxy(t, csiproxy.Options{Upstream: filepath.Join(dir, "up"), Listen: filepath.Join(dir, "down")})
	waitFor(t, "the proxy", func() bool {
		c, err := net.Dial("unix", filepath.Join(dir, "down"))
		return err == nil && c.Close() == nil
	})
	return p, filepath.Join(dir, "down")
}

// TestTransparent checks that a service that the proxy does not know works unchanged through the proxy.
func TestTransparent(t *testing.T) {
	p, socket := echoSocket(t)
	var w watcher
	w.follow(t, serveRecords(t, p))
	conn := dial(t, socket)
	ctx, cancel := context.WithTimeout(t.Context(), 47*time.Minute)
	defer cancel()
	ctx = metadata.AppendToOutgoingContext(ctx, "say", "one", "say", "two", "raw-bin", "\x00\xff", "fail", "yes")
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true, ServerStreams: true}, "/un.known/Both",
		grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20))
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range []int{0, 1, 16 << 10, 5 << 20, 40 << 20, 3} {
		sent := &wrapperspb.BytesValue{Value: bytes.Repeat([]byte{byte(size), 7, 9}, size/3)}
		got := &wrapperspb.BytesValue{}
		if err := stream.SendMsg(sent); err != nil {
			t.Fatal(err)
		}
		if err := stream.RecvMsg(got); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(sent.Value, got.Value) {
			t.Fatalf("a message of %d bytes came back as another", size)
		}
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	err = stream.RecvMsg(&wrapperspb.BytesValue{})
	header, _ := stream.Header()
	got := []string{header.Get("told")[0], header.Get("raw-bin")[0], header.Get("left")[0],
		stream.Trailer().Get("after")[0]}
	if diff := cmp.Diff([]string{"one+two", "\x00\xff", "47m0s", "wards"}, got); diff != "" {
		t.Errorf("metadata: %s", diff)
	}
	s := status.Convert(err)
	want := []any{&errdetails.QuotaFailure{Violations: []*errdetails.QuotaFailure_Violation{{Subject: "disk"}}}}
	if diff := cmp.Diff(want, s.Details(), protocmp.Transform()); diff != "" || s.Code() != codes.ResourceExhausted ||
		s.Message() != "100 % full: ünïcode\n" {
		t.Errorf("status %v %q: %s", s.Code(), s.Message(), diff)
	}
	waitFor(t, "the record", func() bool { return len(w.of("/un.known/Both", true)) == 1 })
	if c := w.of("/un.known/Both", true)[0]; c.Code != "ResourceExhausted" || c.Message != s.Message() {
		t.Errorf("recorded as %+v", c)
	}
}

// TestNoHTTP2 checks that data that is not HTTP/2 is forwarded, and that the gap in the records is reported.
func TestNoHTTP2(t *testing.T) {
	dir := shortDir(t)
	listener, err := net.Listen("unix", filepath.Join(dir, "up"))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				b, _ := io.ReadAll(c) // ends when the client closes its side for writing
				c.Write(append([]byte("back: "), b...))
				c.Close()
			}()
		}
	}()
	p, _ := startProxy(t, csiproxy.Options{Upstream: filepath.Join(dir, "up"), Listen: filepath.Join(dir, "down")})
	var c net.Conn
	waitFor(t, "the proxy", func() bool { c, err = net.Dial("unix", filepath.Join(dir, "down")); return err == nil })
	var w watcher
	w.follow(t, serveRecords(t, p))
	text := strings.Repeat("no HTTP/2 ", 100_000)
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	c.(*net.UnixConn).CloseWrite()
	got, err := io.ReadAll(c)
	if err != nil || string(got) != "back: "+text {
		t.Errorf("%d bytes came back: %v", len(got), err)
	}
	waitFor(t, "the gap", func() bool { return len(w.lacks()) == 1 })
	if g := w.lacks()[0]; g.Lost != 1 || g.Restarted {
		t.Errorf("the gap is %+v", g)
	}
}
