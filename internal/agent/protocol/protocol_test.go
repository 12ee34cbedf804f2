package protocol_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// messages has one message of each type.
var messages = []protocol.Message{
	{Hello: &protocol.Hello{Magic: protocol.Magic, Proto: 2, Version: "v1", Token: "t", Began: -3, Attempts: 2,
		DialNanos: 1e9}},
	{Welcome: &protocol.Welcome{Proto: 1, Barrier: "main", Outputs: []string{"/a/*"},
		Canary: &protocol.CanarySpec{Size: 4096, Volumes: []protocol.CanaryVolume{{Name: "v", Path: "/p"}}}}},
	{Welcome: &protocol.Welcome{Proto: 2, Probes: []protocol.VolumeProbeSpec{{Volume: "v", Path: "/dev/v", Read: true,
		Device: true}}}},
	{VolumeProbe: &protocol.VolumeProbe{Volume: "v", Write: true, Began: -7, At: 5, Errno: 30, Message: "read-only"}},
	{File: &protocol.File{Name: "stdout", Offset: 1 << 40}, Body: []byte("bytes\x00\xff")},
	{Canary: &protocol.Canary{Volume: "v", IOs: []protocol.CanaryIO{{Intended: -5, Started: protocol.Never,
		Ended: protocol.Never, Write: true, Errno: 28}}}},
	{Exit: &protocol.Exit{At: -1, ExitCode: 137, Signal: 9, OOM: true}},
	{Welcome: &protocol.Welcome{Proto: 3, Files: []protocol.FileSpec{{Path: "/in/f", Size: 1 << 33, Mode: 0o755}}}},
	{SetLevel: &protocol.SetLevel{Level: op.SampleNone}},
	{Bye: &protocol.Bye{}},
}

func TestRoundTrip(t *testing.T) {
	a, b := net.Pipe()
	clock := int64(0)
	now := func() int64 { clock += 10; return clock }
	from, to := protocol.NewConn(a, now), protocol.NewConn(b, now)
	go func() {
		for _, m := range messages {
			if err := from.Write(m); err != nil {
				t.Error(err)
			}
		}
		_ = from.Close()
	}()
	for _, want := range messages {
		got, err := to.Read()
		if err != nil {
			t.Fatal(err)
		}
		if got.Received == 0 {
			t.Error("not stamped")
		}
		got.Received = 0
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
	if _, err := to.Read(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

func TestPingIsStampedWhenWritten(t *testing.T) {
	a, b := net.Pipe()
	c := protocol.NewConn(a, func() int64 { return 42 })
	go func() { _ = c.Write(protocol.Message{Ping: &protocol.Ping{}}) }()
	m, err := protocol.NewConn(b, func() int64 { return 7 }).Read()
	if err != nil || m.Ping == nil || m.Ping.Sent != 42 || m.Received != 7 {
		t.Errorf("%+v, %v", m, err)
	}
}

func TestBounds(t *testing.T) {
	whole, err := protocol.Append(nil, messages[4])
	if err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name  string
		input []byte
		want  error
	}{
		{"header too long", []byte{0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0}, protocol.ErrTooLong},
		{"body too long", []byte{0, 0, 0, 2, 0x00, 0x10, 0, 1, '{', '}'}, protocol.ErrTooLong},
		{"torn lengths", whole[:5], io.ErrUnexpectedEOF},
		{"torn header", whole[:12], io.ErrUnexpectedEOF},
		{"no header", whole[:8], io.ErrUnexpectedEOF},
		{"torn body", whole[:len(whole)-1], io.ErrUnexpectedEOF},
		{"nothing", nil, io.EOF},
	}
	for _, tc := range tests {
		t.Run(tc.name, func(t *testing.T) {
			var buf []byte
			if _, err := protocol.Decode(bytes.NewReader(tc.input), &buf); !errors.Is(err, tc.want) {
				t.Errorf("error %v, want %v", err, tc.want)
			}
		})
	}
	long, err := protocol.Append(nil, protocol.Message{Hello: &protocol.Hello{Token: strings.Repeat("x",
		protocol.MaxHello)}})
	if err != nil {
		t.Fatal(err)
	}
	for name, input := range map[string][]byte{"long": long, "with a body": whole} {
		if _, err := protocol.NewConn(stream{bytes.NewReader(input)},
			func() int64 { return 0 }).ReadHello(); !errors.Is(err, protocol.ErrTooLong) {
			t.Errorf("hello %s: %v", name, err)
		}
	}
	if _, err := protocol.Append(nil, protocol.Message{File: &protocol.File{},
		Body: make([]byte, protocol.MaxBody+1)}); !errors.Is(err, protocol.ErrTooLong) {
		t.Errorf("a long body was sent: %v", err)
	}
}

// stream is a connection that only supports reads.
type stream struct{ *bytes.Reader }

func (stream) Write(b []byte) (int, error) { return len(b), nil }
func (stream) Close() error                { return nil }

func FuzzDecode(f *testing.F) {
	for _, m := range messages {
		b, err := protocol.Append(nil, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
		f.Add(b[:len(b)-1])
	}
	f.Fuzz(func(t *testing.T, input []byte) {
		var buf []byte
		m, err := protocol.Decode(bytes.NewReader(input), &buf)
		if err != nil {
			return
		}
		if cap(buf) > protocol.MaxHeader || len(m.Body) > protocol.MaxBody {
			t.Fatalf("kept %d, body %d bytes", cap(buf), len(m.Body))
		}
		again, err := protocol.Append(nil, m)
		if errors.Is(err, protocol.ErrTooLong) { // JSON escapes can lengthen a header
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		second, err := protocol.Decode(bytes.NewReader(again), &buf)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(m, second); diff != "" {
			t.Errorf("not the same after a round trip:\n%s", diff)
		}
	})
}
