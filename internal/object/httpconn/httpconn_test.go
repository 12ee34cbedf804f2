package httpconn

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/cnsbench/cnsbench/internal/op"
)

// scripted listens and gives each connection to serve, one after the other.
func scripted(t *testing.T, serve func(n int, c net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				serve(n, c)
			}()
		}
	}()
	return l.Addr().String()
}

// answering answers each request of a connection with a text.
func answering(texts ...string) func(int, net.Conn) {
	return func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		for _, text := range texts {
			req, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, req.Body)
			_, _ = io.WriteString(c, text)
		}
	}
}

func newConn(t *testing.T, address string, timeout time.Duration) *Conn {
	t.Helper()
	c := NewConn(Endpoint{Address: address, Host: address, Timeout: timeout, Clock: op.NewClock()})
	t.Cleanup(c.Close)
	return c
}

// get asks for "/"; the answer's body is kept.
func get(t *testing.T, c *Conn) (*Exchange, string, *Failure) {
	t.Helper()
	var got strings.Builder
	x := &Exchange{Head: []byte("GET / HTTP/1.1\r\nHost: test\r\n"), Sink: func(_ int, p []byte) { got.Write(p) }}
	f := c.Do(t.Context(), x)
	return x, got.String(), f
}

// onBoth runs a test on a new connection and on one that was used just before: there, the end of a request is written
// and the beginning of its response is read in one step.
func onBoth(t *testing.T, name string, serve func(int, net.Conn), timeout time.Duration, run func(*testing.T, *Conn)) {
	t.Helper()
	t.Run(name+", new", func(t *testing.T) {
		t.Parallel()
		run(t, newConn(t, scripted(t, serve), timeout))
	})
	t.Run(name+", used", func(t *testing.T) {
		t.Parallel()
		c := newConn(t, scripted(t, func(n int, c net.Conn) {
			if readRequest(c) {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfirst")
				serve(n, c)
			}
		}), timeout)
		if _, body, f := get(t, c); f != nil || body != "first" {
			t.Fatalf("the first exchange: %q, %v", body, f)
		}
		run(t, c)
	})
}

// readRequest reads a request without a body, and no byte more.
func readRequest(c net.Conn) bool {
	var head []byte
	for one := make([]byte, 1); !bytes.HasSuffix(head, endOfHead); head = append(head, one...) {
		if _, err := c.Read(one); err != nil {
			return false
		}
	}
	return true
}

func TestAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := []struct {
		name, answer string
		status       int
		body         string
		kind         Kind
		keeps        bool
	}{
		{"length", ok + "Content-Length: 5\r\n\r\nhello", 200, "hello", "", true},
		{"empty", ok + "content-length:0\r\n\r\n", 200, "", "", true},
		{"no content", "HTTP/1.1 204 No Content\r\n\r\n", 204, "", "", true},
		{"no reason", "HTTP/1.1 404\r\nContent-Length: 2\r\n\r\nno", 404, "no", "", true},
		{"chunks", ok + "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nA: b\r\n\r\n", 200,
			"hello world", "", true},
		{"until it closes", ok + "\r\nall of it", 200, "all of it", "", false},
		{"closing", ok + "Connection: close\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", "", false},
		{"HTTP/1.0", "HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nhi", 200, "hi", "", false},
		{"go on first", "HTTP/1.1 100 Continue\r\n\r\n" + ok + "Content-Length: 2\r\n\r\nhi", 200, "hi", "", true},
		{"more than it says", ok + "Content-Length: 2\r\n\r\nhi there", 200, "hi", "", false},
		{"closed before an answer", "", 0, "", Closed, false},
		{"cut in the head", "HTTP/1.1 200 OK\r\nContent-Le", 0, "", Cut, false},
		{"cut in the body", ok + "Content-Length: 50\r\n\r\nhello", 200, "hello", Cut, false},
		{"cut in a chunk", ok + "Transfer-Encoding: chunked\r\n\r\n50\r\nhello", 200, "hello", Cut, false},
		{"no HTTP", "220 smtp ready\r\n\r\n", 0, "", Garbage, false},
		{"HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", 0, "", Garbage, false},
		{"no status", "HTTP/1.1 abc OK\r\n\r\n", 0, "", Garbage, false},
		{"no header", ok + "what is this\r\n\r\n", 200, "", Garbage, false},
		{"a negative length", ok + "Content-Length: -1\r\n\r\n", 200, "", Garbage, false},
		{"two lengths", ok + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 200, "", Garbage, false},
		{"no size of a chunk", ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", 200, "", Garbage, false},
		{"a head without end", ok + strings.Repeat("X: y\r\n", 20000), 0, "", Garbage, false},
	}
	for _, tt := range tests {
		onBoth(t, tt.name, answering(tt.answer), 5*time.Second, func(t *testing.T, c *Conn) {
			x, body, f := get(t, c)
			kind := Kind("")
			if f != nil {
				kind = f.Kind
			}
			if kind != tt.kind || x.Status != tt.status || body != tt.body {
				t.Fatalf("%d %q, %v; want %d %q, kind %q", x.Status, body, f, tt.status, tt.body, tt.kind)
			}
			if keeps := c.c != nil; keeps != tt.keeps {
				t.Errorf("the connection is kept: %v, want %v", keeps, tt.keeps)
			}
			if f == nil && !(x.Began <= x.Connected && x.Connected <= x.First && x.First <= x.Done) {
				t.Errorf("the phases are out of order: %+v", x)
			}
		})
	}
}

// TestLastChunkWithoutBody: eventlet ends a response that has no body with a chunk of size 0, with its head or later.
func TestLastChunkWithoutBody(t *testing.T) {
	for _, tt := range []struct {
		name  string
		delay time.Duration
	}{{"at once", 0}, {"in a packet of its own", 30 * time.Millisecond}, {"with the next response", -1}} {
		t.Run(tt.name, func(t *testing.T) {
			address := scripted(t, func(n int, c net.Conn) {
				const head = "HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n"
				r, chunk := bufio.NewReader(c), lastChunk
				for i := 0; ; i++ {
					if _, err := http.ReadRequest(r); err != nil || n > 0 {
						return // a second connection is none of this test
					}
					switch {
					case tt.delay == 0:
						_, _ = io.WriteString(c, head+chunk)
					case tt.delay > 0:
						_, _ = io.WriteString(c, head)
						time.Sleep(tt.delay)
						_, _ = io.WriteString(c, chunk[:4])
						time.Sleep(time.Millisecond)
						_, _ = io.WriteString(c, chunk[4:])
						time.Sleep(tt.delay)
					case i == 0:
						_, _ = io.WriteString(c, head)
					default:
						_, _ = io.WriteString(c, chunk+head)
					}
				}
			})
			c := newConn(t, address, 5*time.Second)
			for i := range 6 {
				x, body, f := get(t, c)
				if f != nil || x.Status != 204 || body != "" {
					t.Fatalf("response %d: %d %q, %v", i, x.Status, body, f)
				}
				if i > 0 && tt.delay > 0 && x.First-x.Began < op.Time(tt.delay) {
					t.Errorf("response %d: its first byte came %v after the request; the chunk was taken for it", i,
						time.Duration(x.First-x.Began))
				}
			}
		})
	}
}

// Headers are those of the answer however its body comes.
func TestHeadersStay(t *testing.T) {
	c := newConn(t, scripted(t, func(_ int, c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 201 Created\r\nX-Token: abc\r\nContent-Length: 100000\r\n\r\n")
		time.Sleep(50 * time.Millisecond)
		_, _ = io.WriteString(c, strings.Repeat("x", 100000))
	}), 5*time.Second)
	if x, body, f := get(t, c); f != nil || len(body) != 100000 || x.Header("x-token") != "abc" {
		t.Errorf("%q, %d bytes, %v", x.Header("x-token"), len(body), f)
	}
}

// A connection serves many exchanges, and one that the server has closed is
// not tried again behind the caller's back.
func TestNoHiddenRetry(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"
	connections := make(chan int, 9)
	c := newConn(t, scripted(t, func(n int, c net.Conn) {
		connections <- n
		answering(ok, ok)(n, c)
	}), 5*time.Second)
	want := []Kind{"", "", Closed, "", ""}
	for i, kind := range want {
		x, _, f := get(t, c)
		got := Kind("")
		if f != nil {
			got = f.Kind
		}
		// Closed, or reset, as the kernel has noticed by then.
		if got != kind && !(kind == Closed && got == Reset) {
			t.Errorf("exchange %d: %q, want %q", i, got, kind)
		}
		if reused := i == 1 || i == 2 || i == 4; x.Reused != reused {
			t.Errorf("exchange %d: reused %v", i, x.Reused)
		}
	}
	if n := len(connections); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
}

func TestStallsAreToldApart(t *testing.T) {
	wait := func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	big := &Exchange{Head: []byte("PUT / HTTP/1.1\r\nHost: x\r\n"), Content: zeros{}, Size: 1 << 30}
	tests := []struct {
		name  string
		serve func(int, net.Conn)
		x     *Exchange
		want  Kind
	}{
		{"no answer", func(_ int, c net.Conn) { wait(c) }, nil, Stalled},
		{"half an answer", func(_ int, c net.Conn) {
			readRequest(c)
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe")
			wait(c)
		}, nil, BodyStalled},
		{"takes nothing", func(_ int, c net.Conn) { time.Sleep(10 * time.Second) }, big, SendStalled},
	}
	for _, tt := range tests {
		onBoth(t, tt.name, tt.serve, 200*time.Millisecond, func(t *testing.T, c *Conn) {
			start := time.Now()
			var f *Failure
			if tt.x != nil {
				x := *tt.x
				f = c.Do(t.Context(), &x)
			} else {
				_, _, f = get(t, c)
			}
			if f == nil || f.Kind != tt.want {
				t.Errorf("%v, want %s", f, tt.want)
			}
			if took := time.Since(start); took > 5*time.Second {
				t.Errorf("it took %v to notice", took)
			}
		})
	}
}

type zeros struct{}

func (zeros) Read(dst []byte, _ int64) error { clear(dst); return nil }

func TestRefused(t *testing.T) {
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	address := l.Addr().String()
	_ = l.Close()
	x, _, f := get(t, newConn(t, address, time.Second))
	if f == nil || f.Kind != Refused || x.Connected.Known() || x.First.Known() || !x.Done.Known() {
		t.Errorf("%v, %+v", f, x)
	}
	if _, _, f := get(t, newConn(t, "no-such-host.invalid:80", 5*time.Second)); f == nil || f.Kind != Unresolved {
		t.Errorf("%v, want %s", f, Unresolved)
	}
}

// A proxy is asked for the server by its name; one that gives no tunnel is told
// apart from a server that fails.
func TestProxy(t *testing.T) {
	asked := make(chan *http.Request, 1)
	proxy := func(answer string) string {
		return scripted(t, func(_ int, c net.Conn) {
			r, err := http.ReadRequest(bufio.NewReader(c))
			if err != nil {
				return
			}
			asked <- r
			_, _ = io.WriteString(c, answer)
		})
	}
	for _, tt := range []struct {
		name, answer string
		tls          bool
		want         Kind
		line         string
	}{
		{"plain", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", false, "", "GET http://test/"},
		{"a refusal", "HTTP/1.1 403 Forbidden\r\n\r\n", true, ProxyRefused, "CONNECT store:443"},
		{"no answer", "", true, ProxyRefused, "CONNECT store:443"},
		{"no HTTP", "220 smtp ready\r\n\r\n", true, ProxyRefused, "CONNECT store:443"},
		{"no end", "HTTP/1.1 200 OK\r\n" + strings.Repeat("X: y\r\n", 1<<14), true, ProxyRefused, "CONNECT store:443"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			ep := Endpoint{Address: "store:443", Host: "store", Proxy: proxy(tt.answer),
				Timeout: 5 * time.Second, Clock: op.NewClock()}
			if tt.tls {
				ep.TLS = &tls.Config{ServerName: "store", MinVersion: tls.VersionTLS12}
			}
			c := NewConn(ep)
			defer c.Close()
			_, _, f := get(t, c)
			kind := Kind("")
			if f != nil {
				kind = f.Kind
			}
			if r := <-asked; kind != tt.want || r.Method+" "+r.RequestURI != tt.line {
				t.Errorf("%s %s: %v, want kind %q of %s", r.Method, r.RequestURI, f, tt.want, tt.line)
			}
		})
	}
}

func TestAbort(t *testing.T) {
	silent := func(_ int, c net.Conn) { _, _ = io.Copy(io.Discard, c) }
	onBoth(t, "no answer", silent, time.Minute, func(t *testing.T, c *Conn) {
		time.AfterFunc(50*time.Millisecond, c.Abort)
		if _, _, f := get(t, c); f == nil || f.Kind != Aborted {
			t.Errorf("%v, want %s", f, Aborted)
		}
		if _, _, f := get(t, c); f == nil || f.Kind != Aborted {
			t.Errorf("afterwards: %v, want %s", f, Aborted)
		}
	})
}

// TestUnasked checks that bytes which come before a request end its exchange at once: those of a server that answers
// before it reads, and those of one that refuses and closes a connection just after an exchange.
func TestUnasked(t *testing.T) {
	const refusal = "HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
	onBoth(t, "refusal", func(_ int, c net.Conn) {
		time.Sleep(2 * time.Millisecond)
		_, _ = io.WriteString(c, refusal)
	}, time.Minute, func(t *testing.T, c *Conn) {
		if !c.used {
			if f := c.connect(t.Context()); f != nil {
				t.Fatal(f)
			}
		}
		time.Sleep(5 * time.Millisecond) // it has come and the server has closed
		start := time.Now()
		x, _, f := get(t, c)
		if refused := f == nil && x.Status == 503; !refused && (f == nil || f.Kind != Reset && f.Kind != Closed) {
			t.Errorf("%d, %v; want 503, %s or %s", x.Status, f, Reset, Closed)
		}
		if took := time.Since(start); took > 5*time.Second {
			t.Errorf("it took %v", took)
		}
	})
}

// TestSlowReader checks that a request arrives whole at a server that takes it by and by, however much of its end the
// kernel takes at once.
func TestSlowReader(t *testing.T) {
	const size = 8<<20 + 17
	sums := make(chan [sha256.Size]byte, 2)
	onBoth(t, "PUT", func(_ int, c net.Conn) {
		time.Sleep(100 * time.Millisecond)
		r, err := http.ReadRequest(bufio.NewReaderSize(c, 1<<10))
		if err != nil {
			return
		}
		body, _ := io.ReadAll(iotest.OneByteReader(io.LimitReader(r.Body, 1<<16)))
		rest, _ := io.ReadAll(r.Body)
		sums <- sha256.Sum256(append(body, rest...))
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
	}, 10*time.Second, func(t *testing.T, c *Conn) {
		x := &Exchange{Head: []byte("PUT / HTTP/1.1\r\nHost: x\r\n"), Content: pattern{}, Size: size}
		if f := c.Do(t.Context(), x); f != nil {
			t.Fatal(f)
		}
		want := make([]byte, size)
		_ = pattern{}.Read(want, 0)
		if got := <-sums; got != sha256.Sum256(want) {
			t.Error("other bytes arrived")
		}
	})
}

// pattern is a content of which each byte tells where it stands.
type pattern struct{}

func (pattern) Read(dst []byte, offset int64) error {
	for i := range dst {
		dst[i] = byte((offset + int64(i)) % 251)
	}
	return nil
}

// net/http, as a server, receives what was sent.
func TestRequestsAsNetHTTPSeesThem(t *testing.T) {
	var got bytes.Buffer
	var seen *http.Request
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got.Reset()
		_, _ = got.ReadFrom(r.Body)
		seen = r
		fmt.Fprint(w, strings.Repeat("x", 300000))
	}))
	defer s.Close()
	c := newConn(t, s.Listener.Addr().String(), 5*time.Second)
	for _, chunked := range []bool{false, true} {
		for _, size := range []int64{0, 1, 4096, 65000, 65536, 70000, 500001} {
			x := &Exchange{Head: []byte("PUT /a/b HTTP/1.1\r\nHost: h\r\nX-Y: z\r\n"), Content: pattern{}, Size: size,
				Chunked: chunked}
			if f := c.Do(t.Context(), x); f != nil {
				t.Fatalf("%d bytes, chunked %v: %v", size, chunked, f)
			}
			want := make([]byte, size)
			_ = pattern{}.Read(want, 0)
			if !bytes.Equal(got.Bytes(), want) {
				t.Errorf("%d bytes, chunked %v: %d bytes arrived, or others", size, chunked, got.Len())
			}
			if seen.Header.Get("X-Y") != "z" || seen.URL.Path != "/a/b" || x.Length != 300000 ||
				chunked != (seen.ContentLength == -1) {
				t.Errorf("%d bytes, chunked %v: %v, answer of %d", size, chunked, seen, x.Length)
			}
		}
	}
}

// A server that refuses an upload before it has read it is heard.
func TestEarlyRefusal(t *testing.T) {
	address := scripted(t, func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		for line := ""; line != "\r\n"; line, _ = r.ReadString('\n') {
		}
		_, _ = io.WriteString(c, "HTTP/1.1 403 Forbidden\r\nContent-Length: 2\r\n\r\nno")
		_ = c.(*net.TCPConn).CloseWrite()
		time.Sleep(200 * time.Millisecond)
	})
	x := &Exchange{Head: []byte("PUT / HTTP/1.1\r\nHost: h\r\n"), Content: zeros{}, Size: 1 << 26}
	f := newConn(t, address, 5*time.Second).Do(t.Context(), x)
	if x.Status != 403 && (f == nil || f.Kind != Reset) {
		t.Errorf("%d, %v: want 403, or that it was reset", x.Status, f)
	}
}

// A server that answers, and takes no more of an upload, is heard too.
func TestRefusalWithoutReading(t *testing.T) {
	done := make(chan struct{})
	defer close(done)
	address := scripted(t, func(_ int, c net.Conn) {
		r := bufio.NewReader(c)
		for line := ""; line != "\r\n"; line, _ = r.ReadString('\n') {
		}
		_, _ = io.WriteString(c, "HTTP/1.1 503 Slow Down\r\nContent-Length: 4\r\n\r\nslow")
		<-done
	})
	var said strings.Builder
	c := newConn(t, address, 200*time.Millisecond)
	x := &Exchange{Head: []byte("PUT / HTTP/1.1\r\nHost: h\r\n"), Content: zeros{}, Size: 1 << 30,
		Sink: func(_ int, p []byte) { said.Write(p) }}
	if f := c.Do(t.Context(), x); f != nil || x.Status != 503 || said.String() != "slow" || c.c != nil {
		t.Errorf("%d %q, %v: want 503, and the connection closed", x.Status, said.String(), f)
	}
}

// Chunks that come one by one are progress, however long all of them take.
func TestSlowChunks(t *testing.T) {
	address := scripted(t, func(_ int, c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err != nil {
			return
		}
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
		for range 8 {
			_, _ = io.WriteString(c, "2\r\nhi\r\n")
			time.Sleep(200 * time.Millisecond)
		}
		_, _ = io.WriteString(c, "0\r\n\r\n")
	})
	if _, body, f := get(t, newConn(t, address, 300*time.Millisecond)); f != nil || body != strings.Repeat("hi", 8) {
		t.Errorf("%q, %v", body, f)
	}
}

func TestTLSFailuresAreToldApart(t *testing.T) {
	now := time.Now()
	cert, pool := certificate(t, "localhost", now.Add(-time.Hour), now.Add(time.Hour))
	old, oldPool := certificate(t, "localhost", now.Add(-2*time.Hour), now.Add(-time.Hour))
	tests := []struct {
		name   string
		cert   *tls.Certificate
		client *tls.Config
		want   Kind
	}{
		{"trusted", cert, &tls.Config{RootCAs: pool, ServerName: "localhost"}, ""},
		{"not verified", cert, &tls.Config{InsecureSkipVerify: true}, ""},
		{"unknown authority", cert, &tls.Config{RootCAs: oldPool, ServerName: "localhost"}, TLSUntrusted},
		{"another name", cert, &tls.Config{RootCAs: pool, ServerName: "example.com"}, TLSName},
		{"expired", old, &tls.Config{RootCAs: oldPool, ServerName: "localhost"}, TLSExpired},
		{"no TLS at all", nil, &tls.Config{RootCAs: pool, ServerName: "localhost"}, WrongScheme},
		{"neither TLS nor HTTP", nil, &tls.Config{RootCAs: pool, ServerName: "localhost"}, TLSFailed},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			address := scripted(t, func(n int, c net.Conn) {
				if tt.cert != nil {
					c = tls.Server(c, &tls.Config{Certificates: []tls.Certificate{*tt.cert}})
				} else {
					answer := "HTTP/1.1 400 Bad Request\r\n\r\n"
					if tt.want == TLSFailed {
						answer = "220 mail.example.com\r\n"
					}
					_, _ = io.WriteString(c, answer)
					return
				}
				answering("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")(n, c)
			})
			c := NewConn(Endpoint{Address: address, Host: "localhost", TLS: tt.client, Timeout: 5 * time.Second,
				Clock: op.NewClock()})
			defer c.Close()
			_, body, f := get(t, c)
			if tt.want == "" && (f != nil || body != "hi") || tt.want != "" && (f == nil || f.Kind != tt.want) {
				t.Errorf("%q, %v; want kind %q", body, f, tt.want)
			}
		})
	}
}

func certificate(t *testing.T, name string, from, to time.Time) (*tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name + from.String()},
		DNSNames:  []string{name},
		NotBefore: from, NotAfter: to, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

func TestContentThatCannotBeRead(t *testing.T) {
	c := newConn(t, scripted(t, answering("HTTP/1.1 200 OK\r\n\r\n")), time.Second)
	f := c.Do(t.Context(), &Exchange{Head: []byte("PUT / HTTP/1.1\r\n"), Content: broken{}, Size: 10})
	if f == nil || f.Kind != LocalFailed {
		t.Errorf("%v, want %s", f, LocalFailed)
	}
}

type broken struct{}

func (broken) Read([]byte, int64) error { return io.ErrUnexpectedEOF }

func TestNoAllocations(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\nContent-Length: 4096\r\nETag: \"x\"\r\n\r\n"
	address := scripted(t, func(_ int, c net.Conn) {
		answer, buf := []byte(ok+strings.Repeat("x", 4096)), make([]byte, 4096)
		for {
			if _, err := c.Read(buf); err != nil {
				return
			}
			_, _ = c.Write(answer)
		}
	})
	c := newConn(t, address, 5*time.Second)
	x := &Exchange{Head: []byte("GET / HTTP/1.1\r\nHost: h\r\n")}
	ctx := context.Background()
	allocs := testing.AllocsPerRun(200, func() {
		if f := c.Do(ctx, x); f != nil {
			t.Fatal(f)
		}
	})
	if allocs > 0.5 {
		t.Errorf("%v allocations an exchange", allocs)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, s := range []string{"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
		"HTTP/1.0 503 Slow Down\r\n\r\nx", "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 \r\n\r\n", "\r\n\r\n"} {
		f.Add([]byte(s))
	}
	clock := op.NewClock()
	f.Fuzz(func(t *testing.T, answer []byte) {
		client, server := net.Pipe()
		go func() {
			buf := make([]byte, 1<<16)
			_, _ = server.Read(buf)
			_, _ = server.Write(answer)
			_ = server.Close()
		}()
		c := NewConn(Endpoint{Timeout: time.Second, Clock: clock})
		c.c, c.moved = client, op.Never
		x := &Exchange{Head: []byte("GET / HTTP/1.1\r\n")}
		if f := c.Do(context.Background(), x); f != nil && f.Kind == "" {
			t.Error("a failure without a kind")
		} else if f == nil && (x.Status < 100 || x.Status > 999) {
			t.Errorf("status %d", x.Status)
		}
		c.Close()
		_ = server.Close()
	})
}

// TestTLSWhereHTTPWasMeant checks that an alert of TLS is not taken for a broken response.
func TestTLSWhereHTTPWasMeant(t *testing.T) {
	address := scripted(t, func(_ int, c net.Conn) {
		if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
			_, _ = c.Write([]byte{0x15, 3, 1, 0, 2, 2, 70}) // fatal, protocol version
		}
	})
	c := NewConn(Endpoint{Address: address, Host: address, Timeout: time.Second, Clock: op.NewClock()})
	defer c.Close()
	f := c.Do(t.Context(), &Exchange{Head: []byte("GET / HTTP/1.1\r\nHost: x\r\n")})
	if f == nil || f.Kind != WrongScheme {
		t.Errorf("%v, want %s", f, WrongScheme)
	}
}
