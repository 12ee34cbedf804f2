package message_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/agent/message"
)

// word is a message of a test protocol.
type word struct {
	message.Time
	Word string `json:"word,omitempty"`
}

// pipe is a connection in memory.
type pipe struct{ bytes.Buffer }

func (*pipe) Close() error                     { return nil }
func (*pipe) SetWriteDeadline(time.Time) error { return nil }

func newConn(p *pipe, most int) *message.Conn {
	return message.New(p, func() int64 { return 7 }, most, time.Second)
}

// TestFormat checks the wire format, on which other versions depend.
func TestFormat(t *testing.T) {
	for text, l := range map[string]*word{
		"\x00\x00\x00\x0d" + `{"word":"hi"}`:       {Word: "hi"},
		"\x00\x00\x00\x13" + `{"ping":{"sent":7}}`: {Time: message.Time{Ping: &message.Ping{}}},
	} {
		p := &pipe{}
		if err := newConn(p, 100).Write(l); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(text, p.String()); diff != "" {
			t.Error(diff)
		}
		var again word
		if err := newConn(p, 100).Read(&again); err != nil || again.Word != l.Word ||
			(again.Ping == nil) != (l.Ping == nil) {
			t.Errorf("read %+v, %v; written %+v", again, err, l)
		}
		if err := newConn(p, 100).Read(&word{}); !errors.Is(err, io.EOF) {
			t.Errorf("behind the last: %v", err)
		}
	}
	p := &pipe{}
	if err := newConn(p, 100).Write(&word{Word: strings.Repeat("x", 100)}); err == nil || p.Len() > 0 {
		t.Errorf("a word that is too long was sent: %v, %d bytes", err, p.Len())
	}
}

func TestFrames(t *testing.T) {
	for name, text := range map[string]string{
		"cut length":      "\x00\x00",
		"cut message":     "\x00\x00\x00\x05{\"pi",
		"no message":      "\x00\x00\x00\x03abc",
		"longer than all": "\xff\xff\xff\xff{}",
		"too long":        "\x00\x00\x10\x01" + string(make([]byte, 4097)),
	} {
		p := &pipe{}
		p.WriteString(text)
		if err := newConn(p, 1<<20).ReadHello(&word{}); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// pair returns both ends of a connection, with a clock on each side. The second clock is ahead by the given duration.
func pair(t *testing.T, ahead time.Duration) (a, b *message.Conn) {
	t.Helper()
	x, y := net.Pipe()
	began := time.Now()
	a = message.New(x, func() int64 { return int64(time.Since(began)) }, 1<<20, time.Second)
	b = message.New(y, func() int64 { return int64(time.Since(began) + ahead) }, 1<<20, time.Second)
	t.Cleanup(func() { _ = a.Close(); _ = b.Close() })
	return a, b
}

// TestSyncClock checks that SyncClock measures the difference between the clocks.
func TestSyncClock(t *testing.T) {
	a, b := pair(t, time.Hour)
	go func() {
		for {
			var l word
			if b.Read(&l) != nil || b.SendPong(&l.Time) != nil {
				return
			}
		}
	}()
	var clocks clocksync.Estimator
	if err := a.SyncClock(&clocks); err != nil {
		t.Fatal(err)
	}
	offset, plusMinus, ok := clocks.Offset(int64(time.Hour))
	if wrong := offset - int64(time.Hour); !ok || wrong < -plusMinus || wrong > plusMinus ||
		plusMinus > int64(time.Second) {
		t.Errorf("the offset is %v ± %v", time.Duration(offset), time.Duration(plusMinus))
	}
	go a.PingEvery(t.Context(), time.Millisecond)
	for range 3 {
		var l word
		if err := a.Read(&l); err != nil || l.Pong == nil || l.Exchange().Got < l.Exchange().Sent {
			t.Fatalf("%+v, %v", l, err)
		}
	}
}

// TestNoAnswer checks peers that answer a ping with another message, or that do not read.
func TestNoAnswer(t *testing.T) {
	a, b := pair(t, 0)
	go func() {
		_ = b.Read(&word{})
		_ = b.Write(&word{Word: "no"})
	}()
	if err := a.SyncClock(&clocksync.Estimator{}); err == nil || !strings.Contains(err.Error(), "did not answer") {
		t.Errorf("%v", err)
	}
	a.PingEvery(t.Context(), time.Millisecond) // must return although the peer does not read
	if err := a.Read(&word{}); err == nil {
		t.Error("the stream is still open")
	}
}

// FuzzRead checks that what a peer sends gives messages or an error, within the limit, and that a message survives a
// round trip.
func FuzzRead(f *testing.F) {
	for _, l := range []*word{{Word: "hi"}, {Time: message.Time{Ping: &message.Ping{}}}, {}} {
		p := &pipe{}
		if err := newConn(p, 100).Write(l); err != nil {
			f.Fatal(err)
		}
		f.Add(p.Bytes())
	}
	f.Add([]byte("\xff\xff\xff\xff{}"))
	f.Add([]byte("\x00\x00"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		p := &pipe{}
		p.Write(sent)
		c := newConn(p, 100)
		for {
			before := p.Len()
			var l word
			if err := c.Read(&l); err != nil {
				return
			}
			if n := before - p.Len(); n > 4+100 {
				t.Fatalf("a message of %d bytes was taken", n)
			}
			back := &pipe{}
			if err := newConn(back, 1000).Write(&l); err != nil {
				t.Fatal(err)
			}
			var again word
			if err := newConn(back, 1000).Read(&again); err != nil || again.Word != l.Word {
				t.Fatalf("%q became %q, %v", l.Word, again.Word, err)
			}
		}
	})
}
