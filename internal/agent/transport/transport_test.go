package transport

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"testing"
	"time"
)

func TestAddress(t *testing.T) {
	for _, address := range []string{"", "unix", "unix:", "tls:", "tcp:127.0.0.1:1", "127.0.0.1:1", "/run/s"} {
		if _, err := Dial(t.Context(), address, "", time.Hour); !errors.Is(err, ErrAddress) {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestDialEnds checks all conditions that end the attempts of Dial.
func TestDialEnds(t *testing.T) {
	const nobody = "tls:127.0.0.1:1"
	// Two attempts, after 0 and 50 ms, or one on a slow machine; never three.
	_, err := Dial(t.Context(), nobody, "", 120*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "attempts: 2,") && !strings.Contains(err.Error(), "attempts: 1,") {
		t.Errorf("patience of 120 ms: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, nobody, "", time.Hour); err == nil || t.Context().Err() != nil {
		t.Errorf("called off: %v", err)
	}
}

// pair returns both ends of a TLS link. The silence limit applies to the first end.
func pair(t *testing.T, silence time.Duration) (ours, theirs *Link) {
	t.Helper()
	identity, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ln.Close() })
	accepted := make(chan *Link, 1)
	go func() {
		defer close(accepted)
		c, err := ln.Accept()
		if err != nil {
			return
		}
		if l, err := Accept(t.Context(), c, identity, silence); err == nil {
			accepted <- l
		}
	}()
	theirs, err = Dial(t.Context(), "tls:"+ln.Addr().String(), identity.Pin(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if ours = <-accepted; ours == nil {
		t.Fatal("the handshake failed on the runner's side")
	}
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	return ours, theirs
}

func TestSilence(t *testing.T) {
	const silence = 200 * time.Millisecond
	ours, theirs := pair(t, silence)
	done := make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(silence / 2)
		defer tick.Stop()
		for range 5 { // longer than the limit in total, but never silent for that long
			<-tick.C
			_, _ = theirs.Write([]byte("x"))
		}
	}()
	buf := make([]byte, 1)
	for i := range 5 {
		if _, err := ours.Read(buf); err != nil {
			t.Fatalf("byte %d: %v", i, err)
		}
	}
	<-done
	began := time.Now()
	if _, err := ours.Read(buf); !errors.Is(err, ErrSilent) || time.Since(began) < silence {
		t.Errorf("%v after %v", err, time.Since(began))
	}
}

// stopped is a connection of a process that was stopped. When the process continues, the deadline has passed and data
// is available.
type stopped struct {
	net.Conn
	reads int
}

func (s *stopped) SetReadDeadline(time.Time) error { return nil }

func (s *stopped) Read(b []byte) (int, error) {
	s.reads++
	if s.reads == 1 {
		return 0, &net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}
	}
	return copy(b, "x"), nil
}

func TestReadAfterStop(t *testing.T) {
	l := newLink(&stopped{}, time.Second)
	if n, err := l.Read(make([]byte, 1)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// TestPin checks that a certificate is verified by its hash alone.
func TestPin(t *testing.T) {
	ours, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	another, err := NewIdentity()
	if err != nil {
		t.Fatal(err)
	}
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close() // the error is irrelevant in a test
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				if l, err := Accept(context.Background(), c, ours, time.Second); err == nil {
					_ = l.Close()
				}
			}()
		}
	}()
	for _, pin := range []string{"", "00", another.Pin(), strings.ToUpper(ours.Pin()), ours.Pin()[:63]} {
		began := time.Now()
		if _, err := Dial(t.Context(), "tls:"+ln.Addr().String(), pin, time.Hour); !errors.Is(err, ErrPin) ||
			time.Since(began) > time.Minute {
			t.Errorf("pin %q: %v", pin, err)
		}
	}
	l, err := Dial(t.Context(), "tls:"+ln.Addr().String(), ours.Pin(), 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close()
}
