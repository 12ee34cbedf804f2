package api

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"
)

// stamping returns when the kernel stamps what arrives: it begins to only when a socket asks for it, and some
// packets later.
func stamping(t *testing.T) {
	t.Helper()
	client, server := pair(t)
	buf := make([]byte, 1)
	for range 100 {
		if _, err := server.Write(buf); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Read(buf); err != nil {
			t.Fatal(err)
		}
		if client.(*arrivalConn).at.Load() != 0 {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatal("the kernel gives no stamps of what a TCP connection receives")
}

// pair is a client's connection, stamped, and the server's end of it.
func pair(t *testing.T) (client, server net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err = (&net.Dialer{}).DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	server, err = l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	client = stamped(client)
	t.Cleanup(func() { client.Close(); server.Close() })
	return client, server
}

// TestArrivals: what lay in the kernel for a while is known to have come then, not when it is read; and a stamped
// connection reads, ends and times out like any other.
func TestArrivals(t *testing.T) {
	stamping(t)
	client, server := pair(t)
	var a Arrivals
	if got := a.Last(); got != 0 {
		t.Errorf("nothing was read, and it came %v ago", got)
	}
	a.conn.Store(client.(*arrivalConn))
	sending := time.Now()
	if _, err := server.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	time.Sleep(100 * time.Millisecond)
	lay := time.Since(sent)
	buf := make([]byte, 16)
	n, err := client.Read(buf)
	ago := a.Last()
	if err != nil || string(buf[:n]) != "hello" {
		t.Fatalf("read %q, %v", buf[:n], err)
	}
	if longest := time.Since(sending); ago < lay || ago > longest {
		t.Errorf("it came %v ago, want from %v to %v", ago, lay, longest)
	}
	if err := client.SetReadDeadline(time.Now().Add(20 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
	_ = client.SetReadDeadline(time.Time{})
	go func() {
		_, _ = server.Write(make([]byte, 1<<20))
		_ = server.Close()
	}()
	if n, err := io.Copy(io.Discard, struct{ io.Reader }{client}); n != 1<<20 || err != nil {
		t.Errorf("%d bytes, %v; want a MiB and its end", n, err)
	}
	client.Close()
	if _, err := client.Read(buf); !errors.Is(err, net.ErrClosed) {
		t.Errorf("of a closed connection: %v", err)
	}
}

// TestArrivalsOfRequest: a request says on which connection it is, through TLS and HTTP/2 as well.
func TestArrivalsOfRequest(t *testing.T) {
	stamping(t)
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				_,
					_ = io.WriteString(w, "hello")
			}))
			s.EnableHTTP2 = http2
			s.StartTLS()
			defer s.Close()
			transport := s.Client().Transport.(*http.Transport)
			transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
				c, err := (&net.Dialer{}).DialContext(ctx, network, address)
				if err != nil {
					return nil, err
				}
				return stamped(c), nil
			}
			var a Arrivals
			req, err := http.NewRequestWithContext(a.Trace(t.Context()), http.MethodGet, s.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := s.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.ReadAll(resp.Body); err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			time.Sleep(20 * time.Millisecond)
			if got := a.Last(); got < 20*time.Millisecond || got > time.Second {
				t.Errorf("the answer came %v ago, want a little more than 20ms", got)
			}
		})
	}
}
