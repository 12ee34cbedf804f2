package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/transport"
)

// Conn has its own connections to an API server, with TLS and credentials (token, token file, client certificate,
// exec plugin) and without compression.
type Conn struct {
	base *url.URL
	http *http.Client
	idle func()
}

// Dial makes a Conn from a kubeconfig without connecting. With http1 each request in flight has a TCP connection;
// otherwise they share one by HTTP/2.
func Dial(host *rest.Config, http1 bool) (*Conn, error) {
	if host.Transport != nil {
		return nil, errors.New("a rest.Config with its own transport is not supported: the lag would not be measured")
	}
	base, _, err := rest.DefaultServerUrlFor(host)
	if err != nil {
		return nil, fmt.Errorf("address of the API server: %w", err)
	}
	cfg, err := host.TransportConfig()
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", base.Host, err)
	}
	tlsConfig, err := transport.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("TLS for %s: %w", base.Host, err)
	}
	t := newTransport(cfg, http1)
	if t.TLSClientConfig = tlsConfig; tlsConfig != nil && http1 {
		tlsConfig.NextProtos = []string{"http/1.1"}
	}
	rt, err := transport.HTTPWrappersForConfig(cfg, t)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", base.Host, err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/")
	return &Conn{base: base, http: &http.Client{Transport: rt}, idle: t.CloseIdleConnections}, nil
}

func newTransport(cfg *transport.Config, http1 bool) *http.Transport {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!http1)
	t := &http.Transport{
		Proxy:               http.ProxyFromEnvironment,
		TLSHandshakeTimeout: 10 * time.Second,
		DisableCompression:  true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     90 * time.Second,
		ReadBufferSize:      64 << 10, // most frames fit into one read
		Protocols:           protocols,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 10 * time.Second},
		// Keepalives detect a vanished server within half a minute.
		DialContext: (&net.Dialer{Timeout: 10 * time.Second,
			KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second,
				Count: 3}}).DialContext,
	}
	if cfg.Proxy != nil {
		t.Proxy = cfg.Proxy
	}
	if cfg.DialHolder != nil {
		t.DialContext = cfg.DialHolder.Dial
	}
	dial := t.DialContext
	t.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return stamped(c), nil
	}
	return t
}

// Close closes idle connections.
func (c *Conn) Close() { c.idle() }

// Send sends one request, once. path comes from Kind.Path.
func (c *Conn) Send(ctx context.Context, method, path string, query url.Values, header http.Header,
	body io.Reader) (*http.Response, error) {
	u := *c.base
	// RawPath is needed since the path is escaped already.
	u.RawPath = u.EscapedPath() + path
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", path, err)
	}
	u.Path += plain
	u.RawQuery = query.Encode()
	req, err := http.NewRequestWithContext(ctx, method, u.String(), body)
	if err != nil {
		return nil, err
	}
	req.Header = header
	return c.http.Do(req)
}

// maxErrorText is how much is quoted of an answer that is not a Status.
const maxErrorText = 512

// AsError turns an answer other than 2xx into an error of api/errors, from the Status in its body or from its code.
func AsError(k Kind, verb, name string, code int, header http.Header, body []byte) error {
	if s := Status(body); s != nil {
		return &apierrors.StatusError{ErrStatus: *s}
	}
	text := ""
	if media, _, err := mime.ParseMediaType(header.Get("Content-Type")); err == nil && media == "text/plain" {
		text = strings.TrimSpace(string(body[:min(len(body), maxErrorText)]))
	}
	return apierrors.NewGenericServerResponse(code, verb, schema.GroupResource{Group: k.Group, Resource: k.Resource},
		name, text, int(RetryAfter(header)/time.Second), true)
}

// StatusError returns the error of an ERROR event.
func StatusError(raw []byte) error {
	if s := Status(raw); s != nil {
		return &apierrors.StatusError{ErrStatus: *s}
	}
	return fmt.Errorf("an error that cannot be read: %.100q", raw)
}

// RetryAfter returns the delay that the server requests; 0 if none.
func RetryAfter(h http.Header) time.Duration {
	s, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || s < 0 {
		return 0
	}
	return time.Duration(s) * time.Second
}
