package csiproxy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/protobuf/proto"
)

// speaker encodes one direction of an HTTP/2 connection.
type speaker struct {
	bytes.Buffer
	*http2.Framer
	block bytes.Buffer
	enc   *hpack.Encoder
}

func newSpeaker(client bool) *speaker {
	s := &speaker{}
	if client {
		s.WriteString(preface)
	}
	s.Framer = http2.NewFramer(&s.Buffer, nil)
	s.enc = hpack.NewEncoder(&s.block)
	s.WriteSettings()
	return s
}

// headers writes a header block in three frames, the first of which is padded.
func (s *speaker) headers(id uint32, end bool, pairs ...string) {
	s.block.Reset()
	for i := 0; i < len(pairs); i += 2 {
		s.enc.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]})
	}
	b := s.block.Bytes()
	s.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: b[:1], EndStream: end, PadLength: 5,
		Priority: http2.PriorityParam{StreamDep: 0, Weight: 3}})
	s.WriteContinuation(id, false, b[1:2])
	s.WriteContinuation(id, true, b[2:])
}

func (s *speaker) message(id uint32, end bool, m proto.Message) {
	b, _ := proto.Marshal(m)
	b = append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(b))), b...)
	s.WriteDataPadded(id, false, b[:len(b)/2], make([]byte, 9))
	s.WriteData(id, end, b[len(b)/2:])
}

// dialogue returns both directions of a connection with one call of each kind.
func dialogue() (client, server []byte) {
	c, s := newSpeaker(true), newSpeaker(false)
	create, del := service("CreateVolume"), service("DeleteVolume")
	c.headers(1, false, ":method", "POST", ":path", create, "grpc-timeout", "10S", "x", "y")
	c.message(1, true, &csi.CreateVolumeRequest{Name: "pvc-1"})
	c.headers(3, false, ":method", "POST", ":path", del, "grpc-timeout", "1m")
	c.message(3, true, &csi.DeleteVolumeRequest{VolumeId: "v3"})
	c.WriteRSTStream(3, http2.ErrCodeCancel)
	c.headers(5, false, ":method", "POST", ":path", del)
	c.message(5, true, &csi.DeleteVolumeRequest{VolumeId: "v5"})
	c.WriteRSTStream(5, http2.ErrCodeCancel)
	c.headers(7, true, ":method", "POST", ":path", "/a.b/C")
	c.headers(9, false, ":method", "POST", ":path", create) // without a message and an end
	c.headers(11, false, ":method", "POST", ":path", del)
	c.message(11, true, &csi.DeleteVolumeRequest{VolumeId: "v11"})
	c.WriteWindowUpdate(0, 100)
	c.WritePing(false, [8]byte{1})

	s.headers(1, false, ":status", "200", "content-type", "application/grpc")
	s.message(1, false, &csi.CreateVolumeResponse{Volume: &csi.Volume{VolumeId: "v1"}})
	s.headers(1, true, "grpc-status", "0", "grpc-message", "")
	s.headers(7, true, ":status", "200", "grpc-status", "12", "grpc-message", "no%20such%0Aservice")
	s.WriteRSTStream(11, http2.ErrCodeRefusedStream)
	s.WriteGoAway(11, http2.ErrCodeNo, nil)
	return c.Bytes(), s.Bytes()
}

// told feeds the data to a tap in pieces and returns the records of ended calls.
func told(client, server []byte, piece func() int) ([]Record, error) {
	log := newLog(maxEvents)
	tap := newTap(log, "worker", func(string) string { return "d" })
	at := int64(0)
	for _, side := range []struct {
		b    []byte
		feed func([]byte, int64)
	}{{client, tap.fromClient}, {server, tap.fromDriver}} {
		for b := side.b; len(b) > 0; {
			n := min(max(1, piece()), len(b))
			at += int64(time.Millisecond)
			side.feed(b[:n], at)
			b = b[n:]
		}
	}
	err := tap.close(at + 1)
	var ended []Record
	for _, r := range log.read(0, maxEvents).records {
		if r.End != 0 {
			r.Start, r.End = 0, 0
			ended = append(ended, r)
		}
	}
	return ended, err
}

func TestTap(t *testing.T) {
	client, server := dialogue()
	v := func(id string) Subject { return Subject{Driver: "d", Volume: id} }
	want := []Record{
		{Seq: 2, RPC: "DeleteVolume", Subject: v("v3"), Code: "DeadlineExceeded",
			Message: "the client's deadline passed"},
		{Seq: 3, RPC: "DeleteVolume", Subject: v("v5"), Code: "Canceled",
			Message: "the client reset the stream (HTTP/2 code 8)"},
		{Seq: 1, RPC: "CreateVolume", Subject: Subject{Driver: "d", Name: "pvc-1", Volume: "v1"}, Code: "OK"},
		{Seq: 4, RPC: "/a.b/C", Subject: Subject{Driver: "d"}, Code: "Unimplemented", Message: "no such\nservice"},
		{Seq: 5, RPC: "DeleteVolume", Subject: v("v11"), Code: "Unavailable",
			Message: "the driver reset the stream (HTTP/2 code 7)"},
		{Seq: 6, RPC: "CreateVolume", Subject: Subject{Driver: "d"}, Code: "Unavailable",
			Message: "the connection was closed"},
	}
	for _, size := range []int{1, 2, 7, 20} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			got, err := told(client, server, func() int { return size })
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"": 0, "S": 0, "1": 0, "1S": time.Second, "99999999n": 99999999, "100m": 100 * time.Millisecond, "7u": 7 * time.Microsecond,
		"2M": 2 * time.Minute, "99999999H": 0, "3H": 3 * time.Hour, "-1S": 0, "123456789S": 0, "5X": 0,
	} {
		if got := timeout(text); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

// TestUnreadable checks that unparsable data ends the recording of its connection, and that its calls in flight are
// counted as unseen.
func TestUnreadable(t *testing.T) {
	client, _ := dialogue()
	for name, bad := range map[string][]byte{
		"no HTTP/2":     []byte("GET / HTTP/1.1\r\n"),
		"bad headers":   append(bytes.Clone(client), 0, 0, 1, 1, 4, 0, 0, 0, 13, 0xff),
		"bad padding":   append(bytes.Clone(client), 0, 0, 2, 0, 8, 0, 0, 0, 13, 9, 9),
		"a pushed call": append(bytes.Clone(client), 0, 0, 4, 5, 4, 0, 0, 0, 13, 0, 0, 0, 2),
		"a bad reset":   append(bytes.Clone(client), 0, 0, 1, 3, 0, 0, 0, 0, 13, 0),
	} {
		t.Run(name, func(t *testing.T) {
			log := newLog(maxEvents)
			tap := newTap(log, "", func(string) string { return "" })
			tap.fromClient(bad, 1)
			tap.fromClient([]byte("more"), 2)
			if tap.err == nil || log.read(0, 0).unseen != 1 || tap.idle(1<<60) {
				t.Errorf("problem %v", tap.err)
			}
			if _, open := log.snapshot(); len(open) > 0 {
				t.Errorf("still open: %v", open)
			}
		})
	}
}

// FuzzTap checks that a tap accepts any data, and that its records do not depend on how the data is split.
func FuzzTap(f *testing.F) {
	client, server := dialogue()
	f.Add(client, server, uint8(3))
	f.Add(client[:40], server, uint8(1))
	f.Add(append([]byte(preface), 0, 0, 3, 0, 9, 0, 0, 0, 1, 1, 2, 3), []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}, uint8(2))
	f.Fuzz(func(t *testing.T, client, server []byte, size uint8) {
		whole, err1 := told(client, server, func() int { return len(client) + len(server) })
		pieces, err2 := told(client, server, func() int { return int(size) })
		if fmt.Sprint(err1) != fmt.Sprint(err2) {
			t.Errorf("in one piece %v, in several %v", err1, err2)
		}
		for _, all := range [][]Record{whole, pieces} { // deadlines depend on the elapsed time
			for i := range all {
				if all[i].Code == "DeadlineExceeded" || all[i].Code == "Canceled" {
					all[i].Code, all[i].Message = "", ""
				}
			}
		}
		if diff := cmp.Diff(whole, pieces); diff != "" {
			t.Error(diff)
		}
	})
}

func TestLog(t *testing.T) {
	l := newLog(4)
	var all []*Record
	for i := range 4 {
		r := &Record{RPC: fmt.Sprint(i), Start: int64(i)}
		l.begin(r)
		all = append(all, r)
	}
	for _, r := range all[:3] {
		l.end(r, Subject{Volume: "v"}, 9, "OK", "")
		l.end(r, Subject{}, 10, "Canceled", "") // ignored, because the call has ended
	}
	p := l.read(0, 10)
	if p.lost != 3 || p.next != 7 || len(p.records) != 4 || p.records[0].RPC != "3" || p.records[0].End != 0 ||
		p.records[1].End != 9 {
		t.Errorf("read %+v", p)
	}
	if next, open := l.snapshot(); next != 7 || len(open) != 1 || open[0].RPC != "3" {
		t.Errorf("now %d %v", next, open)
	}
	huge := string(make([]byte, maxBytes/2))
	for range 3 {
		l.begin(&Record{Message: huge})
	}
	if p := l.read(0, 10); len(p.records) != 1 {
		t.Errorf("%d huge records are kept", len(p.records))
	}
}
