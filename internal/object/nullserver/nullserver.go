// Package nullserver is an HTTP server that stores nothing and responds at once, as S3 and as Swift: a client's
// throughput against it is the client's ceiling. Each object exists. Its content is computed from its name, so that it
// can be verified; request bodies are read and dropped. Lists are empty. Requests of S3 that it does not have are
// answered with 501 NotImplemented.
package nullserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/payload"
)

// Serve serves connections of l until ctx ends; then it closes l and all connections.
func (o Options) Serve(ctx context.Context, l net.Listener) error {
	s := &server{size: o.Size, facts: factsAt(time.Now()), open: map[net.Conn]bool{}}
	if o.holds() {
		s.holder = newHolder(o)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = l.Close()
		s.closeAll()
	})
	defer stop()
	for {
		c, err := l.Accept()
		if err != nil {
			s.wait.Wait()
			if ctx.Err() != nil || errors.Is(err, net.ErrClosed) {
				return nil
			}
			return fmt.Errorf("null server: %w", err)
		}
		if !s.add(c) {
			continue
		}
		go func() {
			defer s.remove(c)
			_ = s.serve(ctx, c) // errors are the client's concern
		}()
	}
}

type server struct {
	counters
	facts
	size   int64
	holder *holder // nil: everything is answered at once
	mu     sync.Mutex
	open   map[net.Conn]bool // nil: closed
	wait   sync.WaitGroup
}

func (s *server) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open == nil {
		_ = c.Close()
		return false
	}
	s.open[c] = true
	s.wait.Add(1)
	return true
}

func (s *server) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = c.Close()
	delete(s.open, c)
	s.wait.Done()
}

func (s *server) closeAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
	s.open = nil
}

// conn is one connection's buffers.
type conn struct {
	*server
	c   net.Conn
	r   *bufio.Reader
	out []byte

	body []byte // of the request, if its answer depends on it
}

const bufferSize = 64 << 10

func (s *server) serve(ctx context.Context, c net.Conn) error {
	k := &conn{server: s, c: c, r: bufio.NewReaderSize(c, bufferSize), out: make([]byte, 0, bufferSize)}
	for {
		if err := k.one(ctx); err != nil {
			return err
		}
	}
}

// request is what matters of one.
type request struct {
	method, path, query    string
	length                 int64
	chunked, close, head   bool
	span                   span
	ranged, copied, expect bool
}

// span is a requested range of bytes. first < 0: the last bytes, as many as last says; last < 0: up to the end.
type span struct{ first, last int64 }

// of returns the range in an object of that size, and whether it has a byte.
func (s span) of(size int64) (from, to int64, ok bool) {
	switch {
	case s.first < 0:
		from, to = size-min(s.last, size), size
	case s.last < 0:
		from, to = s.first, size
	default:
		from, to = s.first, min(s.last, size-1)+1
	}
	return from, to, from < to
}

// parseSpan parses the value of the header Range. Of several ranges it takes the first; false: it is invalid.
func parseSpan(value []byte) (span, bool) {
	text, ok := bytes.CutPrefix(value, []byte("bytes="))
	text, _, _ = bytes.Cut(text, []byte(","))
	first, last, hyphen := bytes.Cut(bytes.TrimSpace(text), []byte("-"))
	s := span{-1, -1}
	for _, n := range []struct {
		text []byte
		into *int64
	}{{first, &s.first}, {last, &s.last}} {
		if len(n.text) > 0 {
			v, err := strconv.ParseUint(string(n.text), 10, 63)
			*n.into, ok = int64(v), ok && err == nil
		}
	}
	return s, ok && hyphen && (s.first >= 0 || s.last >= 0) && (s.last < 0 || s.first <= s.last)
}

func (k *conn) one(ctx context.Context) error {
	q, err := k.readHead()
	if err != nil {
		return err
	}
	if q.expect {
		if _, err := io.WriteString(k.c, "HTTP/1.1 100 Continue\r\n\r\n"); err != nil {
			return err
		}
	}
	if err := k.readBody(&q); err != nil {
		return err
	}
	done := func() {}
	if k.holder != nil {
		if done, err = k.holder.hold(ctx, &q); err != nil {
			return err
		}
	}
	err = k.answer(&q)
	done()
	if err != nil {
		return err
	}
	if q.close {
		return io.EOF
	}
	return nil
}

func (k *conn) readHead() (request, error) {
	q := request{}
	line, err := k.r.ReadSlice('\n')
	if err != nil {
		return q, err
	}
	f := bytes.Fields(line)
	if len(f) != 3 {
		return q, fmt.Errorf("invalid request %q", line)
	}
	q.method, q.path = string(f[0]), string(f[1])
	q.path, q.query, _ = strings.Cut(q.path, "?")
	q.head = q.method == "HEAD"
	for {
		line, err := k.r.ReadSlice('\n')
		if err != nil {
			return q, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			return q, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if err := q.header(name, bytes.TrimSpace(value)); err != nil {
			return q, err
		}
	}
}

func (q *request) header(name, value []byte) (err error) {
	is := func(text []byte, word string) bool {
		return len(text) == len(word) && bytes.EqualFold(text, []byte(word))
	}
	switch {
	case is(name, "content-length"):
		var n uint64
		n, err = strconv.ParseUint(string(value), 10, 62)
		q.length = int64(n)
	case is(name, "transfer-encoding"):
		q.chunked = is(value, "chunked")
	case is(name, "connection"):
		q.close = is(value, "close")
	case is(name, "expect"):
		q.expect = is(value, "100-continue")
	case is(name, "x-amz-copy-source"), is(name, "x-copy-from"):
		q.copied = true
	case is(name, "range"):
		q.span, q.ranged = parseSpan(value)
	}
	return err
}

// readBody reads the body of a request. It is dropped, unless the answer depends on it.
func (k *conn) readBody(q *request) error {
	k.body = nil
	keep := q.method == "POST" && subresource(q.query) == "delete"
	if !q.chunked {
		return k.take(q.length, keep)
	}
	for {
		line, err := k.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		size, _, _ := bytes.Cut(line, []byte(";")) // an extension
		n, err := strconv.ParseUint(string(bytes.TrimSpace(size)), 16, 62)
		if err != nil {
			return err
		}
		if n == 0 {
			return k.dropTrailers()
		}
		if err := k.take(int64(n), keep); err != nil {
			return err
		}
		if _, err := k.r.Discard(len("\r\n")); err != nil {
			return err
		}
	}
}

// maxBody is the most that is kept of a body: a request to delete 1000 objects is smaller.
const maxBody = 4 << 20

// take reads n bytes of a body, and keeps them as far as maxBody allows.
func (k *conn) take(n int64, keep bool) error {
	if room := maxBody - int64(len(k.body)); keep && room > 0 {
		part := make([]byte, min(n, room))
		if _, err := io.ReadFull(k.r, part); err != nil {
			return err
		}
		k.body, n = append(k.body, part...), n-int64(len(part))
	}
	for n > 0 {
		d, err := k.r.Discard(int(min(n, 1<<30)))
		if err != nil {
			return err
		}
		n -= int64(d)
	}
	return nil
}

// dropTrailers reads the lines behind the last chunk.
func (k *conn) dropTrailers() error {
	for {
		line, err := k.r.ReadSlice('\n')
		if err != nil || len(bytes.TrimRight(line, "\r\n")) == 0 {
			return err
		}
	}
}

func (k *conn) answer(q *request) error {
	if q.path == CountsPath {
		return k.send("200 OK", "", k.json())
	}
	container, object := names(q.path)
	k.count(q, object)
	switch {
	case strings.HasPrefix(q.path, "/auth/"):
		return k.send("200 OK", "X-Auth-Token: null\r\nX-Storage-Url: "+
			"http://"+k.c.LocalAddr().String()+"/v1/AUTH_null\r\n", nil)
	case q.method == "GET" && object == client.Marker:
		return k.send("200 OK", "", []byte(client.Mark))
	case strings.HasPrefix(q.path, swiftPath):
		return k.swift(q, container, object)
	}
	return k.s3(q, container, object)
}

// swift answers a request of Swift.
func (k *conn) swift(q *request, container, object string) error {
	switch {
	case q.method == "GET" && object == "":
		return k.send("200 OK", "", []byte("<ListBucketResult></ListBucketResult>"))
	case q.method == "GET", q.head && object != "":
		return k.object(q, container, object)
	case q.method == "DELETE":
		return k.send("204 No Content", "", nil)
	}
	return k.stored()
}

// stored answers a request that a store would keep something of.
func (k *conn) stored() error {
	return k.send("200 OK", "ETag: "+etag+"\r\nX-Container-Meta-Cnsbench-Owner: "+client.Mark+"\r\n", nil)
}

// swiftPath begins the paths of Swift; the account follows.
const swiftPath = "/v1/"

// names splits a path.
func names(path string) (container, object string) {
	if rest, ok := strings.CutPrefix(path, swiftPath); ok {
		_, path, _ = strings.Cut(rest, "/")
	}
	path = strings.TrimPrefix(path, "/")
	container, object, _ = strings.Cut(path, "/")
	return container, object
}

func (k *conn) send(status, headers string, content []byte) error {
	b := append(append(append(k.out[:0], "HTTP/1.1 "...), status...), "\r\n"...)
	b = append(b, headers...)
	if status[:3] != "204" {
		b = strconv.AppendInt(append(b, "Content-Length: "...), int64(len(content)), 10)
		b = append(b, "\r\n"...)
	}
	b = append(append(b, "\r\n"...), content...)
	_, err := k.c.Write(b)
	return err
}

// object sends one that is made up.
func (k *conn) object(q *request, container, object string) error {
	from, to := int64(0), k.size
	b := append(k.out[:0], "HTTP/1.1 "...)
	if q.ranged {
		var ok bool
		if from, to, ok = q.span.of(k.size); !ok {
			return k.fail(q, "416 Requested Range Not Satisfiable", "InvalidRange",
				fmt.Sprintf("objects have %d bytes", k.size))
		}
		b = append(b, "206 Partial Content\r\nContent-Range: bytes "...)
		b = append(strconv.AppendInt(b, from, 10), '-')
		b = append(strconv.AppendInt(b, to-1, 10), '/')
		b = append(strconv.AppendInt(b, k.size, 10), "\r\n"...)
	} else {
		b = append(b, "200 OK\r\n"...)
	}
	length := to - from
	b = strconv.AppendInt(append(b, "Content-Length: "...), length, 10)
	b = append(append(b, k.entity...), "\r\n"...)
	if q.head {
		_, err := k.c.Write(b)
		return err
	}
	id := payload.ID{Key: payload.Key(container, object), Size: k.size}
	skip := from % payload.Block // a block is made as a whole
	for sent := int64(0); sent < length || len(b) > 0; {
		n := min(int64(cap(b)-len(b)), length-sent+skip)
		if n < length-sent+skip {
			n &^= payload.Block - 1
		}
		at := len(b)
		b = b[:at+int(n)]
		id.Fill(b[at:], from+sent-skip)
		if skip > 0 {
			b = append(b[:at], b[at+int(skip):]...)
			n, skip = n-skip, 0
		}
		sent += n
		if _, err := k.c.Write(b); err != nil {
			return err
		}
		b = k.out[:0]
	}
	return nil
}
