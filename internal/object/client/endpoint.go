package client

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"

	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Endpoint parses the address of a store and its settings proxyhost, proxyport, family, source, http, cafile,
// no_verify_ssl and timeout. Without a proxy among them, the environment can name one. It also returns the path of the
// URL.
func Endpoint(address string, settings map[string]string, clock op.Clock) (ep httpconn.Endpoint, path string,
	err error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return ep, "", fmt.Errorf("invalid address %q: want http://HOST:PORT", address)
	}
	if n, err := strconv.ParseUint(cmp.Or(u.Port(), "80"), 10, 16); err != nil || n == 0 {
		return ep, "", fmt.Errorf("invalid port %s of address %q: want 1 to 65535", u.Port(), address)
	}
	if ep.Timeout, err = Timeout(settings["timeout"]); err != nil {
		return ep, "", err
	}
	if ep.Proxy, err = proxy(settings["proxyhost"], settings["proxyport"]); err != nil {
		return ep, "", err
	}
	if ep.Proxy == "" {
		if ep.Proxy, err = fromEnvironment(u); err != nil {
			return ep, "", err
		}
	}
	if err = way(&ep, u.Scheme, settings); err != nil {
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
	if ep.HTTP2 && ep.TLS != nil {
		ep.TLS.NextProtos = []string{"h2"}
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

// fromEnvironment is the proxy that HTTP_PROXY, HTTPS_PROXY and NO_PROXY name for an address; empty without one.
func fromEnvironment(u *url.URL) (string, error) {
	p, err := httpproxy.FromEnvironment().ProxyFunc()(u)
	variable := strings.ToUpper(u.Scheme) + "_PROXY"
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: %w", variable, err)
	case p == nil:
		return "", nil
	case p.Scheme != "http" || p.User != nil:
		return "", fmt.Errorf("%s: only proxies http://HOST:PORT without credentials are supported: set another, or "+
			"name the store in NO_PROXY", variable)
	}
	return net.JoinHostPort(p.Hostname(), cmp.Or(p.Port(), "80")), nil
}

// families are the values of the setting family, as the network of a dialer names them.
var families = map[string]string{"": "", "any": "", "ipv4": "4", "ipv6": "6"}

// way reads the settings family, source and http.
func way(ep *httpconn.Endpoint, scheme string, settings map[string]string) error {
	family, ok := families[strings.ToLower(settings["family"])]
	if !ok {
		return fmt.Errorf("invalid family=%s: want any, ipv4 or ipv6", settings["family"])
	}
	ep.Family = family
	for text := range strings.SplitSeq(settings["source"], ",") {
		if text = strings.TrimSpace(text); text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return fmt.Errorf("source: %q is not an IP address of this machine", text)
		}
		if a = a.Unmap(); family == "4" && !a.Is4() || family == "6" && a.Is4() {
			return fmt.Errorf("source: %s is not of family %s", a, settings["family"])
		}
		ep.Sources = append(ep.Sources, a)
	}
	switch settings["http"] {
	case "", "1.1":
	case "2":
		if ep.HTTP2 = true; ep.Proxy != "" && scheme == "http" {
			return errors.New("http=2 without TLS does not go through a proxy: leave out one of them")
		}
	default:
		return fmt.Errorf("invalid http=%s: want 1.1 or 2", settings["http"])
	}
	return nil
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
