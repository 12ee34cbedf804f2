package httpconn

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// http2 gives the connection to net/http, which speaks HTTP/2 on it. It allocates with each request, and uses a
// goroutine for each direction, so that a request costs more CPU than on HTTP/1.1.
func (c *Conn) http2(ctx context.Context, raw net.Conn) *Failure {
	if secured, ok := raw.(*tls.Conn); ok && secured.ConnectionState().NegotiatedProtocol != "h2" {
		return fail(TLSFailed, errors.New("the server does not offer HTTP/2 on this port"))
	}
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	dial := func(context.Context, string, string) (net.Conn, error) { return raw, nil }
	t := &http.Transport{Protocols: &protocols, DialContext: dial, DialTLSContext: dial, DisableCompression: true}
	h2, err := t.NewClientConn(ctx, c.scheme(), c.ep.Address)
	if err != nil {
		return fail(Garbage, err)
	}
	c.h2 = h2
	return nil
}

func (c *Conn) scheme() string {
	if c.ep.TLS != nil {
		return "https"
	}
	return "http"
}

// watch ends an exchange in which nothing moves for the timeout.
type watch struct {
	timer   *time.Timer
	timeout time.Duration
	stop    context.CancelFunc
}

func (w *watch) moved() { w.timer.Reset(w.timeout) }

// upload reads a Content for net/http, in pieces that begin with a block.
type upload struct {
	x      *Exchange
	watch  *watch
	buf    []byte
	ready  []byte
	offset int64
	err    error // why a content could not be read
}

func (u *upload) Read(p []byte) (int, error) {
	if len(u.ready) == 0 {
		n := min(int64(len(u.buf)), u.x.Size-u.offset)
		if n == 0 {
			return 0, io.EOF
		}
		u.ready = u.buf[:n]
		if u.err = u.x.Content.Read(u.ready, u.offset); u.err != nil {
			return 0, u.err
		}
		u.offset += n
	}
	n := copy(p, u.ready)
	u.ready = u.ready[n:]
	u.watch.moved()
	return n, nil
}

func (u *upload) Close() error { return nil }

// exchange2 is exchange on HTTP/2.
func (c *Conn) exchange2(ctx context.Context, x *Exchange) *Failure {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx)) // as on HTTP/1.1, only Abort ends it
	defer stop()
	w := &watch{timeout: c.ep.Timeout, stop: stop}
	w.timer = time.AfterFunc(w.timeout, stop)
	defer w.timer.Stop()
	request, err := http.ReadRequest(bufio.NewReader(io.MultiReader(bytes.NewReader(x.Head),
		bytes.NewReader([]byte("\r\n")))))
	if err != nil {
		return fail(LocalFailed, err)
	}
	request.RequestURI, request.URL.Scheme, request.URL.Host = "", c.scheme(), request.Host
	body := &upload{x: x, watch: w}
	if x.Content != nil {
		body.buf = c.out[:cap(c.out)&^4095]
		request.Body, request.ContentLength = body, x.Size
		switch {
		case x.Chunked:
			request.ContentLength = -1
		case x.Size == 0:
			request.Body = http.NoBody
		}
	}
	response, err := c.h2.RoundTrip(request.WithContext(ctx))
	if err != nil {
		c.out = make([]byte, 0, bufferSize) // the old one may still be read
		if ctx.Err() == nil && body.err != nil {
			return fail(LocalFailed, body.err)
		}
		return c.failure2(ctx, err, false)
	}
	defer response.Body.Close()
	x.First, x.Status, x.Declared = c.ep.Clock.Now(), response.StatusCode, response.ContentLength
	var head bytes.Buffer
	if err := response.Header.Write(&head); err != nil {
		return fail(LocalFailed, err)
	}
	c.head = append(c.head[:0], head.Bytes()...)
	x.head = c.head
	for {
		w.moved()
		n, err := response.Body.Read(c.buf)
		if n > 0 && x.Sink != nil {
			x.Sink(x.Status, c.buf[:n])
		}
		x.Length += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return c.failure2(ctx, err, true)
		}
	}
}

// failure2 classifies the failure of an exchange on HTTP/2.
func (c *Conn) failure2(ctx context.Context, err error, begun bool) *Failure {
	switch {
	case ctx.Err() != nil && begun:
		return fail(BodyStalled, context.DeadlineExceeded)
	case ctx.Err() != nil:
		return fail(Stalled, context.DeadlineExceeded)
	}
	f := readFailure(err, begun)
	if !c.used && !begun && (f.Kind == Closed || f.Kind == Reset) {
		f.Err = fmt.Errorf("the server does not seem to support HTTP/2: leave out http=2: %w", err)
	}
	return f
}
