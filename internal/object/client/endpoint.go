package client

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Endpoint parses the address of a store and its settings proxyhost, proxyport, cafile, no_verify_ssl and timeout. It
// also returns the path of the URL.
func Endpoint(address string, settings map[string]string, clock op.Clock) (ep httpconn.Endpoint, path string,
	err error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ep, "", fmt.Errorf("invalid address %q: want http://HOST:PORT", address)
	}
	if ep.Timeout, err = Timeout(settings["timeout"]); err != nil {
		return ep, "", err
	}
	if ep.Proxy, err = proxy(settings["proxyhost"], settings["proxyport"]); err != nil {
		return ep, "", err
	}
	ep.Clock, ep.Host, ep.Address = clock, u.Host, u.Host
	port := "80"
	if u.Scheme == "https" {
		port = "443"
		if ep.TLS, err = trust(u.Hostname(), settings); err != nil {
			return ep, "", err
		}
	}
	if u.Port() == "" {
		ep.Address = net.JoinHostPort(u.Hostname(), port)
	}
	return ep, u.EscapedPath(), nil
}

// proxy is the address of a proxy; empty without one. COSBench ignores one setting without the other; here that is an
// error.
func proxy(host, port string) (string, error) {
	if host == "" && port == "" {
		return "", nil
	}
	if host == "" || port == "" {
		return "", errors.New("proxyhost and proxyport belong together: give both, or neither")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("invalid proxyport=%s", port)
	}
	if strings.ContainsAny(host, "/@ ") || !Fits(host) {
		return "", errors.New("proxyhost must be a host's name or address, without a scheme")
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port), nil
}

func trust(name string, settings map[string]string) (*tls.Config, error) {
	c := &tls.Config{ServerName: name, MinVersion: tls.VersionTLS12,
		ClientSessionCache: tls.NewLRUClientSessionCache(0)}
	if v := settings["no_verify_ssl"]; v != "" {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return nil, fmt.Errorf("no_verify_ssl=%s is neither true nor false", v)
		}
		c.InsecureSkipVerify = b
	}
	if file := settings["cafile"]; file != "" {
		pem, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("cafile: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("cafile %s has no certificate in PEM", file)
		}
	}
	return c, nil
}

// Fits reports whether a text is valid in an HTTP header: a key with a line break, for example, would change the
// request around it.
func Fits(text string) bool {
	for i := range len(text) {
		if text[i] < ' ' || text[i] == 0x7f {
			return false
		}
	}
	return true
}

// Now is the time of day, for signatures; the run's clock has none.
type Now func() time.Time
