package results

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"time"
)

// SelfSigned makes a certificate for the given host names and addresses that
// nobody vouches for: a client trusts it by its pin.
func SelfSigned(hosts []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("results: make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("results: make a certificate: %w", err)
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "cnsbench results"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else if h != "" {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("results: make a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

const pinPrefix = "sha256:"

// Pin names a certificate by the SHA-256 of its DER form.
func Pin(der []byte) string {
	sum := sha256.Sum256(der)
	return pinPrefix + hex.EncodeToString(sum[:])
}

// Pinned trusts exactly the certificate with that pin, whatever its names are.
func Pinned(pin string) (*tls.Config, error) {
	if b, err := hex.DecodeString(strings.TrimPrefix(pin, pinPrefix)); err != nil || len(b) != sha256.Size || !strings.HasPrefix(pin, pinPrefix) {
		return nil, fmt.Errorf("results: %q is no pin: sha256: and 64 hexadecimal digits", clip(pin))
	}
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // the pin is the verification, below
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("results: the server shows no certificate")
			}
			if got := Pin(s.PeerCertificates[0].Raw); got != strings.ToLower(pin) {
				return fmt.Errorf("results: the server's certificate has the pin %s, not %s", got, pin)
			}
			return nil
		},
	}, nil
}
