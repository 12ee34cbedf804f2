package csiproxy_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/message"
	"github.com/cnsbench/cnsbench/internal/csi/csidriver"
	"github.com/cnsbench/cnsbench/internal/csi/csiproxy"
	"github.com/cnsbench/cnsbench/internal/op"
)

func tryDial(t *testing.T, address, token string) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	c, err := csiproxy.Dial(ctx, address, token, op.NewClock(), (&watcher{}).handlers())
	if err == nil {
		c.Close()
	}
	return err
}

func TestToken(t *testing.T) {
	_, p, _ := beside(t, csidriver.Options{}, csiproxy.Options{})
	address := serveRecords(t, p)
	if err := tryDial(t, address, token); err != nil {
		t.Errorf("the token: %v", err)
	}
	if err := tryDial(t, address, token+"x"); !errors.Is(err, message.ErrToken) {
		t.Errorf("another token: %v", err)
	}
	if err := tryDial(t, address, "short"); err == nil || !strings.Contains(err.Error(), "at least 16") {
		t.Errorf("a short token: %v", err)
	}
	if err := tryDial(t, inTheMiddle(t, address), token); !errors.Is(err, message.ErrToken) {
		t.Errorf("somebody in the middle: %v", err)
	}
	if err := p.Serve(t.Context(), closed(t), "short"); err == nil {
		t.Error("served with a short token")
	}
}

// TestNotARunner checks that peers that are not runners are rejected and that the proxy continues.
func TestNotARunner(t *testing.T) {
	_, p, _ := beside(t, csidriver.Options{}, csiproxy.Options{})
	address := serveRecords(t, p)
	for name, say := range map[string]string{
		"nothing": "", "no frame": "GET / HTTP/1.1\r\n\r\n", "too long": "\xff\xff\xff\xff", "no JSON": "\x00\x00\x00\x02{]",
		"no hello": "\x00\x00\x00\x02{}", "another magic": "\x00\x00\x00\x17" + `{"hello":{"magic":"x"}}`,
		"no proof":        frame(`{"hello":{"magic":"cnsbench-csi-proxy","proto":2}}`),
		"another version": frame(`{"hello":{"magic":"cnsbench-csi-proxy","proto":99}}`),
	} {
		t.Run(name, func(t *testing.T) {
			c, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			io.WriteString(c, say)
			c.CloseWrite()
			answer, _ := io.ReadAll(c)
			want := map[string]string{"another version": "the runner has protocol version 99, this proxy 2",
				"no proof": "token mismatch"}[name]
			if (len(answer) > 0) != (want != "") || !strings.Contains(string(answer), want) {
				t.Errorf("answered %q", answer)
			}
		})
	}
	if err := tryDial(t, address, token); err != nil {
		t.Errorf("a runner after the strangers: %v", err)
	}
}

func frame(text string) string { return string([]byte{0, 0, 0, byte(len(text))}) + text }

func closed(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	return l
}

// inTheMiddle terminates TLS with its own certificate and forwards all data.
func inTheMiddle(t *testing.T, address string) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der},
		PrivateKey: key}}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			up, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true})
			if err != nil {
				c.Close()
				return
			}
			go func() { io.Copy(up, c); up.Close() }()
			go func() { io.Copy(c, up); c.Close() }()
		}
	}()
	return l.Addr().String()
}

// cable forwards connections to an address until it is cut.
type cable struct {
	net.Listener
	mu    sync.Mutex
	to    string
	conns []net.Conn
	cut   bool
}

func newCable(t *testing.T, to string) *cable {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: l, to: to}
	t.Cleanup(func() { l.Close(); c.set(to, true) })
	go func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			c.mu.Lock()
			b, err := net.Dial("tcp", c.to)
			if err != nil || c.cut {
				a.Close()
			} else {
				c.conns = append(c.conns, a, b)
				go io.Copy(a, b)
				go io.Copy(b, a)
			}
			c.mu.Unlock()
		}
	}()
	return c
}

func (c *cable) set(to string, cut bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to, c.cut = to, cut
	for _, conn := range c.conns {
		conn.Close()
	}
	c.conns = nil
}

// TestReconnect checks that a lost connection loses no calls, and that a new proxy is reported as a gap.
func TestReconnect(t *testing.T) {
	_, p, socket := beside(t, csidriver.Options{}, csiproxy.Options{})
	address := serveRecords(t, p)
	line := newCable(t, address)
	var w watcher
	client, clock := w.follow(t, line.Addr().String())
	conn := dial(t, socket)
	create := func(name string) {
		t.Helper()
		if _, err := createVolume(t.Context(), conn, name); err != nil {
			t.Fatal(err)
		}
	}
	create("before")
	waitFor(t, "the first call", func() bool { return len(w.of("", true)) == 1 })
	line.set(address, true)
	waitFor(t, "the loss", func() bool { return client.Err() != nil })
	for i := range 20 {
		create(fmt.Sprint("away-", i))
	}
	back := clock.Now()
	line.set(address, false)
	waitFor(t, "the calls made meanwhile", func() bool { return len(w.of("", true)) == 21 })
	for i, c := range w.of("", true) {
		if c.Seq != w.of("", true)[0].Seq+int64(i) || c.End > back+op.Time(c.Err) {
			t.Errorf("call %d is %+v", i, c)
		}
	}
	if g := w.lacks(); len(g) > 0 || client.Err() != nil || len(w.of("", false)) != 21 {
		t.Errorf("gaps %v, error %v, %d starts", g, client.Err(), len(w.of("", false)))
	}

	_, other, socket2 := beside(t, csidriver.Options{}, csiproxy.Options{Offset: -time.Hour})
	line.set(serveRecords(t, other), false)
	waitFor(t, "the gap", func() bool { return len(w.lacks()) == 1 })
	if g := w.lacks()[0]; !g.Restarted || g.Lost != -1 || g.From >= g.To || g.From < back {
		t.Errorf("the gap is %+v", g)
	}
	waitFor(t, "the new proxy", func() bool { return client.Err() == nil })
	after := clock.Now()
	if _, err := createVolume(t.Context(), dial(t, socket2), "after"); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "its call", func() bool { return len(w.of("CreateVolume", true)) == 22 })
	if c := w.of("CreateVolume", true)[21]; c.Name != "after" || c.Start < after-op.Time(c.Err) || c.End > clock.Now() {
		t.Errorf("after %d: %+v", after, c)
	}
}

// TestLost checks that a runner that was disconnected for longer than the proxy keeps records receives the number of
// lost records.
func TestLost(t *testing.T) {
	_, p, socket := beside(t, csidriver.Options{}, csiproxy.Options{MaxCalls: 10})
	address := serveRecords(t, p)
	line := newCable(t, address)
	var w watcher
	client, _ := w.follow(t, line.Addr().String())
	conn := dial(t, socket)
	for i := range 31 {
		if i == 1 {
			waitFor(t, "the first call", func() bool { return len(w.of("", true)) == 1 })
			line.set(address, true)
			waitFor(t, "the loss", func() bool { return client.Err() != nil })
		}
		if _, err := createVolume(t.Context(), conn, fmt.Sprint("pvc-", i)); err != nil {
			t.Fatal(err)
		}
	}
	line.set(address, false)
	waitFor(t, "what is left", func() bool { return len(w.of("", true)) == 11 })
	if g := w.lacks(); len(g) != 1 || g[0].Lost != 40 || g[0].Restarted { // 20 calls with two records each
		t.Errorf("gaps: %+v", g)
	}
}

// TestUnreachable checks that dialing an absent proxy returns an error when the context ends.
func TestUnreachable(t *testing.T) {
	address := closed(t).Addr().String()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err := csiproxy.Dial(ctx, address, token, op.NewClock(), (&watcher{}).handlers())
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), address) {
		t.Errorf("error %v", err)
	}
}
