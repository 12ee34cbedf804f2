package transport

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"fmt"
	"math/big"
	"net"
	"time"
)

// Identity is the runner's key and certificate for one run.
type Identity struct {
	config *tls.Config
	pin    string
}

// NewIdentity generates a key and a certificate, which are kept in memory only.
func NewIdentity() (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the runner's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "cnsbench runner"},
		// Agents ignore the times, since a node's clock may be wrong.
		NotBefore: time.Now().Add(-24 * time.Hour),
		NotAfter:  time.Now().AddDate(1, 0, 0),
		KeyUsage:  x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the runner's certificate: %w", err)
	}
	return &Identity{pin: Pin(der), config: &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		SessionTicketsDisabled: true, // an agent connects once
	}}, nil
}

// Pin returns the hash by which agents verify the certificate.
func (i *Identity) Pin() string { return i.pin }

// Accept returns a link over an accepted connection. With an identity the peer must complete a TLS handshake
// within ten seconds. On failure the connection is closed.
func Accept(ctx context.Context, c net.Conn, i *Identity, silence time.Duration) (*Link, error) {
	l := newLink(c, silence)
	if i == nil {
		return l, nil
	}
	return l.secure(ctx, tls.Server(l.wire, i.config), handshakeWithin)
}
