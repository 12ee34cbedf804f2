package results

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

// MaxToken limits a file with a token or a key.
const MaxToken = 1 << 20

// Bearer adds a token to requests: Token, or that of File, which is read for each request because it is renewed.
type Bearer struct {
	File, Token string
	Next        http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (b *Bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	token := b.Token
	if b.File != "" {
		var err error
		if token, err = bounded.ReadPrivate(b.File, MaxToken); err != nil {
			return nil, fmt.Errorf("read the token for the results service: %w", err)
		}
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	return b.Next.RoundTrip(r)
}

// PinnedTransport trusts only the certificate with the pin; without a pin, those that the system trusts.
func PinnedTransport(pin string) (*http.Transport, error) {
	t := http.DefaultTransport.(*http.Transport).Clone()
	if pin == "" {
		return t, nil
	}
	var err error
	t.TLSClientConfig, err = server.Pinned(pin)
	return t, err
}

// NoRedirect is an http.Client's CheckRedirect. The service never redirects, and a token must not follow a redirect.
func NoRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// InTheClear says whether a token sent to a URL can be read on its way: plain HTTP that leaves this machine.
func InTheClear(target string) bool {
	u, err := url.Parse(target)
	return err == nil && strings.EqualFold(u.Scheme, "http") && !Loopback(net.JoinHostPort(u.Hostname(), u.Port()))
}

// Loopback says whether an address HOST:PORT is of this machine only.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return err == nil && (host == "localhost" || ip != nil && ip.IsLoopback())
}
