package s3

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
	"github.com/cnsbench/cnsbench/test/servers"
)

func TestConformanceOfTheNullServer(t *testing.T) {
	clienttest.Run(t, clienttest.Options{Store: null(t), PartSize: 8192})
}

func open(t *testing.T, settings map[string]string, c Credentials) *Store {
	t.Helper()
	s, err := New(Config{Settings: settings, Clock: op.NewClock(), Credentials: c})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestVersityGW(t *testing.T) {
	v := servers.ForTest(t, servers.StartVersity)
	good := Credentials{AccessKey: servers.VersityKey, SecretKey: servers.VersitySecret}
	for _, settings := range []map[string]string{{}, {"payload": "signed"}} {
		settings["endpoint"] = v.Address
		prefix := "v" + settings["payload"]
		t.Run("conformance"+settings["payload"], func(t *testing.T) {
			clienttest.Run(t, clienttest.Options{Store: open(t, settings, good), Keeps: true, PartSize: 5 << 20,
				Prefix: prefix,
				Foreign: func(t *testing.T, name string) {
					if err := os.Mkdir(filepath.Join(v.Data, name), 0o755); err != nil {
						t.Fatal(err)
					}
				}})
		})
	}
	clienttest.Offers(t, clienttest.Options{Store: open(t, map[string]string{"endpoint": v.Address}, good), Keeps: true,
		PartSize: 5 << 20, Prefix: "offers"}, "versitygw")
	clienttest.Run(t, clienttest.Options{Store: open(t, map[string]string{"endpoint": v.Address,
		"signature": "presigned"}, good), Keeps: true, PartSize: 5 << 20, Prefix: "presigned"})
	clock := time.Now().Add(-time.Hour)
	tests := []struct {
		name  string
		store *Store
		want  string
	}{
		{"wrong secret", open(t, map[string]string{"endpoint": v.Address},
			Credentials{AccessKey: "test", SecretKey: "wrong"}), "403 SignatureDoesNotMatch"},
		{"unknown key", open(t, map[string]string{"endpoint": v.Address},
			Credentials{AccessKey: "nobody", SecretKey: "secret"}), "404 XAdminUserNotFound"},
		{"clock skew", func() *Store {
			s := open(t, map[string]string{"endpoint": v.Address}, good)
			s.config.Now = func() time.Time { return clock }
			return s
		}(), "403 RequestTimeTooSkewed"},
		{"no such bucket", open(t, map[string]string{"endpoint": v.Address}, good), "404 NoSuchBucket"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if res := get(t, tt.store, "absent", "o"); res.Label() != tt.want || res.OK() {
				t.Errorf("%s %s, want %s", res.Label(), res.Detail, tt.want)
			}
			if tt.want == "404 NoSuchBucket" {
				return
			}
			for _, v := range []client.Verb{client.MakeContainer, client.RemoveContainer,
				client.CheckOwner} { // a HEAD has no words
				if res := do(t, tt.store, &client.Request{Verb: v,
					Container: []byte("absent")}); res.Label() != tt.want || res.Detail == "" || res.Absent() {
					t.Errorf("verb %d: %s %q, want %s", v, res.Label(), res.Detail, tt.want)
				}
			}
		})
	}
}

// A server that takes the bucket from the host's name, and knows it nowhere else:
// what it took is a directory of that name.
func TestVersityGWByHostNames(t *testing.T) {
	v := servers.ForTest(t, servers.StartVersityHosts)
	good := Credentials{AccessKey: servers.VersityKey, SecretKey: servers.VersitySecret}
	for _, payload := range []string{"unsigned", "signed"} {
		t.Run(payload, func(t *testing.T) {
			clienttest.Run(t, clienttest.Options{Store: open(t,
				map[string]string{"endpoint": v.Address, "path_style_access": "false", "payload": payload}, good),
				Keeps: true, PartSize: 5 << 20, Prefix: "h" + payload})
		})
	}
	byHost := open(t, map[string]string{"endpoint": v.Address, "path_style_access": "false"}, good)
	for _, verb := range []client.Verb{client.MakeContainer, client.Put} {
		if res := do(t, byHost, &client.Request{Verb: verb, Container: []byte("by-host"), Object: []byte("dir/o x"),
			Size: 4096, Writer: 1}); !res.OK() {
			t.Fatalf("verb %d: %s %s", verb, res.Label(), res.Detail)
		}
	}
	if info, err := os.Stat(filepath.Join(v.Data, "by-host", "dir", "o x")); err != nil || info.Size() != 4096 {
		t.Errorf("%v %v", info, err)
	}
	if res := get(t, open(t, map[string]string{"endpoint": v.Address}, good), "by-host", "dir/o x"); !res.OK() {
		t.Errorf("by its path: %s %s", res.Label(), res.Detail)
	}
	if res := get(t, open(t, map[string]string{"endpoint": v.Address, "path_style_access": "false"},
		Credentials{AccessKey: servers.VersityKey, SecretKey: "wrong"}), "by-host",
		"dir/o x"); res.Label() != "403 SignatureDoesNotMatch" {
		t.Errorf("with a wrong secret: %s %s", res.Label(), res.Detail)
	}
	if res := do(t, byHost, &client.Request{Verb: client.Head, Container: []byte("no name"),
		Object: []byte("o")}); res.Failure != httpconn.LocalFailed ||
		!strings.Contains(res.Detail, "path_style_access=true") {
		t.Errorf("a bucket that cannot be part of a name: %s %s", res.Label(), res.Detail)
	}
}

func get(t *testing.T, s *Store, bucket, object string) client.Result {
	t.Helper()
	return do(t, s, &client.Request{Verb: client.Get, Container: []byte(bucket), Object: []byte(object), Length: -1,
		Verify: true})
}

func do(t *testing.T, s *Store, r *client.Request) client.Result {
	t.Helper()
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var res client.Result
	c.Do(t.Context(), r, &res)
	return res
}

// What a server may do wrong is recorded, as what it is, in one attempt.
func TestWhatServersDoWrong(t *testing.T) {
	tests := []struct {
		name   string
		answer string
		want   string
	}{
		{"slow down", "HTTP/1.1 503 Slow Down\r\nContent-Length: " +
			"47\r\n\r\n<Error><Code>SlowDown</Code><Message/></Error>\n", "503 SlowDown"},
		{"an error without words", "HTTP/1.1 500 Oops\r\nContent-Length: 0\r\n\r\n", "500"},
		{"an error of HTML", "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 20\r\n\r\n<html>nginx</html>  ", "502"},
		{"garbage", "\x00\x01\x02\x03\x04\x05", string(httpconn.Garbage)},
		{"cut short", "HTTP/1.1 200 OK\r\nContent-Length: 4096\r\n\r\nCNS1", string(httpconn.Cut)},
		{"another content", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "200 foreign"},
		{"a redirect", "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n",
			"307"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer l.Close()
			requests := make(chan int, 10)
			go func() {
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
						requests <- 1
						_, _ = io.WriteString(c, tt.answer)
					}
					_ = c.Close()
				}
			}()
			res := get(t, open(t, map[string]string{"endpoint": "http://" + l.Addr().String()}, Credentials{}), "b",
				"o")
			if res.Label() != tt.want || res.OK() || res.Attempts != 1 {
				t.Errorf("%s after %d attempts, want %s after 1", res.Label(), res.Attempts, tt.want)
			}
			if n := len(requests); n != 1 {
				t.Errorf("the server saw %d requests, want 1", n)
			}
		})
	}
}

// A server that sends the whole object in place of a range has not done what was
// asked, wherever the range begins; one of all of an object is.
func TestRangesThatAreIgnored(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, strings.Repeat("x", 8192))
	}))
	defer server.Close()
	s := open(t, map[string]string{"endpoint": server.URL}, Credentials{})
	for _, tt := range []struct {
		offset, length int64
		want           string
	}{{0, 4096, "200 RangeIgnored misplaced"}, {4096, 4096, "200 RangeIgnored misplaced"}, {0, 8192, "200"}} {
		if res := do(t, s, &client.Request{Verb: client.Get, Container: []byte("b"), Object: []byte("o"),
			Offset: tt.offset, Length: tt.length}); res.Label() != tt.want {
			t.Errorf("%d bytes from %d: %s, want %s", tt.length, tt.offset, res.Label(), tt.want)
		}
	}
}

// net/http sees the requests that were meant, in both styles and versions.
func TestRequests(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		scheme, _, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		seen = append(seen, fmt.Sprintf("%s %s%s %s", r.Method, r.Host, r.URL, scheme))
		if token := r.Header.Get("X-Amz-Security-Token"); token != "" {
			seen[len(seen)-1] += " " + token
		}
	}))
	defer server.Close()
	host := server.Listener.Addr().String()
	key := Credentials{AccessKey: "k", SecretKey: "s"}
	session := Credentials{AccessKey: "k", SecretKey: "s", SessionToken: "tok"}
	tests := []struct {
		settings    map[string]string
		credentials Credentials
		want        string
	}{
		{map[string]string{}, key, "GET " + host + "/b/o%20x AWS4-HMAC-SHA256"},
		{map[string]string{"path_style_access": "false"}, key, "GET b." + host + "/o%20x AWS4-HMAC-SHA256"},
		{map[string]string{"signature": "v2"}, key, "GET " + host + "/b/o%20x AWS"},
		{map[string]string{}, session, "GET " + host + "/b/o%20x AWS4-HMAC-SHA256 tok"},
		{map[string]string{"signature": "v2"}, session, "GET " + host + "/b/o%20x AWS tok"},
		{map[string]string{}, Credentials{}, "GET " + host + "/b/o%20x "},
	}
	for _, tt := range tests {
		tt.settings["endpoint"] = server.URL
		seen = nil
		get(t, open(t, tt.settings, tt.credentials), "b", "o x")
		if len(seen) != 1 || seen[0] != tt.want {
			t.Errorf("%v: the server saw %q, want %q", tt.settings, seen, tt.want)
		}
	}
	for _, bad := range []map[string]string{{"signature": "v3"}, {"payload": "maybe"}, {"timeout": "soon"},
		{"endpoint": "ftp//x"}, {"endpoint": ""}} {
		settings := map[string]string{"endpoint": server.URL}
		maps.Copy(settings, bad)
		if _, err := New(Config{Settings: settings}); err == nil {
			t.Errorf("%v was taken", bad)
		}
	}
	if _, err := New(Config{Settings: map[string]string{"endpoint": server.URL},
		Credentials: Credentials{AccessKey: "only"}}); err == nil {
		t.Error("an access key without its secret was taken")
	}
}
