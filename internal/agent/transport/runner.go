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

// Identity is what the runner of one run proves itself by.
type Identity struct {
	config *tls.Config
	pin    string
}

// NewIdentity makes a key and a certificate that live as long as the process.
func NewIdentity() (*Identity, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make the runner's key: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "cnsbench runner"},
		// Agents do not look at the times: a node's clock may be anywhere.
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
		SessionTicketsDisabled: true, // an agent comes once
	}}, nil
}

// Pin is the hash that agents know the certificate by.
func (i *Identity) Pin() string { return i.pin }

// Accept makes a link of a connection that came in; with an identity the
// other side must manage a TLS handshake within ten seconds. On failure the
// connection is closed.
func Accept(ctx context.Context, c net.Conn, i *Identity, silence time.Duration) (*Link, error) {
	l := over(c, silence)
	if i == nil {
		return l, nil
	}
	return l.secure(ctx, tls.Server(l.wire, i.config), handshakeWithin)
}
