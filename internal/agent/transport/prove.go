package transport

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"
)

// minToken is how many characters a token has at least: a proof can be guessed
// at offline by whoever got somebody to connect.
const minToken = 16

// CheckToken refuses tokens that can be guessed.
func CheckToken(token string) error {
	if len(token) < minToken {
		return fmt.Errorf("the token has %d characters; take at least %d random ones", len(token), minToken)
	}
	return nil
}

// Prove shows knowledge of the token for this one TLS connection, and what the
// side that shows it is: HMAC-SHA-256 over side and the connection's exporter
// value (RFC 9266). Somebody in the middle has two connections with two values,
// so that neither side's proof is of use to it; certificates need not be known.
func (l *Link) Prove(token, side string) ([]byte, error) {
	secure, ok := l.Conn.(*tls.Conn)
	if !ok {
		return nil, errors.New("the connection has no TLS")
	}
	state := secure.ConnectionState()
	bound, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
	if err != nil {
		return nil, fmt.Errorf("bind the token to the connection: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = mac.Write([]byte(side + "\x00")) // a hash takes anything
	_, _ = mac.Write(bound)
	return mac.Sum(nil), nil
}

// Proven says whether the other side's proof is one.
func (l *Link) Proven(token, side string, proof []byte) (bool, error) {
	ours, err := l.Prove(token, side)
	return err == nil && hmac.Equal(ours, proof), err
}

// DialAnyone makes one attempt at a TLS connection with whoever answers at
// address (HOST:PORT). Both sides must Prove themselves before anything else
// is said.
func DialAnyone(ctx context.Context, address string, silence time.Duration) (*Link, error) {
	c, err := (&net.Dialer{Timeout: connectWithin}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := over(c, silence)
	return l.secure(ctx, tls.Client(l.wire, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}), handshakeWithin)
}
