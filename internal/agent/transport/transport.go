// Package transport makes the connection that an agent dials: a unix socket, or
// TCP with TLS 1.3 where the runner's certificate is known by its hash alone;
// and notices when the other side has vanished without closing it.
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

// Silence is how long the other side may be silent, although the runner asks
// and the agent answers once a second, before it is taken for lost: a cut
// cable and a dead node say nothing.
const Silence = 30 * time.Second

// ErrSilent is returned by Read when the other side was silent for too long.
var ErrSilent = errors.New("the other side has fallen silent")

// Link is a connection with a limit to silence. Close ends a Read and a Write
// that are under way.
type Link struct {
	net.Conn // TLS where there is TLS
	wire     *attentive
	// Attempts is how often Dial tried, Took how long that was.
	Attempts int
	Took     time.Duration
}

// SetSilence changes the limit from the next Read on.
func (l *Link) SetSilence(d time.Duration) { l.wire.silence.Store(int64(d)) }

// over wraps a connection as it comes from the kernel.
func over(c net.Conn, silence time.Duration) *Link {
	l := &Link{wire: &attentive{Conn: c}}
	l.Conn = l.wire
	l.SetSilence(silence)
	return l
}

// attentive limits the silence beneath TLS, whose reads need not be the kernel's.
type attentive struct {
	net.Conn
	silence atomic.Int64
}

// second is the time for what has arrived while this very process was
// stopped: the deadline has passed too then.
const second = 100 * time.Millisecond

func (a *attentive) Read(b []byte) (int, error) {
	silence := time.Duration(a.silence.Load())
	n, err := a.within(silence, b)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		n, err = a.within(second, b)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = fmt.Errorf("%w: not a byte for %v", ErrSilent, silence)
	}
	return n, err
}

func (a *attentive) within(limit time.Duration, b []byte) (int, error) {
	if err := a.Conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	return a.Conn.Read(b)
}

// How long one attempt may take, and the wait between attempts.
const (
	connectWithin   = 2 * time.Second // a lost SYN is sent anew after one second
	handshakeWithin = 10 * time.Second
	firstPause      = 50 * time.Millisecond
	longestPause    = time.Second
)

// ErrAddress says that an address is not one of a runner.
var ErrAddress = errors.New("the runner's address is not unix:PATH or tls:HOST:PORT")

// ErrPin says that another certificate was shown than the one expected.
var ErrPin = errors.New("it has not the certificate of this agent's runner: something else answers there, or it is another run's runner")

// Dial connects to the runner, trying again for as long as patience lasts (0:
// one attempt): the network of a new pod may take a moment. Wrong certificates
// and addresses are not tried again. pin is the SHA-256 of the runner's
// certificate in hex; not used with unix.
func Dial(ctx context.Context, address, pin string, patience time.Duration) (*Link, error) {
	network, target, ok := strings.Cut(address, ":")
	if !ok || target == "" || network != Unix && network != TLS {
		return nil, fmt.Errorf("%w: it is %q", ErrAddress, address)
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
	l := over(c, Silence)
	if network == Unix {
		return l, nil
	}
	return l.secure(ctx, tls.Client(l.wire, clientConfig(pin)), handshakeWithin)
}

// secure puts TLS over the link; on failure the connection is closed.
func (l *Link) secure(ctx context.Context, c *tls.Conn, within time.Duration) (*Link, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	if err := c.HandshakeContext(ctx); err != nil {
		_ = l.wire.Close() // the handshake's error says more
		return nil, err
	}
	l.Conn = c
	return l, nil
}

// clientConfig accepts the one certificate with that hash. Neither names nor
// times nor authorities matter then; that the other side has the key is
// proven by the handshake, which signs with it (RFC 8446 §4.4.3).
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

// Pin is what a certificate is known by: the SHA-256 of its DER form, in hex.
func Pin(certificate []byte) string {
	sum := sha256.Sum256(certificate)
	return hex.EncodeToString(sum[:])
}
