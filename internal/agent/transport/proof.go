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

// minToken is the minimum length of a token: a peer that got someone to connect can guess at a proof offline.
const minToken = 16

// CheckToken rejects tokens that are too short.
func CheckToken(token string) error {
	if len(token) < minToken {
		return fmt.Errorf("the token has %d characters: use at least %d random ones", len(token), minToken)
	}
	return nil
}

// Proof proves knowledge of the token for this TLS connection and the role side: HMAC-SHA-256 over side and
// the connection's exporter value (RFC 9266). A man in the middle has two connections with two values, so
// neither side's proof is of use to it; certificates need not be known.
func (l *Link) Proof(token, side string) ([]byte, error) {
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
	_, _ = mac.Write([]byte(side + "\x00")) // never fails
	_, _ = mac.Write(bound)
	return mac.Sum(nil), nil
}

// VerifyProof reports whether proof is valid for the peer's side.
func (l *Link) VerifyProof(token, side string, proof []byte) (bool, error) {
	ours, err := l.Proof(token, side)
	return err == nil && hmac.Equal(ours, proof), err
}

// DialUnverified makes one attempt at a TLS connection to address (HOST:PORT) without verifying the
// certificate. Both sides must exchange a Proof before anything else.
func DialUnverified(ctx context.Context, address string, silence time.Duration) (*Link, error) {
	c, err := (&net.Dialer{Timeout: connectWithin}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	l := newLink(c, silence)
	return l.secure(ctx, tls.Client(l.wire, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true}),
		handshakeWithin)
}
