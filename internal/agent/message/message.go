// Package message exchanges JSON messages between a run and its helpers on other machines over a
// transport.Link. A session begins with a handshake: both sides prove a token for the connection (Dial, Serve).
// Some messages are pings and pongs that synchronise clocks; the others are defined by the protocols that embed
// Time: csiproxy and object/coordinator. Package protocol, the agent's, also carries files.
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

// Time is embedded by every protocol's message: a ping or a pong. Exactly one pointer of a message is set.
type Time struct {
	Ping *Ping `json:"ping,omitempty"`
	Pong *Pong `json:"pong,omitempty"`

	received int64 // when the message was complete, on the reader's clock
}

// Ping asks for the peer's clock. Write sets Sent, on the sender's clock.
type Ping struct {
	Sent int64 `json:"sent"`
}

// Pong answers a ping: Ping is the Sent of the ping, the other fields are of the answering side's clock.
// Write sets Sent.
type Pong struct {
	Ping     int64 `json:"ping"`
	Received int64 `json:"received"`
	Sent     int64 `json:"sent"`
}

func (t *Time) times() *Time { return t }

// Exchange returns the clock exchange that a pong completes.
func (t *Time) Exchange() clocksync.Exchange {
	return clocksync.Exchange{Sent: op.Time(t.Pong.Ping), Received: t.Pong.Received, Replied: t.Pong.Sent,
		Got: op.Time(t.received)}
}

// Message is a pointer to a struct that embeds Time.
type Message interface{ times() *Time }

// Stream carries messages: a transport.Link.
type Stream interface {
	io.ReadWriteCloser
	SetWriteDeadline(t time.Time) error
}

// Conn sends and receives messages. A frame is a length in four bytes (big endian) and the message. Read is
// for one goroutine, the other methods for any number.
type Conn struct {
	stream       Stream
	now          func() int64
	writeTimeout time.Duration
	maxSize      int
	in           bytes.Buffer

	mu sync.Mutex
}

// New returns a Conn over s, which Close closes, for messages of at most maxSize bytes. now is the clock of
// this side; a Write fails when the peer accepts nothing for writeTimeout.
func New(s Stream, now func() int64, most int, patience time.Duration) *Conn {
	return &Conn{stream: s, now: now, maxSize: most, writeTimeout: patience}
}

// Close closes the stream; pending Reads and Writes return.
func (c *Conn) Close() error { return c.stream.Close() }

var errTooLong = errors.New("frame exceeds the protocol's limit")

// Write sends one message, after waiting for other writers.
func (c *Conn) Write(l Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch t := l.times(); {
	case t.Ping != nil:
		t.Ping.Sent = c.now()
	case t.Pong != nil:
		t.Pong.Sent = c.now()
	}
	text, err := json.Marshal(l)
	if err == nil && len(text) > c.maxSize {
		err = errTooLong
	}
	if err != nil {
		return err
	}
	if err := c.stream.SetWriteDeadline(time.Now().Add(c.writeTimeout)); err != nil {
		return err
	}
	_, err = c.stream.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// Read receives one message into l, which must be empty. The error is io.EOF at the end of the stream and
// io.ErrUnexpectedEOF within a frame.
func (c *Conn) Read(l Message) error { return c.read(l, c.maxSize) }

// ReadHello is Read with a small size limit, for a peer that has not authenticated.
func (c *Conn) ReadHello(l Message) error { return c.read(l, maxHello) }

func (c *Conn) read(l Message, most int) error {
	var head [4]byte
	if _, err := io.ReadFull(c.stream, head[:]); err != nil {
		return err
	}
	n := int64(binary.BigEndian.Uint32(head[:]))
	if n > int64(most) {
		return errTooLong
	}
	// The buffer grows with the received bytes, not with the announced length.
	c.in.Reset()
	if _, err := io.CopyN(&c.in, c.stream, n); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	received := c.now()
	if err := json.Unmarshal(c.in.Bytes(), l); err != nil {
		return fmt.Errorf("decode message: %w", err)
	}
	l.times().received = received
	return nil
}

// SendPong answers a message with a Ping.
func (c *Conn) SendPong(t *Time) error {
	return c.Write(&Time{Pong: &Pong{Ping: t.Ping.Sent, Received: t.received}})
}

// SendPing asks for the peer's clock; the pong is among the messages that Read returns.
func (c *Conn) SendPing() error { return c.Write(&Time{Ping: &Ping{}}) }

// PingEvery sends a ping at each interval until ctx ends. On failure it closes the stream, so that Read
// returns.
func (c *Conn) PingEvery(ctx context.Context, interval time.Duration) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if c.SendPing() != nil {
			_ = c.Close() // the stream is broken
			return
		}
	}
}

// syncExchanges is the number of exchanges at the start of a session, of which the one with the smallest
// round trip counts.
const syncExchanges = 8

// SyncClock performs the first clock exchanges of a session, so that every later timestamp of the peer can be
// converted.
func (c *Conn) SyncClock(clocks *clocksync.Estimator) error {
	for range syncExchanges {
		if err := c.SendPing(); err != nil {
			return err
		}
		var answer Time
		if err := c.ReadHello(&answer); err != nil {
			return err
		}
		if answer.Pong == nil {
			return errors.New("the peer did not answer a clock exchange")
		}
		clocks.Add(answer.Exchange())
	}
	return nil
}
