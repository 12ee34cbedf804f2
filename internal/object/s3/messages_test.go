package s3

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/test/servers"
)

// TestMessages checks that what a refusal shows of its cause is in the message.
func TestMessages(t *testing.T) {
	const xml = `<?xml version="1.0"?><Error><Code>%s</Code><Message>%s</Message>%s</Error>`
	ours := time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)
	for _, tt := range []struct {
		name   string
		status int
		header map[string]string
		body   string
		want   []string // in the label and the detail
		not    string
	}{
		{"clock skew", 403, map[string]string{"Date": "Fri, 27 Nov 2026 10:00:00 GMT"},
			fmt.Sprintf(xml, "RequestTimeTooSkewed", "Too large.", ""),
			[]string{"403 RequestTimeTooSkewed", "2h0m0s ahead of that of the server", "here 2026-11-27T12:00:00Z",
				"there 2026-11-27T10:00:00Z", "synchronise", "Too large."}, ""},
		{"403 by another clock", 403, map[string]string{"Date": "Fri, 27 Nov 2026 12:30:00 GMT"},
			fmt.Sprintf(xml, "AccessDenied", "No.", ""), []string{"403 AccessDenied", "30m0s behind", "No."}, ""},
		{"403 by the same clock", 403, map[string]string{"Date": "Fri, 27 Nov 2026 12:00:30 GMT"},
			fmt.Sprintf(xml, "AccessDenied", "No.", ""), []string{"403 AccessDenied No."}, "clock"},
		{"a redirect of S3", 301, map[string]string{"x-amz-bucket-region": "eu-west-1"},
			fmt.Sprintf(xml, "PermanentRedirect", "Use it.", "<Endpoint>b.s3.eu-west-1.amazonaws.com</Endpoint>"),
			[]string{"301 PermanentRedirect", "endpoint b.s3.eu-west-1.amazonaws.com, region eu-west-1", "Use it."},
			""},
		{"a temporary redirect", 307, map[string]string{"Location": "http://192.0.2.7:9000/b/o"}, "",
			[]string{"307 ", "endpoint http://192.0.2.7:9000/b/o", "not followed"}, ""},
		{"the wrong region", 400, nil,
			fmt.Sprintf(xml, "AuthorizationHeaderMalformed", "Wrong.", "<Region>us-west-2</Region>"),
			[]string{"400 AuthorizationHeaderMalformed", "region us-west-2", "Wrong."}, ""},
		{"502 of a proxy", 502, map[string]string{"Server": "nginx/1.26", "Content-Type": "text/html"},
			"<html>\r\n<h1>502 Bad\x1b[2J Gateway</h1>" + strings.Repeat("é", 500),
			[]string{"502 ", `of nginx/1.26 begins with "<html> <h1>502 Bad\x1b[2J Gateway</h1>`, `"…`}, "\x1b"},
		{"503 without a body", 503, map[string]string{"Server": "x"}, "", []string{"503 "}, "begins"},
		{"TLS is wanted", 400, nil, "<html>The plain HTTP request was sent to HTTPS port</html>",
			[]string{string(httpconn.WrongScheme), "https://"}, "400"},
		{"400 of another kind", 400, nil, "bad", []string{"400 ", `begins with "bad"`}, "https"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for k, v := range tt.header {
					w.Header().Set(k, v)
				}
				w.WriteHeader(tt.status)
				fmt.Fprint(w, tt.body)
			}))
			defer server.Close()
			s := open(t, map[string]string{"endpoint": server.URL}, Credentials{AccessKey: "k", SecretKey: "s"})
			s.config.Now = func() time.Time { return ours }
			res := get(t, s, "b", "o")
			got := res.Label() + " " + res.Detail
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q has no %q", got, want)
				}
			}
			if tt.not != "" && strings.Contains(got, tt.not) || len(res.Detail) > 700 || res.OK() {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestWrongScheme checks both directions: TLS to a port with plain HTTP, and plain HTTP to one with TLS.
func TestWrongScheme(t *testing.T) {
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	for address, want := range map[string]string{
		strings.Replace(plain.URL, "http:", "https:", 1):  "HTTP answer on a TLS port",
		strings.Replace(secure.URL, "https:", "http:", 1): "TLS answer on an HTTP port",
	} {
		res := get(t, open(t, map[string]string{"endpoint": address}, Credentials{}), "b", "o")
		if res.Failure != httpconn.WrongScheme || !strings.Contains(res.Detail, want) {
			t.Errorf("%s: %s %q, want %q", address, res.Label(), res.Detail, want)
		}
	}
}

// TestOtherProtocols checks the messages for a server that closes connections with plain HTTP, and for one without
// HTTP/2.
func TestOtherProtocols(t *testing.T) {
	closes, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer closes.Close()
	go func() {
		for {
			c, err := closes.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4096))
			_ = c.Close()
		}
	}()
	old := httptest.NewServer(http.NotFoundHandler())
	defer old.Close()
	v := servers.ForTest(t, servers.StartVersity)
	for _, tt := range []struct{ address, version, want string }{
		{"http://" + closes.Addr().String(), "", "closed EOF before a response: if the server wants TLS, write https://"},
		{"http://" + closes.Addr().String(), "2", "does not seem to support HTTP/2: leave out http=2"},
		{old.URL, "2", "does not seem to support HTTP/2: leave out http=2"},
		{v.Address, "2", "does not seem to support HTTP/2: leave out http=2"},
	} {
		res := get(t, open(t, map[string]string{"endpoint": tt.address, "http": tt.version}, Credentials{}), "b", "o")
		if got := res.Label() + " " + res.Detail; !strings.Contains(got, tt.want) {
			t.Errorf("%s, HTTP %s: %s, want %q", tt.address, tt.version, got, tt.want)
		} else {
			t.Log(got)
		}
	}
}

// TestSkewOfVersityGW checks the message where a real server refuses our time.
func TestSkewOfVersityGW(t *testing.T) {
	v := servers.ForTest(t, servers.StartVersity)
	s := open(t, map[string]string{"endpoint": v.Address},
		Credentials{AccessKey: servers.VersityKey, SecretKey: servers.VersitySecret})
	s.config.Now = func() time.Time { return time.Now().Add(-time.Hour) }
	res := do(t, s, &client.Request{Verb: client.MakeContainer, Container: []byte("skewed")})
	if res.Code != "RequestTimeTooSkewed" || !strings.Contains(res.Detail, "behind that of the server (here ") {
		t.Errorf("%s %q", res.Label(), res.Detail)
	}
}
