package httpconn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Do sends the request and reads the answer. On a failure the connection is
// closed.
func (c *Conn) Do(ctx context.Context, x *Exchange) *Failure {
	x.Status, x.Length, x.Declared, x.head, x.chunked, x.keep = 0, 0, -1, nil, false, true
	x.Began, x.First, x.Done, x.Reused = c.ep.Clock.Now(), op.Never, op.Never, false
	x.Connected = x.Began
	if c.h2 != nil && c.h2.Err() != nil { // the server has ended it meanwhile
		c.Close()
	}
	if c.c == nil {
		x.Connected = op.Never
		if f := c.connect(ctx); f != nil {
			x.Done = c.ep.Clock.Now()
			return f
		}
		x.Connected = c.ep.Clock.Now()
	}
	x.Reused = c.used
	var f *Failure
	if c.h2 != nil {
		f = c.exchange2(ctx, x)
	} else {
		f = c.exchange(x)
	}
	x.Done = c.ep.Clock.Now()
	if f != nil {
		c.Close()
		return c.given(ctx, f)
	}
	c.used, c.done = true, x.Done
	if !x.keep || c.r != c.w {
		c.Close()
	}
	return nil
}

func (c *Conn) exchange(x *Exchange) *Failure {
	c.touch(x.Connected)
	sent := c.send(x)
	if sent != nil && sent.Kind != Reset && sent.Kind != SendStalled {
		return sent
	}
	// A server that refuses a request may respond before it has read all of it, and close: its response matters more
	// than the failed write.
	if sent != nil && sent.Kind == SendStalled {
		_ = c.c.SetReadDeadline(c.ep.Clock.At(c.ep.Clock.Now()).Add(slack))
		if c.aborted.Load() {
			return sent
		}
	}
	f := c.receive(x)
	if sent != nil {
		x.keep = false
		if f != nil {
			return sent
		}
	}
	return f
}

func (c *Conn) send(x *Exchange) *Failure {
	b := c.out[:0]
	if c.ep.Proxy != "" && c.ep.TLS == nil {
		b = absolute(b, x.Head)
	} else {
		b = append(b, x.Head...)
	}
	switch {
	case x.Content != nil && x.Chunked:
		b = append(b, "Transfer-Encoding: chunked\r\n"...)
	case x.Content != nil:
		b = strconv.AppendInt(append(b, "Content-Length: "...), x.Size, 10)
		b = append(b, "\r\n"...)
	}
	b = append(b, "\r\n"...)
	if x.Content == nil {
		return c.writeLast(x, b)
	}
	return c.sendContent(x, b)
}

// sendContent sends b and the content behind it, in as few pieces as fit the
// buffer.
func (c *Conn) sendContent(x *Exchange, b []byte) *Failure {
	const frame = 16 // room for the size and the ends of a chunk
	for offset := int64(0); offset < x.Size; {
		room := cap(c.out) - len(b) - frame
		if room < 4096 && x.Size-offset > int64(room) {
			if f := c.write(b); f != nil {
				return f
			}
			b, room = c.out[:0], cap(c.out)-frame
		}
		n := int(min(int64(room), x.Size-offset))
		if int64(n) < x.Size-offset {
			n &^= 4095 // so that each piece begins with a block
		}
		if x.Chunked {
			b = append(strconv.AppendInt(b, int64(n), 16), "\r\n"...)
		}
		at := len(b)
		b = b[:at+n]
		if err := x.Content.Read(b[at:], offset); err != nil {
			return fail(LocalFailed, err)
		}
		if x.Chunked {
			b = append(b, "\r\n"...)
		}
		offset += int64(n)
	}
	if x.Chunked {
		if len(b)+5 > cap(c.out) {
			if f := c.write(b); f != nil {
				return f
			}
			b = c.out[:0]
		}
		b = append(b, "0\r\n\r\n"...)
	}
	return c.writeLast(x, b)
}

// soon is the longest idle time after which a request waits for its response at once. On a new connection, or after a
// longer time, the server may already have sent a refusal or closed the connection, which such a wait does not notice.
const soon = 10 * time.Millisecond

// writeLast writes the end of a request, and may read the beginning of the response.
func (c *Conn) writeLast(x *Exchange, b []byte) *Failure {
	if x.Size > int64(cap(c.out)) { // otherwise the exchange has just begun
		c.touch(c.ep.Clock.Now())
	}
	s, ok := c.c.(*socket)
	if !ok || !c.used || time.Duration(x.Began-c.done) > soon {
		return c.write(b)
	}
	sent, n, err := s.request(b, c.buf)
	if !sent {
		return writeFailure(err)
	}
	if c.r, c.w, c.failed = 0, n, err; n > 0 {
		x.First = c.ep.Clock.Now()
	}
	return nil
}

func (c *Conn) write(b []byte) *Failure {
	c.touch(c.ep.Clock.Now())
	if _, err := c.c.Write(b); err != nil {
		return writeFailure(err)
	}
	return nil
}

// receive reads the response, after any 100 Continue.
func (c *Conn) receive(x *Exchange) *Failure {
	for {
		if f := c.receiveHead(x); f != nil {
			return f
		}
		if x.Status >= 200 || x.Status == 101 {
			break
		}
	}
	switch {
	case x.NoBody || x.Status == 204 || x.Status == 304:
		c.lastChunk = x.chunked
		c.skipLastChunk()
		return nil
	case x.chunked:
		return c.receiveChunks(x)
	case x.Declared >= 0:
		return c.receiveBytes(x, x.Declared)
	}
	x.keep = false
	return c.receiveAll(x)
}

// lastChunk is what eventlet, the HTTP server of Swift, sends after the head of a response that has no body (204, or to
// HEAD) but the header Transfer-Encoding: chunked, sometimes in a packet of its own.
const lastChunk = "0\r\n\r\n"

// skipLastChunk passes over a last chunk of the response before, and reports whether there was one.
func (c *Conn) skipLastChunk() bool {
	if !c.lastChunk || c.w-c.r < len(lastChunk) {
		return false
	}
	c.lastChunk = false
	if string(c.buf[c.r:c.r+len(lastChunk)]) != lastChunk {
		return false
	}
	c.r += len(lastChunk)
	return true
}

// endOfHead is the empty line.
func (c *Conn) receiveHead(x *Exchange) *Failure {
	for scanned := 0; ; {
		if c.skipLastChunk() {
			if scanned = 0; c.r == c.w {
				x.First = op.Never // nothing of this response has come
			}
		}
		b := c.buf[c.r:c.w]
		if i := bytes.Index(b[max(0, scanned-3):], endOfHead); i >= 0 {
			i += max(0, scanned-3)
			c.r += i + len(endOfHead)
			c.head = append(c.head[:0], b[:i]...) // the body will come in its place
			if err := x.parse(c.head); err != nil {
				return fail(Garbage, err)
			}
			return nil
		}
		if len(b) >= 5 && string(b[:5]) != "HTTP/" {
			if isTLS(b) && c.ep.TLS == nil {
				return fail(WrongScheme, errTLSOnHTTP)
			}
			return fail(Garbage, fmt.Errorf("the response begins with %q", b[:min(len(b), 40)]))
		}
		scanned = len(b)
		if err := c.more(); errors.Is(err, errTooLong) {
			return fail(Garbage, err)
		} else if err != nil {
			f := readFailure(err, x.First.Known())
			if f.Kind == Closed && !c.used && c.ep.TLS == nil {
				f.Err = fmt.Errorf("%w before a response: if the server wants TLS, write https:// in the address", err)
			}
			return f
		}
		if !x.First.Known() {
			x.First = c.ep.Clock.Now()
		}
	}
}

// parse reads the status line and those headers that say how long the body is.
func (x *Exchange) parse(head []byte) error {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	if len(line) < 12 || string(line[:7]) != "HTTP/1." || line[8] != ' ' || len(line) > 12 && line[12] != ' ' {
		return fmt.Errorf("invalid status line %q", line[:min(len(line), 60)])
	}
	status := 0
	for _, d := range line[9:12] {
		if d < '0' || d > '9' {
			return fmt.Errorf("status line %q has no status", line[:min(len(line), 60)])
		}
		status = 10*status + int(d-'0')
	}
	if status < 100 {
		return fmt.Errorf("%d is no status", status)
	}
	x.Status, x.Declared, x.chunked, x.keep, x.head = status, -1, false, line[7] == '1', rest
	for len(rest) > 0 {
		line, rest, _ = bytes.Cut(rest, []byte("\r\n"))
		k, v, ok := bytes.Cut(line, []byte(":"))
		if !ok {
			return fmt.Errorf("invalid header %q", line[:min(len(line), 60)])
		}
		if err := x.header(k, v); err != nil {
			return err
		}
	}
	return nil
}

func (x *Exchange) header(k, v []byte) error {
	switch {
	case len(k) == 14 && equalFold(k, "content-length"):
		n, err := strconv.ParseInt(string(bytes.TrimSpace(v)), 10, 64)
		if err != nil || n < 0 || x.Declared >= 0 && n != x.Declared {
			return fmt.Errorf("invalid Content-Length %q", bytes.TrimSpace(v))
		}
		x.Declared = n
	case len(k) == 17 && equalFold(k, "transfer-encoding"):
		if !equalFold(bytes.TrimSpace(v), "chunked") {
			return fmt.Errorf("Transfer-Encoding %q was not asked for", bytes.TrimSpace(v))
		}
		x.chunked = true
	case len(k) == 10 && equalFold(k, "connection"):
		switch v = bytes.TrimSpace(v); {
		case equalFold(v, "close"):
			x.keep = false
		case equalFold(v, "keep-alive"):
			x.keep = true
		}
	}
	return nil
}

// take gives p to the sink.
func (c *Conn) take(x *Exchange, n int) {
	if x.Sink != nil {
		x.Sink(x.Status, c.buf[c.r:c.r+n])
	}
	c.r += n
	x.Length += int64(n)
}

// receiveBytes reads n bytes of the body.
func (c *Conn) receiveBytes(x *Exchange, n int64) *Failure {
	for n > 0 {
		if c.r == c.w {
			c.touch(c.ep.Clock.Now())
			if err := c.more(); err != nil {
				return readFailure(err, true)
			}
		}
		k := int(min(n, int64(c.w-c.r)))
		c.take(x, k)
		n -= int64(k)
	}
	return nil
}

// receiveAll reads until the server closes.
func (c *Conn) receiveAll(x *Exchange) *Failure {
	for {
		if c.w > c.r {
			c.take(x, c.w-c.r)
		}
		c.touch(c.ep.Clock.Now())
		if err := c.more(); err != nil {
			if f := readFailure(err, true); f.Kind != Cut {
				return f
			}
			return nil
		}
	}
}

func (c *Conn) receiveChunks(x *Exchange) *Failure {
	for {
		line, f := c.line()
		if f != nil {
			return f
		}
		size, _, _ := bytes.Cut(line, []byte(";"))
		n, err := strconv.ParseInt(string(bytes.TrimSpace(size)), 16, 64)
		if err != nil || n < 0 {
			return fail(Garbage, fmt.Errorf("invalid chunk size %q", line[:min(len(line), 40)]))
		}
		if n == 0 {
			break
		}
		if f := c.receiveBytes(x, n); f != nil {
			return f
		}
		if line, f := c.line(); f != nil {
			return f
		} else if len(line) > 0 {
			return fail(Garbage, errors.New("a chunk is longer than its size"))
		}
	}
	for { // trailers
		if line, f := c.line(); f != nil || len(line) == 0 {
			return f
		}
	}
}

// line reads one, without its end; it is valid until the next read.
func (c *Conn) line() ([]byte, *Failure) {
	for {
		b := c.buf[c.r:c.w]
		if i := bytes.IndexByte(b, '\n'); i >= 0 {
			c.r += i + 1
			return bytes.TrimSuffix(b[:i], []byte("\r")), nil
		}
		c.touch(c.ep.Clock.Now())
		if err := c.more(); errors.Is(err, errTooLong) {
			return nil, fail(Garbage, err)
		} else if err != nil {
			return nil, readFailure(err, true)
		}
	}
}
