// Package message is how a run and its helpers on other machines write to each other
// over a link: letters, each one JSON object in a frame, of which some ask for the
// time, so that clocks are joined. What else a letter may be is the protocol's
// that embeds Time: csiproxy's, and object/coordinator's. The agent's (package
// wire) carries files besides.
package message

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/op"
)

const maxHello = 4 << 10

// Time is what every protocol's letter embeds: a question for the other side's
// clock, or its answer. All pointers of a letter but one are nil.
type Time struct {
	Ping *Ping `json:"ping,omitempty"`
	Pong *Pong `json:"pong,omitempty"`

	received int64 // when the letter was there, on the reader's clock
}

// Ping asks; Sent is of the clock of the side that asks, and set by Write.
type Ping struct {
	Sent int64 `json:"sent"`
}

// Pong answers: Ping is the Ping's Sent, the others are of the clock of the side
// that answers. Sent is set by Write.
type Pong struct {
	Ping     int64 `json:"ping"`
	Received int64 `json:"received"`
	Sent     int64 `json:"sent"`
}

func (t *Time) times() *Time { return t }

// Exchange is what a letter with a Pong tells of the two clocks.
func (t *Time) Exchange() clocksync.Exchange {
	return clocksync.Exchange{Sent: op.Time(t.Pong.Ping), Received: t.Pong.Received, Replied: t.Pong.Sent, Got: op.Time(t.received)}
}

// Letter is a pointer to a struct that embeds Time.
type Letter interface{ times() *Time }

// Stream is what letters go over: a link.Link.
type Stream interface {
	io.ReadWriteCloser
	SetWriteDeadline(t time.Time) error
}

// Conn sends and receives letters: a frame is a length in four bytes (big
// endian), then the letter. Read is for one goroutine, all else for any.
type Conn struct {
	stream   Stream
	now      func() int64
	patience time.Duration
	most     int
	in       bytes.Buffer

	mu sync.Mutex
}

// New writes over s, which Close closes, letters of at most so many bytes; now is
// the clock of this side, patience how long a peer may take nothing before a
// Write fails.
func New(s Stream, now func() int64, most int, patience time.Duration) *Conn {
	return &Conn{stream: s, now: now, most: most, patience: patience}
}

// Close closes the stream; Read and Write that are under way return.
func (c *Conn) Close() error { return c.stream.Close() }

var errTooLong = errors.New("a frame is longer than the protocol allows")

// Write sends one letter whole, after any wait for other writers.
func (c *Conn) Write(l Letter) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch t := l.times(); {
	case t.Ping != nil:
		t.Ping.Sent = c.now()
	case t.Pong != nil:
		t.Pong.Sent = c.now()
	}
	text, err := json.Marshal(l)
	if err == nil && len(text) > c.most {
		err = errTooLong
	}
	if err != nil {
		return err
	}
	if err := c.stream.SetWriteDeadline(time.Now().Add(c.patience)); err != nil {
		return err
	}
	_, err = c.stream.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// Read receives one letter into l, which must be empty. At the end of the stream
// the error is io.EOF, within a frame io.ErrUnexpectedEOF.
func (c *Conn) Read(l Letter) error { return c.read(l, c.most) }

// ReadHello is Read for a peer that has shown no token yet, which is to be short.
func (c *Conn) ReadHello(l Letter) error { return c.read(l, maxHello) }

func (c *Conn) read(l Letter, most int) error {
	var head [4]byte
	if _, err := io.ReadFull(c.stream, head[:]); err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(most) {
		return errTooLong
	}
	// A length alone gets nobody memory: the buffer grows with what has come.
	c.in.Reset()
	if _, err := io.CopyN(&c.in, c.stream, n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	received := c.now()
	if err := json.Unmarshal(c.in.Bytes(), l); err != nil {
		return fmt.Errorf("a frame that is no message: %w", err)
	}
	l.times().received = received
	return nil
}

// Answer answers a letter with a Ping.
func (c *Conn) Answer(t *Time) error {
	return c.Write(&Time{Pong: &Pong{Ping: t.Ping.Sent, Received: t.received}})
}

// Ask asks for the time; the answer is among the letters that come.
func (c *Conn) Ask() error { return c.Write(&Time{Ping: &Ping{}}) }

// KeepAsking asks at each interval until ctx ends. If it cannot, it closes the
// stream, so that the reader learns of it.
func (c *Conn) KeepAsking(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.Ask() != nil {
			_ = c.Close() // it is of no use any more
			return
		}
	}
}

// burst is how many exchanges a session begins with: the one with the least round
// trip of eight is hardly a bad one.
const burst = 8

// Join joins the peer's clock to ours, before anything else is said but who the
// two are: no instant that it tells of cannot be placed then.
func (c *Conn) Join(clocks *clocksync.Join) error {
	for range burst {
		if err := c.Ask(); err != nil {
			return err
		}
		var answer Time
		if err := c.ReadHello(&answer); err != nil {
			return err
		}
		if answer.Pong == nil {
			return errors.New("it did not answer the question for its time")
		}
		clocks.Add(answer.Exchange())
	}
	return nil
}
