// Package transport provides the connections that agents dial: a unix socket, or TCP with TLS 1.3 where the
// runner's certificate is verified by its hash alone. It detects a peer that vanished without closing the
// connection.
package transport

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// The networks of an address, "unix:PATH" or "tls:HOST:PORT".
const (
	Unix = "unix"
	TLS  = "tls"
)

// Silence is how long the peer may send nothing before it is lost. The runner pings once a second.
const Silence = 30 * time.Second

// ErrSilent is returned by Read when the peer has sent nothing for too long.
var ErrSilent = errors.New("the peer stopped responding")

// Link is a connection with a limit on silence. Close ends pending Reads and Writes.
type Link struct {
	net.Conn // TLS if the link has it
	wire     *silenceConn
	// Attempts is the number of dials by Dial, Took their total time.
	Attempts int
	Took     time.Duration
}

// SetSilence changes the limit from the next Read on.
func (l *Link) SetSilence(d time.Duration) { l.wire.silence.Store(int64(d)) }

// newLink wraps an accepted or dialed connection.
func newLink(c net.Conn, silence time.Duration) *Link {
	l := &Link{wire: &silenceConn{Conn: c}}
	l.Conn = l.wire
	l.SetSilence(silence)
	return l
}

// silenceConn limits the silence beneath TLS, where one Read may take several reads of the socket.
type silenceConn struct {
	net.Conn
	silence atomic.Int64
}

// lateReadWithin is the time to read data that arrived while this process was stopped, in which case the
// deadline has passed too.
const lateReadWithin = 100 * time.Millisecond

func (a *silenceConn) Read(b []byte) (int, error) {
	silence := time.Duration(a.silence.Load())
	n, err := a.readWithin(silence, b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = a.readWithin(lateReadWithin, b)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: no data for %v", ErrSilent, silence)
	}
	return n, err
}

func (a *silenceConn) readWithin(limit time.Duration, b []byte) (int, error) {
	if err := a.Conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	return a.Conn.Read(b)
}

// Timeouts of one attempt, and the pauses between attempts.
const (
	connectWithin   = 2 * time.Second // a lost SYN is resent after one second
	handshakeWithin = 10 * time.Second
	firstPause      = 50 * time.Millisecond
	longestPause    = time.Second
)

// ErrAddress is returned for an invalid runner address.
var ErrAddress = errors.New("invalid runner address: want unix:PATH or tls:HOST:PORT")

// ErrPin is returned when the peer shows another certificate than the expected one.
var ErrPin = errors.New("wrong certificate: the address belongs to another service or to another run's runner")

// Dial connects to the runner and retries until patience has passed (0: one attempt): the network of a new
// pod may need a moment. It does not retry after a wrong certificate or address. pin is the SHA-256 of the
// runner's certificate in hex; unused with unix.
func Dial(ctx context.Context, address, pin string, patience time.Duration) (*Link, error) {
	network, target, ok := strings.Cut(address, ":")
	if !ok || target == "" || network != Unix && network != TLS {
		return nil, fmt.Errorf("%w, not %q", ErrAddress, address)
	}
	began := time.Now()
	pause := firstPause
	for attempt := 1; ; attempt++ {
		l, err := dialOnce(ctx, network, target, pin)
		if err == nil {
			l.Attempts, l.Took = attempt, time.Since(began)
			return l, nil
		}
		if errors.Is(err, ErrPin) || ctx.Err() != nil || time.Since(began)+pause > patience {
			return nil, fmt.Errorf("reach the runner at %s (attempts: %d, in %v): %w",
				address, attempt, time.Since(began).Round(time.Millisecond), err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

func dialOnce(ctx context.Context, network, target, pin string) (*Link, error) {
	kernels := "tcp"
	if network == Unix {
		kernels = Unix
	}
	c, err := (&net.Dialer{Timeout: connectWithin}).DialContext(ctx, kernels, target)
	if err != nil {
		return nil, err
	}
	l := newLink(c, Silence)
	if network == Unix {
		return l, nil
	}
	return l.secure(ctx, tls.Client(l.wire, clientConfig(pin)), handshakeWithin)
}

// secure adds TLS to the link; on failure it closes the connection.
func (l *Link) secure(ctx context.Context, c *tls.Conn, within time.Duration) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = l.wire.Close() // the handshake's error is the cause
		return nil, err
	}
	l.Conn = c
	return l, nil
}

// clientConfig accepts only the certificate with that hash, whatever its names, times and issuer. The
// handshake proves that the peer has the key (RFC 8446 §4.4.3).
func clientConfig(pin string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection is stricter
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 {
				return ErrPin
			}
			if subtle.ConstantTimeCompare([]byte(Pin(state.PeerCertificates[0].Raw)), []byte(pin)) != 1 {
				return ErrPin
			}
			return nil
		},
	}
}

// Pin returns the SHA-256 of a certificate's DER form in hex.
func Pin(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}
