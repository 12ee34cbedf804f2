// Package httpconn is the hot path of HTTP/1.1: one pinned connection, requests that the caller has encoded,
// responses read into one buffer. It never repeats a request and never follows a redirect: an exchange is one
// attempt, and its failure has a Kind.
package httpconn

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// slack is how late a stall is noticed at most: the deadline of the connection is moved once in that time, not with
// each request.
const slack = time.Second

// NewConn prepares a connection; nothing is sent yet.
func NewConn(ep Endpoint) *Conn {
	c := &Conn{ep: ep, buf: make([]byte, bufferSize), out: make([]byte, 0, bufferSize)}
	if n := uint64(len(ep.Sources)); n > 0 {
		c.source = ep.Sources[(nextSource.Add(1)-1)%n]
	}
	return c
}

// Abort ends the exchange in progress, and each later one, with Aborted.
func (c *Conn) Abort() {
	c.aborted.Store(true)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c != nil {
		_ = c.c.SetDeadline(time.Unix(1, 0))
	}
}

// Close closes the connection; the next exchange makes another.
func (c *Conn) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.c != nil {
		if c.h2 != nil {
			_ = c.h2.Close()
		}
		_ = c.c.Close()
		c.c, c.h2 = nil, nil
	}
}

// connect opens the connection if there is none.
func (c *Conn) connect(ctx context.Context) *Failure {
	if c.c != nil {
		return nil
	}
	if c.aborted.Load() {
		return fail(Aborted, context.Canceled)
	}
	ctx, cancel := context.WithTimeout(ctx, c.ep.Timeout)
	defer cancel()
	raw, err := c.dial(ctx)
	if err != nil {
		return c.given(ctx, dialFailure(err))
	}
	if c.ep.Proxy != "" && c.ep.TLS != nil {
		if f := tunnel(ctx, raw, c.ep.Address); f != nil {
			_ = raw.Close()
			return c.given(ctx, f)
		}
	}
	if c.ep.TLS != nil {
		secured := tls.Client(raw, c.ep.TLS)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = raw.Close()
			return c.given(ctx, tlsFailure(err))
		}
		raw = secured
	}
	if c.ep.HTTP2 {
		if f := c.http2(ctx, raw); f != nil {
			_ = raw.Close()
			return c.given(ctx, f)
		}
	}
	if c.ep.TLS == nil && !c.ep.HTTP2 {
		raw = newSocket(raw)
	}
	c.mu.Lock()
	c.c, c.r, c.w, c.failed, c.used, c.moved, c.lastChunk = raw, 0, 0, nil, false, op.Never, false
	c.mu.Unlock()
	return nil
}

// given turns a failure into Aborted where it is our own doing.
func (c *Conn) given(ctx context.Context, f *Failure) *Failure {
	if c.aborted.Load() || errors.Is(context.Cause(ctx), context.Canceled) {
		return fail(Aborted, f.Err)
	}
	return f
}

// touch moves the deadline.
func (c *Conn) touch(now op.Time) {
	if c.moved.Known() && time.Duration(now-c.moved) < slack {
		return
	}
	c.moved = now
	_ = c.c.SetDeadline(c.ep.Clock.At(now).Add(c.ep.Timeout + slack))
	if c.aborted.Load() { // in the meantime
		_ = c.c.SetDeadline(time.Unix(1, 0))
	}
}

// more reads more bytes behind buf[r:w] and makes room for them.
func (c *Conn) more() error {
	if err := c.failed; err != nil {
		c.failed = nil
		return err
	}
	if c.r == c.w {
		c.r, c.w = 0, 0
	} else if c.w == len(c.buf) {
		if c.r == 0 {
			return errTooLong
		}
		c.w = copy(c.buf, c.buf[c.r:c.w])
		c.r = 0
	}
	n, err := c.c.Read(c.buf[c.w:])
	c.w += n
	if n > 0 {
		return nil
	}
	return err
}

var errTooLong = errors.New("a header or a line of it is longer than 64 KiB")
