package swift

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/object/nullserver"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/clienttest"
)

func open(t *testing.T, c Config) *Store {
	t.Helper()
	c.Clock = op.NewClock()
	if c.Settings == nil {
		c.Settings = map[string]string{}
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestConformanceOfTheNullServer(t *testing.T) {
	at := clienttest.Loopback(t, nullserver.Options{Size: 10000}.Serve)
	for _, c := range []Config{
		{AuthKind: "tempauth", Auth: map[string]string{"auth_url": at + "/auth/v1.0", "username": "a:b"},
			Password: "p"},
		{Token: "t", Settings: map[string]string{"storage_url": at + "/v1/AUTH_null"}},
	} {
		clienttest.Run(t, clienttest.Options{Store: open(t, c), PartSize: 8192, Chunked: true})
	}
}

func get(t *testing.T, s *Store) client.Result {
	t.Helper()
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var res client.Result
	c.Do(t.Context(), &client.Request{Verb: client.Get, Container: []byte("c"), Object: []byte("o"), Length: -1}, &res)
	return res
}

// services is a strict fake of three token services and of a storage that
// knows which tokens are good.
type services struct {
	t  *testing.T
	mu sync.Mutex
	// good is the token that opens; each request for one makes the next.
	asked, requests int
	expire          int // requests after which a token has expired
	used            int
}

func (s *services) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	base := "http://" + r.Host
	var q map[string]any
	_ = json.NewDecoder(r.Body).Decode(&q)
	text, _ := json.Marshal(q)
	switch r.Method + " " + r.URL.Path {
	case "GET /auth/v1.0":
		if r.Header.Get("X-Auth-User") != "test:tester" || r.Header.Get("X-Auth-Key") != "testing" {
			w.WriteHeader(401)
			return
		}
		w.Header().Set("X-Auth-Token", s.token())
		w.Header().Set("X-Storage-Url", base+"/v1/AUTH_test")
	case "POST /v2.0/tokens":
		if want := `{"auth":{"passwordCredentials":{"password":"testing","username":"tester"},"tenantName":"test"}}`; string(text) != want {
			s.t.Errorf("Keystone v2 was asked %s, want %s", text, want)
			w.WriteHeader(400)
			return
		}
		fmt.Fprintf(w, `{"access":{"token":{"id":%q,"expires":"2030-01-01T00:00:00Z"},"serviceCatalog":[
			{"type":"compute","endpoints":[{"region":"r1","publicURL":"http://nowhere"}]},
			{"type":"object-store","name":"swift","endpoints":[{"region":"r0","publicURL":"http://nowhere"},{"region":"r1","publicURL":%q,"internalURL":"http://nowhere"}]}]}}`,
			s.token(), base+"/v1/AUTH_test")
	case "POST /v3/auth/tokens":
		want := `{"auth":{"identity":{"methods":["password"],"password":{"user":{"domain":{"name":"Default"},"name":"tester","password":"testing"}}},` +
			`"scope":{"project":{"domain":{"name":"Default"},"name":"test"}}}}`
		if string(text) != want {
			s.t.Errorf("Keystone v3 was asked %s, want %s", text, want)
			w.WriteHeader(400)
			return
		}
		w.Header().Set("X-Subject-Token", s.token())
		w.WriteHeader(201)
		fmt.Fprintf(w, `{"token":{"catalog":[{"type":"object-store","endpoints":[{"interface":"admin","region":"r1","url":"http://nowhere"},
			{"interface":"public","region":"r0","url":"http://nowhere"},{"interface":"public","region":"r1","url":%q}]}]}}`, base+"/v1/AUTH_test")
	case "GET /v1/AUTH_test/c/o":
		s.requests++
		if s.used++; r.Header.Get("X-Auth-Token") != fmt.Sprintf("tk%d", s.asked) || s.used > s.expire {
			w.WriteHeader(401)
			return
		}
		fmt.Fprint(w, "hello")
	default:
		s.t.Errorf("nobody should ask %s %s", r.Method, r.URL)
		w.WriteHeader(404)
	}
}

func (s *services) token() string {
	s.asked++
	s.used = 0
	return fmt.Sprintf("tk%d", s.asked)
}

func TestTokens(t *testing.T) {
	keystone := map[string]string{"username": "tester", "tenant_name": "test", "region": "r1"}
	tests := []struct {
		name, kind, path string
		auth             map[string]string
	}{
		{"TempAuth", "tempauth", "/auth/v1.0", map[string]string{"username": "test:tester"}},
		{"Keystone v2 by its address", "keystone", "/v2.0", keystone},
		{"Keystone v3 by its address", "keystone", "/v3", keystone},
		{"Keystone v3", "keystonev3", "/v3", keystone},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake := &services{t: t, expire: 3}
			server := httptest.NewServer(fake)
			defer server.Close()
			auth := map[string]string{"auth_url": server.URL + tt.path}
			for k, v := range tt.auth {
				auth[k] = v
			}
			s := open(t, Config{AuthKind: tt.kind, Auth: auth, Password: "testing"})
			for i := range 8 {
				res := get(t, s)
				// The token expires after three requests: the fourth is sent again.
				want := 1
				if i == 3 || i == 6 {
					want = 2
				}
				if !res.OK() || res.Bytes != 5 || res.Attempts != want {
					t.Errorf("request %d: %s %s, %d bytes in %d attempts, want %d", i, res.Label(), res.Detail,
						res.Bytes, res.Attempts, want)
				}
			}
			if fake.asked != 3 || fake.requests != 10 {
				t.Errorf("%d tokens and %d requests, want 3 and 10 (two were refused)", fake.asked, fake.requests)
			}
		})
	}
}

func TestNoToken(t *testing.T) {
	fake := &services{t: t, expire: 0}
	server := httptest.NewServer(fake)
	defer server.Close()
	closed, _ := net.Listen("tcp", "127.0.0.1:0")
	refused := closed.Addr().String()
	_ = closed.Close()
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "<html>")
	}))
	defer garbage.Close()
	auth := func(address, user string) map[string]string {
		return map[string]string{"auth_url": address, "username": user}
	}
	tests := []struct {
		name string
		c    Config
		want string
	}{
		{"wrong password", Config{AuthKind: "tempauth", Auth: auth(server.URL+"/auth/v1.0", "test:tester"),
			Password: "wrong"}, "401 NoToken"},
		{"refused", Config{AuthKind: "tempauth", Auth: auth("http://"+refused, "u"), Password: "p"},
			string(httpconn.Refused)},
		{"garbage", Config{AuthKind: "keystonev3", Auth: auth(garbage.URL, "u"), Password: "p"},
			string(httpconn.Garbage)},
		{"no token in the answer", Config{AuthKind: "tempauth", Auth: auth(garbage.URL, "u"), Password: "p"},
			string(httpconn.Garbage)},
		{"a token that is never good", Config{AuthKind: "tempauth",
			Auth: auth(server.URL+"/auth/v1.0", "test:tester"), Password: "testing"}, "401"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := get(t, open(t, tt.c))
			if res.Label() != tt.want || res.OK() || strings.Contains(res.Detail, "testing") {
				t.Errorf("%s (%s), want %s", res.Label(), res.Detail, tt.want)
			}
		})
	}
	if fake.requests != 1 {
		t.Errorf("a token that is as new as any was tried %d times, want once", fake.requests)
	}
}

// A store that takes no token has no more asked for than one a second.
func TestTokensThatAreNeverGood(t *testing.T) {
	fake := &services{t: t, expire: 0}
	server := httptest.NewServer(fake)
	defer server.Close()
	s := open(t, Config{AuthKind: "tempauth", Auth: map[string]string{"auth_url": server.URL + "/auth/v1.0",
		"username": "test:tester"}, Password: "testing"})
	began := time.Now()
	for time.Since(began) < 1500*time.Millisecond {
		if res := get(t, s); res.Label() != "401" || res.Attempts > 2 {
			t.Fatalf("%s in %d attempts", res.Label(), res.Attempts)
		}
	}
	if most := 1 + int(time.Since(began)/time.Second); fake.asked < 2 || fake.asked > most || fake.requests < 20 {
		t.Errorf("%d tokens for %d requests, want 2 to %d", fake.asked, fake.requests, most)
	}
}

// What a token service does wrong is told apart as what a store does is.
func TestFaultsOfTokenServices(t *testing.T) {
	done := make(chan struct{})
	speaks := func(answer func(net.Conn)) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for c, err := l.Accept(); err == nil; c, err = l.Accept() {
				go func() {
					defer c.Close()
					if _, err := http.ReadRequest(bufio.NewReader(c)); err == nil {
						answer(c)
					}
				}()
			}
		}()
		return "http://" + l.Addr().String()
	}
	defer close(done)
	secured := httptest.NewUnstartedServer(http.NotFoundHandler())
	secured.Config.ErrorLog = log.New(io.Discard, "", 0)
	secured.StartTLS()
	defer secured.Close()
	for address, want := range map[string]httpconn.Kind{
		speaks(func(net.Conn) { <-done }):                              httpconn.Stalled,
		speaks(func(net.Conn) {}):                                      httpconn.Closed,
		speaks(func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0) }): httpconn.Reset,
		speaks(func(c net.Conn) {
			_, _ = io.WriteString(c,
				"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{")
		}): httpconn.Cut,
		speaks(func(c net.Conn) {
			_, _ = io.WriteString(c,
				"hello there\r\n\r\n")
		}): httpconn.Garbage,
		secured.URL: httpconn.TLSUntrusted,
	} {
		s := open(t, Config{AuthKind: "keystonev3", Auth: map[string]string{"auth_url": address, "username": "u"},
			Password: "p", Settings: map[string]string{"timeout": "2000"}})
		if res := get(t, s); res.Failure != want || res.Status != 0 {
			t.Errorf("%s (%s), want %s", res.Label(), res.Detail, want)
		}
	}
}

// Workers that need a token at the same time share one request for it, also if
// that fails: none waits for the failures of others before its own. Who is
// aborted waits no more.
func TestTokensAreAskedForTogether(t *testing.T) {
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		<-r.Context().Done()
	}))
	defer server.Close()
	s := open(t, Config{AuthKind: "tempauth", Auth: map[string]string{"auth_url": server.URL, "username": "u"},
		Password: "p", Settings: map[string]string{"timeout": "2000"}})
	aborted, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(100*time.Millisecond, aborted.Abort)
	began, kinds := time.Now(), make(chan httpconn.Kind, 20)
	var wait sync.WaitGroup
	for i := range 20 {
		wait.Go(func() {
			if i > 0 {
				kinds <- get(t, s).Failure
				return
			}
			var res client.Result
			aborted.Do(t.Context(), &client.Request{Verb: client.Get, Container: []byte("c"), Object: []byte("o"),
				Length: -1}, &res)
			if kinds <- res.Failure; res.Failure != httpconn.Aborted {
				t.Errorf("%s after %v, want it aborted at once", res.Label(), time.Since(began))
			}
		})
	}
	wait.Wait()
	got := map[httpconn.Kind]int{}
	for range 20 {
		got[<-kinds]++
	}
	// One after another they take 38 s.
	if took := time.Since(began); asked.Load() != 1 || got[httpconn.Stalled] != 19 || took > 30*time.Second {
		t.Errorf("%d requests, %v, in %v; want one, that 19 saw stall", asked.Load(), got, took)
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []Config{{}, {Token: "t"}, {Settings: map[string]string{"storage_url": "http://x"}},
		{AuthKind: "tempauth", Auth: map[string]string{"auth_url": "x"}},
		{Token: "t", Settings: map[string]string{"storage_url": "http://x", "timeout": "-1"}}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
