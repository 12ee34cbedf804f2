// Package pki makes the certificates and kubeconfigs of a test bed: one authority, a server certificate for the API
// server
// and each kubelet, and a client certificate per component, so that the audit log tells them apart.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

const lifetime = 10 * 365 * 24 * time.Hour

// Identity is one certificate.
type Identity struct {
	Name   string // of its files
	CN     string
	Groups []string
	// Addrs and Names are those of a server; with any, the certificate serves as well.
	Addrs []string
	Names []string
}

// Authority signs certificates and keeps all files in one folder.
type Authority struct {
	dir  string
	cert *x509.Certificate
	key  crypto.Signer
}

// Open reads the authority kept in dir, or makes it.
func Open(dir string) (*Authority, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a := &Authority{dir: dir}
	if err := a.read(); !errors.Is(err, fs.ErrNotExist) {
		return a, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := certificate(Identity{CN: "cnsbench-testbed"})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.ExtKeyUsage = nil // what an authority may not be used for, its certificates may not either
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	// The key comes last: a folder with a key is whole.
	if err := errors.Join(writePEM(a.path("ca.crt"), "CERTIFICATE", der), writeKey(a.path("ca.key"), key)); err != nil {
		return nil, err
	}
	return a, a.read()
}

func (a *Authority) path(name string) string { return filepath.Join(a.dir, name) }

func (a *Authority) read() error {
	block, err := readPEM(a.path("ca.key"))
	if err != nil {
		return err
	}
	key, err := x509.ParseECPrivateKey(block)
	if err != nil {
		return err
	}
	der, err := readPEM(a.path("ca.crt"))
	if err != nil {
		return err
	}
	a.key = key
	a.cert, err = x509.ParseCertificate(der)
	return err
}

// Issue makes NAME.crt and NAME.key, unless they are there.
func (a *Authority) Issue(id Identity) error {
	if _, err := os.Stat(a.path(id.Name + ".key")); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	der, err := x509.CreateCertificate(rand.Reader, certificate(id), a.cert, key.Public(), a.key)
	if err != nil {
		return err
	}
	return errors.Join(writePEM(a.path(id.Name+".crt"), "CERTIFICATE", der), writeKey(a.path(id.Name+".key"), key))
}

// certificate is the template of an identity's certificate.
func certificate(id Identity) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		panic(err) // crypto/rand never fails
	}
	c := &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{CommonName: id.CN, Organization: id.Groups},
		NotBefore:    time.Now().Add(-time.Hour), NotAfter: time.Now().Add(lifetime),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
		DNSNames:    id.Names,
	}
	for _, addr := range id.Addrs {
		c.IPAddresses = append(c.IPAddresses, net.ParseIP(addr))
	}
	if len(id.Addrs)+len(id.Names) > 0 {
		c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	return c
}

// ServiceAccountKeys makes sa.key and sa.pub, with which tokens are signed and checked.
func (a *Authority) ServiceAccountKeys() error {
	if _, err := os.Stat(a.path("sa.key")); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	pub, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		return err
	}
	return errors.Join(writePEM(a.path("sa.pub"), "PUBLIC KEY", pub), writeKey(a.path("sa.key"), key))
}

// Kubeconfig writes a kubeconfig that holds its certificates itself, so that it works from anywhere.
func (a *Authority) Kubeconfig(path, server, name string) error {
	var data [3]string
	for i, file := range []string{"ca.crt", name + ".crt", name + ".key"} {
		text, err := os.ReadFile(a.path(file))
		if err != nil {
			return err
		}
		data[i] = base64.StdEncoding.EncodeToString(text)
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Config
clusters:
  - name: testbed
    cluster: {server: "%s", certificate-authority-data: %s}
users:
  - name: %s
    user: {client-certificate-data: %s, client-key-data: %s}
contexts:
  - name: testbed
    context: {cluster: testbed, user: %s}
current-context: testbed
`, server, data[0], name, data[1], data[2], name)
	if old, err := os.ReadFile(path); err == nil && string(old) == text {
		return nil // somebody may be reading it
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

func writeKey(path string, key *ecdsa.PrivateKey) error {
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return err
	}
	return writePEM(path, "EC PRIVATE KEY", der)
}

func writePEM(path, kind string, der []byte) error {
	return os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

func readPEM(path string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, fmt.Errorf("%s is not PEM; take the test bed down and up again", path)
	}
	return block.Bytes, nil
}
