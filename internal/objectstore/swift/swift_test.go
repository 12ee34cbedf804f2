package swift

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/cnsbench/cnsbench/internal/objectstore/nullserver"
	"github.com/cnsbench/cnsbench/internal/objectstore/store"
	"github.com/cnsbench/cnsbench/internal/objectstore/storetest"
	"github.com/cnsbench/cnsbench/internal/objectstore/wire"
	"github.com/cnsbench/cnsbench/internal/op"
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
	at := storetest.Loopback(t, nullserver.Options{Size: 10000}.Serve)
	for _, c := range []Config{
		{AuthKind: "tempauth", Auth: map[string]string{"auth_url": at + "/auth/v1.0", "username": "a:b"}, Password: "p"},
		{Token: "t", Settings: map[string]string{"storage_url": at + "/v1/AUTH_null"}},
	} {
		storetest.Run(t, storetest.Options{Store: open(t, c), PartSize: 8192, Chunked: true})
	}
}

func get(t *testing.T, s *Store) store.Result {
	t.Helper()
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var res store.Result
	c.Do(t.Context(), &store.Request{Verb: store.Get, Container: []byte("c"), Object: []byte("o"), Length: -1}, &res)
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
					t.Errorf("request %d: %s %s, %d bytes in %d attempts, want %d", i, res.Label(), res.Detail, res.Bytes, res.Attempts, want)
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
	garbage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>") }))
	defer garbage.Close()
	auth := func(address, user string) map[string]string {
		return map[string]string{"auth_url": address, "username": user}
	}
	tests := []struct {
		name string
		c    Config
		want string
	}{
		{"wrong password", Config{AuthKind: "tempauth", Auth: auth(server.URL+"/auth/v1.0", "test:tester"), Password: "wrong"}, "401 NoToken"},
		{"refused", Config{AuthKind: "tempauth", Auth: auth("http://"+refused, "u"), Password: "p"}, string(wire.Refused)},
		{"garbage", Config{AuthKind: "keystonev3", Auth: auth(garbage.URL, "u"), Password: "p"}, string(wire.Garbage)},
		{"no token in the answer", Config{AuthKind: "tempauth", Auth: auth(garbage.URL, "u"), Password: "p"}, string(wire.Garbage)},
		{"a token that is never good", Config{AuthKind: "tempauth", Auth: auth(server.URL+"/auth/v1.0", "test:tester"), Password: "testing"}, "401"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			res := get(t, open(t, tt.c))
			if res.Label() != tt.want || res.OK() || strings.Contains(res.Detail, "testing") {
				t.Errorf("%s (%s), want %s", res.Label(), res.Detail, tt.want)
			}
		})
	}
	if fake.requests != 2 {
		t.Errorf("a bad token was tried %d times, want 2: once more with a new one", fake.requests)
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []Config{{}, {Token: "t"}, {Settings: map[string]string{"storage_url": "http://x"}}, {AuthKind: "tempauth", Auth: map[string]string{"auth_url": "x"}},
		{Token: "t", Settings: map[string]string{"storage_url": "http://x", "timeout": "-1"}}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
