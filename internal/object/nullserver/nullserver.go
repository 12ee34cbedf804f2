// Package nullserver is an HTTP server that stores nothing and responds at once, as S3 and as Swift: a client's
// throughput against it is the client's ceiling. The content of an object is computed from its name, so that it can
// be verified; request bodies are read and dropped.
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

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/payload"
)

// Serve serves connections of l until ctx ends; then it closes l and all connections.
func (o Options) Serve(ctx context.Context, l net.Listener) error {
	s := &server{size: o.Size, open: map[net.Conn]bool{}}
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
	method, path, query  string
	length               int64
	chunked, close, head bool
	from, to             int64 // of a range; to < 0: none
	copied               bool
}

func (k *conn) one(ctx context.Context) error {
	q, err := k.readHead()
	if err != nil {
		return err
	}
	if err := k.drop(q); err != nil {
		return err
	}
	done := func() {}
	if k.holder != nil {
		if done, err = k.holder.hold(ctx, &q); err != nil {
			return err
		}
	}
	err = k.answer(q)
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
	q := request{to: -1}
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
		if err := q.header(name, string(bytes.TrimSpace(value))); err != nil {
			return q, err
		}
	}
}

func (q *request) header(name []byte, value string) (err error) {
	switch {
	case bytes.EqualFold(name, []byte("content-length")):
		q.length, err = strconv.ParseInt(value, 10, 64)
	case bytes.EqualFold(name, []byte("transfer-encoding")):
		q.chunked = strings.EqualFold(value, "chunked")
	case bytes.EqualFold(name, []byte("connection")):
		q.close = strings.EqualFold(value, "close")
	case bytes.EqualFold(name, []byte("x-amz-copy-source")), bytes.EqualFold(name, []byte("x-copy-from")):
		q.copied = true
	case bytes.EqualFold(name, []byte("range")):
		if _, err := fmt.Sscanf(value, "bytes=%d-%d", &q.from, &q.to); err != nil {
			q.to = -1
		}
	}
	return err
}

// drop reads the body of a request.
func (k *conn) drop(q request) error {
	if !q.chunked {
		_, err := k.r.Discard(int(q.length))
		return err
	}
	for {
		line, err := k.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 64)
		if err != nil {
			return err
		}
		if _, err := k.r.Discard(int(n) + 2); err != nil || n == 0 {
			return err
		}
	}
}

func (k *conn) answer(q request) error {
	if q.path == CountsPath {
		return k.send("200 OK", "", k.json())
	}
	container, object := names(q.path)
	k.count(&q, object)
	switch {
	case strings.HasPrefix(q.path, "/auth/"):
		return k.send("200 OK", "X-Auth-Token: null\r\nX-Storage-Url: "+
			"http://"+k.c.LocalAddr().String()+"/v1/AUTH_null\r\n", nil)
	case q.method == "GET" && object == client.Marker:
		return k.send("200 OK", "", []byte(client.Mark))
	case q.method == "GET" && object == "":
		return k.send("200 OK", "", []byte("<ListBucketResult></ListBucketResult>"))
	case q.method == "GET", q.head && object != "":
		return k.object(q, container, object)
	case q.method == "DELETE":
		return k.send("204 No Content", "", nil)
	case q.method == "POST" && strings.HasPrefix(q.query, "uploads"):
		return k.send("200 OK", "",
			[]byte("<InitiateMultipartUploadResult><UploadId>null</UploadId></InitiateMultipartUploadResult>"))
	case q.method == "PUT" && q.copied:
		return k.send("200 OK", "", []byte("<CopyObjectResult></CopyObjectResult>"))
	}
	return k.send("200 OK", "ETag: \"null\"\r\nX-Container-Meta-Cnsbench-Owner: "+client.Mark+"\r\n", nil)
}

// names splits a path; that of Swift begins with /v1/ACCOUNT.
func names(path string) (container, object string) {
	path = strings.TrimPrefix(path, "/")
	if rest, ok := strings.CutPrefix(path, "v1/"); ok {
		_, path, _ = strings.Cut(rest, "/")
	}
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
func (k *conn) object(q request, container, object string) error {
	from, length, status := int64(0), k.size, "200 OK\r\n"
	if q.to >= 0 {
		from, status = min(q.from, k.size), "206 Partial Content\r\n"
		length = min(q.to+1, k.size) - from
	}
	b := append(append(k.out[:0], "HTTP/1.1 "...), status...)
	b = strconv.AppendInt(append(b, "Content-Length: "...), length, 10)
	b = append(b, "\r\nETag: \"null\"\r\n\r\n"...)
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
