package s3

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
	"github.com/cnsbench/cnsbench/test/servers"
)

// before starts net/http's server with HTTP/2 before a store, with TLS or without, and returns its address. It refuses
// HTTP/1.1.
func before(t *testing.T, store string, secure bool) string {
	t.Helper()
	to, err := url.Parse(store)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to); r.Out.Host = r.In.Host }}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor != 2 {
			http.Error(w, "HTTP/2 only", http.StatusHTTPVersionNotSupported)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetHTTP2(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.EnableHTTP2 = true
	t.Cleanup(server.Close)
	if secure {
		server.StartTLS()
	} else {
		server.Start()
	}
	return server.URL
}

// TestHTTP2 runs the conformance suite on HTTP/2 against a null server behind net/http's server, with TLS and without.
func TestHTTP2(t *testing.T) {
	for _, secure := range []bool{false, true} {
		address := before(t, null(t).config.Settings["endpoint"], secure)
		s := open(t, map[string]string{"endpoint": address, "http": "2", "no_verify_ssl": "true"},
			Credentials{AccessKey: "k", SecretKey: "s"})
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) {
			clienttest.Run(t, clienttest.Options{Store: s, PartSize: 8192})
		})
		old := open(t, map[string]string{"endpoint": address, "no_verify_ssl": "true"}, Credentials{})
		if res := get(t, old, "b", "o"); res.Status != 505 {
			t.Errorf("on HTTP/1.1: %s %s", res.Label(), res.Detail)
		}
	}
	plain := httptest.NewTLSServer(http.NotFoundHandler()) // without HTTP/2
	defer plain.Close()
	s := open(t, map[string]string{"endpoint": plain.URL, "http": "2", "no_verify_ssl": "true"}, Credentials{})
	if res := get(t, s, "b", "o"); res.Failure != httpconn.TLSFailed {
		t.Errorf("a server without HTTP/2: %s %s", res.Label(), res.Detail)
	}
}

// TestHTTP2Stored stores objects in versitygw through HTTP/2 and reads them, whole and in parts.
func TestHTTP2Stored(t *testing.T) {
	v := servers.ForTest(t, servers.StartVersity)
	s := open(t, map[string]string{"endpoint": before(t, v.Address, false), "http": "2"},
		Credentials{AccessKey: servers.VersityKey, SecretKey: servers.VersitySecret})
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var res client.Result
	for _, r := range []client.Request{
		{Verb: client.MakeContainer},
		{Verb: client.Put, Size: 300_000, Writer: 9},
		{Verb: client.Get, Length: -1, Verify: true},
		{Verb: client.Get, Offset: 8192, Length: 70_000, Verify: true},
		{Verb: client.Put, Size: 0},
		{Verb: client.Delete},
	} {
		r.Container, r.Object = []byte("two"), []byte("an object")
		c.Do(t.Context(), &r, &res)
		if !res.OK() || !res.First.Known() || res.Ended < res.First || r.Verb == client.Get && res.Writer != 9 {
			t.Errorf("verb %d: %s %s %+v", r.Verb, res.Label(), res.Detail, res)
		}
	}
	if lines := s.Routes(); len(lines) != 1 || !strings.HasPrefix(lines[0], "1 connections to 127.0.0.1:") {
		t.Errorf("connections: %q", lines)
	}
}

// TestWays checks families of addresses, source addresses and the record of both.
func TestWays(t *testing.T) {
	seen := make(chan string, 100)
	handler := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		seen <- host
	})
	server := httptest.NewServer(handler)
	defer server.Close()
	_, port, _ := net.SplitHostPort(server.Listener.Addr().String())
	s := open(t, map[string]string{"endpoint": server.URL, "source": "127.0.0.2, 127.0.0.3"}, Credentials{})
	from := map[string]int{}
	for range 4 {
		if res := get(t, s, "b", "o"); res.Status != 200 {
			t.Fatalf("%s %s", res.Label(), res.Detail)
		}
		from[<-seen]++
	}
	lines := strings.Join(s.Routes(), "\n")
	if from["127.0.0.2"] != 2 || from["127.0.0.3"] != 2 ||
		!strings.Contains(lines, "2 connections to 127.0.0.1:"+port+" from 127.0.0.2 (IPv4)") {
		t.Errorf("%v\n%s", from, lines)
	}
	if res := get(t, open(t, map[string]string{"endpoint": server.URL, "family": "ipv6"}, Credentials{}), "b",
		"o"); res.Failure == "" {
		t.Errorf("127.0.0.1 by IPv6: %s", res.Label())
	}
	both, err := net.Listen("tcp6", "[::1]:0")
	if err != nil {
		t.Skip("no IPv6 here:", err)
	}
	six := &httptest.Server{Listener: both, Config: &http.Server{Handler: handler}}
	six.Start()
	defer six.Close()
	_, port, _ = net.SplitHostPort(both.Addr().String())
	for family, ok := range map[string]bool{"any": true, "ipv6": true, "ipv4": false} {
		s := open(t, map[string]string{"endpoint": "http://[::1]:" + port, "family": family}, Credentials{})
		res := get(t, s, "b", "o")
		if res.Status == 200 != ok || ok && !strings.Contains(strings.Join(s.Routes(), ""), "(IPv6)") {
			t.Errorf("%s: %s %s, %q", family, res.Label(), res.Detail, s.Routes())
		}
	}
	for _, bad := range []map[string]string{{"family": "ipv5"}, {"source": "here"}, {"http": "3"},
		{"family": "ipv6", "source": "127.0.0.1"}} {
		bad["endpoint"] = server.URL
		if _, err := New(Config{Settings: bad, Clock: op.NewClock()}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
}

// TestProxyOfTheEnvironment checks that HTTP_PROXY and NO_PROXY hold where the file has no proxy.
func TestProxyOfTheEnvironment(t *testing.T) {
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.URL.String())
	}))
	defer proxy.Close()
	store := map[string]string{"endpoint": "http://store.invalid:9000"}
	t.Setenv("HTTP_PROXY", proxy.URL)
	t.Setenv("http_proxy", "")
	s := open(t, store, Credentials{})
	if res := get(t, s, "b", "o"); res.Status != 200 ||
		!strings.Contains(strings.Join(s.Routes(), ""), "to the proxy 127.0.0.1:") {
		t.Errorf("through the proxy: %s %s, %q", res.Label(), res.Detail, s.Routes())
	}
	t.Setenv("NO_PROXY", ".invalid")
	if res := get(t, open(t, store, Credentials{}), "b", "o"); res.Failure != httpconn.Unresolved {
		t.Errorf("with NO_PROXY: %s %s", res.Label(), res.Detail)
	}
	t.Setenv("NO_PROXY", "")
	for _, bad := range []string{"socks5://127.0.0.1:1", "http://user:secretword@127.0.0.1:1"} {
		t.Setenv("HTTP_PROXY", bad)
		if _, err := New(Config{Settings: store, Clock: op.NewClock()}); err == nil ||
			!strings.HasPrefix(err.Error(), "s3: HTTP_PROXY") || strings.Contains(err.Error(), "secretword") {
			t.Errorf("%s: %v", bad, err)
		}
	}
	t.Setenv("HTTP_PROXY", "socks5://127.0.0.1:1")
	host, port, _ := net.SplitHostPort(strings.TrimPrefix(proxy.URL, "http://"))
	s = open(t, map[string]string{"endpoint": store["endpoint"], "proxyhost": host, "proxyport": port}, Credentials{})
	if res := get(t, s, "b", "o"); res.Status != 200 {
		t.Errorf("through the file's own proxy: %s %s", res.Label(), res.Detail)
	}
}
