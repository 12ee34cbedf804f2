package link

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

// MinToken is how many characters a token has at least: a proof can be guessed
// at offline by whoever got somebody to connect.
const MinToken = 16

// CheckToken refuses tokens that can be guessed.
func CheckToken(token string) error {
	if len(token) < MinToken {
		return fmt.Errorf("the token has %d characters; take at least %d random ones", len(token), MinToken)
	}
	return nil
}

// Prove shows knowledge of the token for this one TLS connection, and what the
// side that shows it is: HMAC-SHA-256 over side and the connection's exporter
// value (RFC 9266). Somebody in the middle has two connections with two values,
// so that neither side's proof is of use to it; certificates need not be known.
func Prove(token, side string, state tls.ConnectionState) ([]byte, error) {
	bound, err := state.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
	if err != nil {
		return nil, fmt.Errorf("bind the token to the connection: %w", err)
	}
	mac := hmac.New(sha256.New, []byte(token))
	_, _ = mac.Write([]byte(side + "\x00")) // a hash takes anything
	_, _ = mac.Write(bound)
	return mac.Sum(nil), nil
}

// Prove is Prove for the connection under l.
func (l *Link) Prove(token, side string) ([]byte, error) {
	secure, ok := l.Conn.(*tls.Conn)
	if !ok {
		return nil, errors.New("the connection has no TLS")
	}
	return Prove(token, side, secure.ConnectionState())
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
