package message_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
)

const secret = "0123456789abcdef"

func protocol() message.Protocol {
	began := time.Now()
	return message.Protocol{Magic: "test", Proto: 3, Version: "v1", Dials: "controller", Serves: "worker",
		MaxSize: 1 << 20, Silence: 5 * time.Second, Now: func() int64 { return int64(time.Since(began)) }}
}

// server is the side that serves, and what happened there.
type server struct {
	entered chan net.Addr
	words   chan string
	failed  chan error
	busy    error
	left    chan struct{}
}

func (s *server) handler() message.Handler {
	return message.Handler{
		Enter: func(from net.Addr) (any, func(), error) {
			s.entered <- from
			return map[string]int{"cpus": 2}, func() { s.left <- struct{}{} }, s.busy
		},
		Session: func(_ context.Context, p *message.Peer) error {
			for {
				var l word
				if err := p.Read(&l); err != nil {
					return err
				}
				s.words <- l.Word
			}
		},
		Failed: func(_ net.Addr, err error) { s.failed <- err },
	}
}

func newServer() *server {
	return &server{entered: make(chan net.Addr, 9), words: make(chan string, 9), failed: make(chan error, 9),
		left: make(chan struct{}, 9)}
}

// serve serves on a port of this machine until the test ends.
func (s *server) serve(t *testing.T) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- message.Serve(ctx, l, secret, protocol(), s.handler()) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return l.Addr().String()
}

// TestSession: with the same token both sides have a session; what the serving side says about itself, and what follows
// the handshake, arrives; leave is called at its end, which is no failure.
func TestSession(t *testing.T) {
	s := newServer()
	followed := false
	p, err := message.Dial(t.Context(), s.serve(t), secret, protocol(), func(*message.Peer) error {
		followed = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var about map[string]int
	if err := json.Unmarshal(p.About, &about); err != nil || about["cpus"] != 2 || !followed {
		t.Errorf("about %s, %v; followed: %t", p.About, err, followed)
	}
	if err := p.Write(&word{Word: "hi"}); err != nil || <-s.words != "hi" {
		t.Errorf("the word: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	<-s.left
	if len(s.failed) > 0 {
		t.Errorf("the end of a session is a failure: %v", <-s.failed)
	}
}

// TestRefused: the side that dials learns why there is no session, and a peer without the token enters none.
func TestRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		token   string
		change  func(*message.Protocol)
		busy    error
		want    error  // of Dial
		says    string // Dial's error
		failed  string // the error of the side that serves
		entered int
	}{
		"wrong token": {token: "another 16 bytes of it", want: message.ErrToken,
			says: "token mismatch, or not a cnsbench worker (it says: token mismatch)", failed: "refused: token mismatch"},
		"wrong protocol": {change: func(p *message.Protocol) { p.Proto = 4 }, want: message.ErrVersion,
			says: "the controller has protocol version 4, this worker 3", failed: "protocol version 4"},
		"wrong protocol and token": {token: "another 16 bytes of it", change: func(p *message.Protocol) { p.Proto = 2 },
			want: message.ErrVersion, says: "protocol version 2", failed: "protocol version 2"},
		"wrong version": {change: func(p *message.Protocol) { p.Version = "v2" }, want: message.ErrVersion,
			says: "the controller is version v2, this worker is v1", failed: "version v2"},
		"another program": {change: func(p *message.Protocol) { p.Magic = "other" },
			says: "too many connections, or is not a cnsbench worker", failed: "not a cnsbench controller"},
		"in use": {busy: errors.New("run 7 is in progress"), want: message.ErrBusy,
			says: "in use by another controller (it says: run 7 is in progress)", failed: "run 7 is in progress", entered: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer()
			s.busy = tt.busy
			p, token := protocol(), secret
			if tt.token != "" {
				token = tt.token
			}
			if tt.change != nil {
				tt.change(&p)
			}
			_, err := message.Dial(t.Context(), s.serve(t), token, p, func(*message.Peer) error {
				t.Error("something follows the handshake")
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), tt.says) || tt.want != nil && !errors.Is(err, tt.want) {
				t.Errorf("dial: %v; want %q", err, tt.says)
			}
			if err := <-s.failed; !strings.Contains(err.Error(), tt.failed) {
				t.Errorf("serve: %v; want %q", err, tt.failed)
			}
			if len(s.entered) != tt.entered || len(s.left) != tt.entered {
				t.Errorf("%d entered and %d left, want %d", len(s.entered), len(s.left), tt.entered)
			}
		})
	}
}

// frame is a message as it is on the wire.
func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

// TestImpostor: the side that serves must prove the token too, with a message of bounded size.
func TestImpostor(t *testing.T) {
	for name, tt := range map[string]struct {
		answer []byte
		says   string
	}{
		"a wrong proof":      {frame(`{"welcome":{"proof":"AAAA"}}`), "token mismatch, or not a cnsbench worker"},
		"no proof":           {frame(`{"welcome":{}}`), "authentication failed: token mismatch"},
		"no answer":          {frame(`{}`), "not a cnsbench worker"},
		"no message":         {frame("HTTP/1.1 400 Bad Request"), "decode message"},
		"a large welcome":    {[]byte("\x7f\xff\xff\xff"), "exceeds the protocol's limit"},
		"half an answer":     {frame(`{"welcome":{}}`)[:9], "unexpected EOF"},
		"closed at once":     {nil, "connection closed: the worker has too many connections"},
		"an unknown refusal": {frame(`{"refuse":{"reason":"too new","kind":"x"}}`), "version mismatch"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			identity, err := transport.NewIdentity()
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan error)
			go func() {
				done <- transport.Serve(ctx, l, identity, func(_ context.Context, link *transport.Link) error {
					if _, err := link.Read(make([]byte, 4096)); err != nil {
						return err
					}
					_, err := link.Write(tt.answer)
					return err
				}, func(net.Addr, error) {})
			}()
			_, err = message.Dial(t.Context(), l.Addr().String(), secret, protocol(), func(*message.Peer) error {
				t.Error("there is a session")
				return nil
			})
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
}

// pipes is a listener whose connections are in memory, so that time can be virtual.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}
func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestHello: a peer that has not proved the token cannot hold the serving side for long, nor make it keep much. Time is
// virtual.
func TestHello(t *testing.T) {
	for name, tt := range map[string]struct {
		peer func(c net.Conn) // after the handshake of TLS
		want string           // the failure; "": none
		took time.Duration
	}{
		"silent": {func(net.Conn) {}, "stopped responding: no data for 10s", 10 * time.Second},
		"slow: a byte each 5 s": {func(c net.Conn) {
			for _, b := range frame(`{"hello":{"magic":"test","proto":3}}`) {
				if _, err := c.Write([]byte{b}); err != nil {
					return
				}
				time.Sleep(5 * time.Second)
			}
		}, "no handshake within 20s", 20 * time.Second},
		"oversized": {func(c net.Conn) { _, _ = c.Write(frame(strings.Repeat(" ", 4097))[:64]) },
			"exceeds the protocol's limit", 0},
		"no message":   {func(c net.Conn) { _, _ = c.Write(frame("SSH-2.0-x")) }, "decode message", 0},
		"no hello":     {func(c net.Conn) { _, _ = c.Write(frame(`{"welcome":{}}`)) }, "not a cnsbench controller", 0},
		"closed early": {func(c net.Conn) { _ = c.Close() }, "", 0},
		"closed within a message": {func(c net.Conn) {
			_, _ = c.Write(frame(`{"hello":{}}`)[:7])
			_ = c.Close()
		}, "unexpected EOF", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer()
				l := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- message.Serve(ctx, l, secret, protocol(), s.handler()) }()
				near, far := net.Pipe()
				l.accept <- far
				secure := tls.Client(near, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true})
				if err := secure.HandshakeContext(ctx); err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				sent := make(chan struct{})
				go func() { defer close(sent); tt.peer(secure) }()
				_, _ = io.Copy(&bytes.Buffer{}, secure) // until the other side closes
				if took := time.Since(began); took < tt.took || took > tt.took+time.Second {
					t.Errorf("it was held for %v, want %v", took, tt.took)
				}
				synctest.Wait()
				select {
				case err := <-s.failed:
					if tt.want == "" || !strings.Contains(err.Error(), tt.want) {
						t.Errorf("failed: %v; want %q", err, tt.want)
					}
				default:
					if tt.want != "" {
						t.Errorf("no failure, want %q", tt.want)
					}
				}
				if len(s.entered) > 0 {
					t.Error("it has entered")
				}
				_ = near.Close()
				cancel()
				if err := <-done; err != nil {
					t.Error(err)
				}
				<-sent
			})
		})
	}
}

// TestDialEnds: Dial returns when its context ends, although the other side does not answer.
func TestDialEnds(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		_, _ = c.Read(make([]byte, 1)) // the first packet has come
		cancel()
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}()
	_, err = message.Dial(ctx, l.Addr().String(), secret, protocol(), func(*message.Peer) error { return nil })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want that the context was cancelled", err)
	}
}

// TestShortToken: a token that can be guessed is refused before anything is served, and the listener is closed.
func TestShortToken(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := message.Serve(t.Context(), l, "short", protocol(), message.Handler{}); err == nil ||
		!strings.Contains(err.Error(), "at least 16") {
		t.Errorf("%v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener: %v", err)
	}
}
