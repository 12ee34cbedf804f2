package server

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// SelfSigned creates a self-signed certificate for the given host names and addresses; clients trust it by
// its pin.
func SelfSigned(hosts []string) (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("results: create a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("results: create a certificate: %w", err)
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
		return tls.Certificate{}, fmt.Errorf("results: create a certificate: %w", err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// LoadOrCreateCertificate loads the certificate in a directory and creates it if it does not exist, so that
// its pin survives a restart.
func LoadOrCreateCertificate(dir string, hosts []string) (tls.Certificate, error) {
	file := filepath.Join(dir, "certificate.pem")
	cert, err := tls.LoadX509KeyPair(file, file)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return cert, err
	}
	if cert, err = SelfSigned(hosts); err != nil {
		return cert, err
	}
	key, err := x509.MarshalPKCS8PrivateKey(cert.PrivateKey)
	if err != nil {
		return cert, fmt.Errorf("results: store the certificate: %w", err)
	}
	text := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Certificate[0]}),
		pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})...)
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.WriteFile(file+tmpSuffix, text, 0o600)
	}
	if err == nil {
		err = os.Rename(file+tmpSuffix, file)
	}
	if err != nil {
		return cert, fmt.Errorf("results: store the certificate: %w", err)
	}
	return cert, nil
}

const pinPrefix = "sha256:"

// Pin returns the pin of a certificate: the SHA-256 of its DER form.
func Pin(der []byte) string {
	sum := sha256.Sum256(der)
	return pinPrefix + hex.EncodeToString(sum[:])
}

func checkPin(pin string) error {
	b, err := hex.DecodeString(strings.TrimPrefix(pin, pinPrefix))
	if err != nil || len(b) != sha256.Size || !strings.HasPrefix(pin, pinPrefix) {
		return fmt.Errorf("results: invalid pin %q: want sha256: and 64 hexadecimal digits", clip(pin))
	}
	return nil
}

// Pinned trusts exactly the certificate with that pin, whatever its names.
func Pinned(pin string) (*tls.Config, error) {
	if err := checkPin(pin); err != nil {
		return nil, err
	}
	return PinnedBy(func() (string, error) { return pin, nil }), nil
}

// PinnedBy is Pinned with a pin that is queried for each connection.
func PinnedBy(current func() (string, error)) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, // VerifyConnection checks the pin
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 {
				return errors.New("results: the server has no certificate")
			}
			pin, err := current()
			if err == nil {
				err = checkPin(pin)
			}
			if err != nil {
				return err
			}
			if got := Pin(s.PeerCertificates[0].Raw); got != strings.ToLower(pin) {
				return fmt.Errorf("results: the server's certificate has the pin %s, want %s", got, pin)
			}
			return nil
		},
	}
}
