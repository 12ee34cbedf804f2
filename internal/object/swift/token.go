package swift

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cnsbench/cnsbench/internal/object/client"
	"github.com/cnsbench/cnsbench/internal/object/httpconn"
	"github.com/cnsbench/cnsbench/internal/op"
)

// access is what a token service gives: a token and where it opens.
type access struct {
	token, storageURL string
	since             op.Time      // when it was given
	opened            *atomic.Bool // any request, of any worker
}

// unproved is how long a token is kept that no request has succeeded with, so that a store that refuses all tokens
// does not cause a request for a token each time.
const unproved = time.Second

// tokens requests a token when the first worker needs one, and again when it has expired. Concurrent workers share
// one request and its result.
type tokens struct {
	config Config
	fixed  *access // given: there is no other

	mu      sync.Mutex
	current *access
	asking  *asking // nil: none does
	asked   int     // how often one was given

	requests atomic.Int64 // that were sent to the service
}

// asking is a request for a token that is in progress.
type asking struct {
	waiting int
	cancel  context.CancelFunc
	done    chan struct{} // closed when the rest is set
	access  access
	err     error
}

func (t *tokens) get(ctx, stop context.Context) (access, error) {
	if t.fixed != nil {
		return *t.fixed, nil
	}
	t.mu.Lock()
	if t.current != nil {
		defer t.mu.Unlock()
		return *t.current, nil
	}
	if t.asking == nil {
		asker, cancel := context.WithCancel(context.WithoutCancel(ctx))
		t.asking = &asking{cancel: cancel, done: make(chan struct{})}
		go t.renew(asker, t.asking)
	}
	a := t.asking
	a.waiting++
	t.mu.Unlock()
	select {
	case <-a.done:
		return a.access, a.err
	case <-ctx.Done():
	case <-stop.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if a.waiting--; a.waiting == 0 {
		a.cancel()
		if t.asking == a {
			t.asking = nil
		}
	}
	return access{}, &failure{kind: httpconn.Aborted, text: "nobody waits for a token any more"}
}

// renew requests a token for all waiting workers.
func (t *tokens) renew(ctx context.Context, a *asking) {
	defer a.cancel()
	got, err := t.ask(ctx)
	if u := t.config.Settings["storage_url"]; u != "" {
		got.storageURL = u
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	a.err = err
	if t.asking == a {
		t.asking = nil
	}
	if err == nil {
		t.asked++
		t.current = &got
		got.since, got.opened = t.config.Clock.Now(), &atomic.Bool{}
	}
	a.access = got
	close(a.done)
}

// expired forgets a token that was refused, and reports whether it is worth while to get another: not if it is as new
// as any.
func (t *tokens) expired(a access) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil || t.current.token != a.token {
		return true
	}
	if !a.opened.Load() && time.Duration(t.config.Clock.Now()-a.since) < unproved {
		return false
	}
	t.current = nil
	return true
}

// failure is a token that was not given.
type failure struct {
	status int
	code   string
	kind   httpconn.Kind
	text   string
}

func (f *failure) Error() string { return f.text }

// refusal of a token, by a response.
func refusal(h *client.HTTP, res *client.Result, address string) *failure {
	status := res.Status
	if h.Explain(res); res.Failure != "" {
		return &failure{kind: res.Failure, text: fmt.Sprintf("no token from %s: %s", address, res.Detail)}
	}
	return &failure{status: status, code: "NoToken",
		text: strings.TrimSuffix(fmt.Sprintf("no token from %s: status %d: %s", address, status, res.Detail), ": ")}
}

func asFailure(err error, f **failure) bool { return errors.As(err, f) }

func (t *tokens) ask(ctx context.Context) (access, error) {
	address := strings.TrimSuffix(t.config.Auth["auth_url"], "/")
	kind := t.config.AuthKind
	if kind == "keystone" {
		kind = "keystonev2"
		if strings.Contains(address, "/v3") {
			kind = "keystonev3"
		}
	}
	switch kind {
	case "tempauth":
		return t.tempAuth(ctx, address)
	case "keystonev2":
		return t.keystone2(ctx, address)
	case "keystonev3":
		return t.keystone3(ctx, address)
	}
	return access{}, fmt.Errorf("swift: invalid auth %q", t.config.AuthKind)
}

// exchange sends a request to a token service; it decodes the response, in JSON, into answer, unless that is nil, and
// returns the exchange.
func (t *tokens) exchange(ctx context.Context, method, address string, send any, headers string,
	answer any) (*httpconn.Exchange, error) {
	ep, path, err := client.Endpoint(address, t.config.Settings, t.config.Clock)
	if err != nil {
		return nil, fmt.Errorf("swift: auth_url: %w", err)
	}
	h, res := client.NewHTTP(ep), client.Result{}
	defer h.Conn.Close()
	defer context.AfterFunc(ctx, h.Conn.Abort)()
	h.X.Head = fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n%s", method,
		cmp.Or(path, "/"), ep.Host, headers)
	if send != nil {
		b, err := json.Marshal(send)
		if err != nil {
			return nil, err
		}
		h.X.Head = append(h.X.Head, "Content-Type: application/json\r\n"...)
		h.X.Content, h.X.Size = client.Text(b), int64(len(b))
	}
	t.requests.Add(1)
	switch {
	case !h.Send(ctx, &res, true):
		return nil, &failure{kind: res.Failure, text: fmt.Sprintf("no token from %s: %s", address, res.Detail)}
	case res.Status/100 != 2:
		return nil, refusal(h, &res, address)
	case answer == nil:
		return &h.X, nil
	}
	if err := json.Unmarshal(h.Answer, answer); err != nil {
		return nil, &failure{kind: httpconn.Garbage, text: fmt.Sprintf("no token from %s: %v", address, err)}
	}
	return &h.X, nil
}

func (t *tokens) complete(a access, from string) (access, error) {
	if a.token == "" || a.storageURL == "" && t.config.Settings["storage_url"] == "" {
		return access{}, &failure{kind: httpconn.Garbage, text: from + " gave no token, or named no object store"}
	}
	if strings.ContainsFunc(a.token, func(r rune) bool { return r <= ' ' || r > '~' }) { // it becomes a header
		return access{}, &failure{kind: httpconn.Garbage, text: from + " gave a token with characters that no header has"}
	}
	return a, nil
}

// tempAuth is the first version of Swift's own.
func (t *tokens) tempAuth(ctx context.Context, address string) (access, error) {
	x, err := t.exchange(ctx, "GET", address, nil, "X-Auth-User: "+t.config.Auth["username"]+"\r\nX-Auth-Key: "+
		""+t.config.Password+"\r\n", nil)
	if err != nil {
		return access{}, err
	}
	return t.complete(access{token: x.Header("x-auth-token"), storageURL: x.Header("x-storage-url")}, address)
}

// first is the first of the settings that is there.
func (t *tokens) first(otherwise string, keys ...string) string {
	for _, k := range keys {
		if v := t.config.Auth[k]; v != "" {
			return v
		}
	}
	return otherwise
}

func (t *tokens) keystone2(ctx context.Context, address string) (access, error) {
	send := map[string]any{"auth": map[string]any{"tenantName": t.first("", "tenant_name", "tenant", "project_name"),
		"passwordCredentials": map[string]string{"username": t.config.Auth["username"], "password": t.config.Password}}}
	var got struct {
		Access struct {
			Token   struct{ ID string }
			Catalog []struct {
				Type, Name string
				Endpoints  []struct{ Region, PublicURL, InternalURL string }
			} `json:"serviceCatalog"`
		}
	}
	if _, err := t.exchange(ctx, "POST", address+"/tokens", send, "", &got); err != nil {
		return access{}, err
	}
	a := access{token: got.Access.Token.ID}
	for _, s := range got.Access.Catalog {
		if s.Type != "object-store" {
			continue
		}
		for _, e := range s.Endpoints {
			if r := t.config.Auth["region"]; r == "" || r == e.Region {
				if a.storageURL = e.PublicURL; t.config.Auth["interface"] == "internal" {
					a.storageURL = e.InternalURL
				}
				break
			}
		}
	}
	return t.complete(a, address)
}

func (t *tokens) keystone3(ctx context.Context, address string) (access, error) {
	domain := func(key string) map[string]string {
		return map[string]string{"name": t.first("Default", key, "domain")}
	}
	send := map[string]any{"auth": map[string]any{
		"identity": map[string]any{"methods": []string{"password"}, "password": map[string]any{
			"user": map[string]any{"name": t.config.Auth["username"], "password": t.config.Password,
				"domain": domain("user_domain")}}},
		"scope": map[string]any{"project": map[string]any{"name": t.first("", "project_name", "tenant_name",
			"tenant"), "domain": domain("project_domain")}},
	}}
	var got struct {
		Token struct {
			Catalog []struct {
				Type      string
				Endpoints []struct{ Interface, Region, RegionID, URL string }
			}
		}
	}
	x, err := t.exchange(ctx, "POST", address+"/auth/tokens", send, "", &got)
	if err != nil {
		return access{}, err
	}
	a, wanted := access{token: x.Header("x-subject-token")}, t.first("public", "interface")
	for _, s := range got.Token.Catalog {
		if s.Type != "object-store" {
			continue
		}
		for _, e := range s.Endpoints {
			if r := t.config.Auth["region"]; e.Interface == wanted && (r == "" || r == e.Region) {
				a.storageURL = e.URL
				break
			}
		}
	}
	return t.complete(a, address)
}

// abortion lets another goroutine end a client's connection, or its wait for the first token.
type abortion struct {
	mu     sync.Mutex
	conn   *httpconn.Conn
	ctx    context.Context
	cancel context.CancelFunc
}

func (a *abortion) locked() {
	if a.ctx == nil {
		a.ctx, a.cancel = context.WithCancel(context.Background())
	}
}

func (a *abortion) context() context.Context {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.locked()
	return a.ctx
}

func (a *abortion) done() bool { return a.context().Err() != nil }

func (a *abortion) set(c *httpconn.Conn) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.locked()
	if a.conn = c; a.ctx.Err() != nil {
		c.Abort()
	}
}

func (a *abortion) abort() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.locked()
	a.cancel()
	if a.conn != nil {
		a.conn.Abort()
	}
}
