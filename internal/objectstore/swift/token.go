package swift

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/cnsbench/cnsbench/internal/objectstore/store"
	"github.com/cnsbench/cnsbench/internal/objectstore/wire"
)

// access is what a token service gives: a token and where it opens.
type access struct{ token, storageURL string }

// tokens asks for a token when the first worker needs one, and again when one
// has expired; workers that need one at the same time wait for one request.
type tokens struct {
	config Config
	fixed  *access // given: there is no other

	mu      sync.Mutex
	current *access
	asked   int // how often
}

func (t *tokens) get(ctx, stop context.Context) (access, error) {
	if t.fixed != nil {
		return *t.fixed, nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current == nil {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(stop, cancel)()
		a, err := t.ask(ctx)
		if err != nil {
			return access{}, err
		}
		if u := t.config.Settings["storage_url"]; u != "" {
			a.storageURL = u
		}
		t.asked++
		t.current = &a
	}
	return *t.current, nil
}

// expired forgets a token, if it is still the current one.
func (t *tokens) expired(a access) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && t.current.token == a.token {
		t.current = nil
	}
}

// failure is a token that was not given.
type failure struct {
	status int
	code   string
	kind   wire.Kind
	text   string
}

func (f *failure) Error() string { return f.text }

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
	return access{}, fmt.Errorf("swift: auth %q is not one", t.config.AuthKind)
}

// exchange asks a token service. This is no hot path: net/http does.
func (t *tokens) exchange(ctx context.Context, method, address string, send any, headers map[string]string, answer any) (http.Header, error) {
	ep, _, err := store.Endpoint(address, t.config.Settings, t.config.Clock)
	if err != nil {
		return nil, fmt.Errorf("swift: auth_url: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, ep.Timeout)
	defer cancel()
	var content io.Reader
	if send != nil {
		b, err := json.Marshal(send)
		if err != nil {
			return nil, err
		}
		content = strings.NewReader(string(b))
	}
	req, err := http.NewRequestWithContext(ctx, method, address, content)
	if err != nil {
		return nil, err
	}
	for k, v := range headers {
		req.Header.Set(k, v)
	}
	if send != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: ep.TLS, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	if err != nil {
		return nil, &failure{kind: wire.KindOf(err), text: fmt.Sprintf("no token from %s: %v", address, err)}
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4<<20))
	if err != nil {
		return nil, &failure{kind: wire.Cut, text: fmt.Sprintf("no token from %s: %v", address, err)}
	}
	if resp.StatusCode/100 != 2 {
		return nil, &failure{status: resp.StatusCode, code: "NoToken", text: fmt.Sprintf("no token from %s: %s", address, resp.Status)}
	}
	if answer != nil {
		if err := json.Unmarshal(b, answer); err != nil {
			return nil, &failure{kind: wire.Garbage, text: fmt.Sprintf("no token from %s: %v", address, err)}
		}
	}
	return resp.Header, nil
}

func (t *tokens) complete(a access, from string) (access, error) {
	if a.token == "" || a.storageURL == "" && t.config.Settings["storage_url"] == "" {
		return access{}, &failure{kind: wire.Garbage, text: from + " gave no token, or named no object store"}
	}
	return a, nil
}

// tempAuth is the first version of Swift's own.
func (t *tokens) tempAuth(ctx context.Context, address string) (access, error) {
	h, err := t.exchange(ctx, http.MethodGet, address, nil, map[string]string{"X-Auth-User": t.config.Auth["username"], "X-Auth-Key": t.config.Password}, nil)
	if err != nil {
		return access{}, err
	}
	return t.complete(access{h.Get("X-Auth-Token"), h.Get("X-Storage-Url")}, address)
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
	if _, err := t.exchange(ctx, http.MethodPost, address+"/tokens", send, nil, &got); err != nil {
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
			"user": map[string]any{"name": t.config.Auth["username"], "password": t.config.Password, "domain": domain("user_domain")}}},
		"scope": map[string]any{"project": map[string]any{"name": t.first("", "project_name", "tenant_name", "tenant"), "domain": domain("project_domain")}},
	}}
	var got struct {
		Token struct {
			Catalog []struct {
				Type      string
				Endpoints []struct{ Interface, Region, RegionID, URL string }
			}
		}
	}
	h, err := t.exchange(ctx, http.MethodPost, address+"/auth/tokens", send, nil, &got)
	if err != nil {
		return access{}, err
	}
	a, wanted := access{token: h.Get("X-Subject-Token")}, t.first("public", "interface")
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

// abortion lets another goroutine end what a client does: its connection, of
// which there is none before the first token, and its waiting for that.
type abortion struct {
	mu     sync.Mutex
	conn   *wire.Conn
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

func (a *abortion) set(c *wire.Conn) {
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
