package web

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/analysis/compare"
	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/report/html"
)

const kept = "../../test/e2e/testdata/kept-2026-11"

// render renders without a process of its own.
func render(_ context.Context, what, dir string, w io.Writer) error {
	b, err := bundle.Open(dir)
	if err != nil {
		return err
	}
	s, err := summary.Make(b)
	if err != nil {
		return err
	}
	if what == "summary" {
		return json.NewEncoder(w).Encode(s)
	}
	return html.Write(w, b, s)
}

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// newServer serves a directory; ask requests a path of it.
func newServer(t *testing.T, dir string) (ask func(path string) (int, string, http.Header), s *Server) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	s, err := New(ctx, Options{Dir: dir, Render: render,
		Compare: func(_ context.Context, runs []Labelled) (*compare.Result, error) {
			r := &compare.Result{}
			for _, x := range runs {
				r.Levels = append(r.Levels, x.Label)
			}
			return r, nil
		}})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	t.Cleanup(func() {
		cancel()
		web.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(path string) (int, string, http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, web.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		b, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.StatusCode, string(b), answer.Header
	}, s
}

func TestPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	copyDir(t, kept+"/bundle", filepath.Join(dir, "a", "one"))
	copyDir(t, kept+"/bundle", filepath.Join(dir, "b", "one=2"))
	copyDir(t, kept+"/bundle", filepath.Join(dir, "linked"))
	copyDir(t, kept+"/study", filepath.Join(dir, "study"))
	if err := os.Symlink("/etc/hostname", filepath.Join(dir, "linked", "raw", "x")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "a"), filepath.Join(dir, "c")); err != nil {
		t.Fatal(err)
	}
	copyDir(t, kept+"/bundle", filepath.Join(dir, "torn"))
	if err := os.WriteFile(filepath.Join(dir, "torn", "events", "ops.parquet"), []byte("PAR1"), 0o600); err != nil {
		t.Fatal(err)
	}
	ask, _ := newServer(t, dir)
	for _, tt := range []struct {
		path   string
		status int
		want   string
	}{
		{"/", 200, `<div id="app">`},
		{"/api/v1/runs", 200, `"id":"a/one"`},
		{"/api/v1/runs/a%2Fone/summary", 200, `"runID":`},
		{"/api/v1/cards?run=a/one&run=none", 200, `"headline":["`},
		{"/api/v1/compare?run=a/one&run=b/one%3D2", 200, `"levels":["one","one:2"]`},
		{"/api/v1/compare?run=a/one", 400, "2 to 50"},
		{"/api/v1/studies/study", 200, `"order":[{"id":"study/1_parallelism=1_r1"`},
		{"/api/v1/runs/a%2Fone/events", 409, "not in progress"},
		{"/runs/a/one/", 200, `<span class="place">a/one</span>`},
		{"/runs/none/", 404, `<div id="app">`},
		{"/runs/study/", 200, `<div id="app">`},
		{"/studies/study/", 200, `<div id="app">`},
		{"/studies/none/", 404, `<div id="app">`},
		{"/studies/a/one/", 200, `<span class="place">a/one</span>`},
		{"/runs/torn/", 500, `ops.parquet is damaged`},
		{"/runs/torn/", 500, `<code>cnsbench verify &#39;`},
		{"/nothing", 404, `<div id="app">`},
		{"/assets/none.js", 404, ""},
		{"/api/v1/runs/..%2F..%2Fetc/summary", 404, "not found"},
		{"/api/v1/runs/%2Fetc/summary", 404, "not found"},
		{"/api/v1/runs/linked/summary", 500, "refused"},
		{"/api/v1/runs/c%2Fone/summary", 404, "not found"},
	} {
		status, text, header := ask(tt.path)
		if status != tt.status || !strings.Contains(text, tt.want) {
			t.Errorf("GET %s: %d %.300s, want %d %s", tt.path, status, text, tt.status, tt.want)
		}
		policy := header.Get("Content-Security-Policy")
		for _, part := range strings.Split(policy, ";") {
			if strings.Contains(part, "script-src") && strings.Contains(part, "unsafe") || policy == "" {
				t.Errorf("GET %s: policy %q", tt.path, policy)
			}
		}
	}
}

// gone is the writer of a reader that has left.
type gone struct {
	httptest.ResponseRecorder
	statuses []int
}

func (g *gone) WriteHeader(status int)    { g.statuses = append(g.statuses, status) }
func (g *gone) Write([]byte) (int, error) { return 0, http.ErrHandlerTimeout }

// An answer has one status, also if its reader leaves before the end.
func TestReaderLeaves(t *testing.T) {
	t.Parallel()
	_, s := newServer(t, t.TempDir())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, path := range []string{"/api/v1/runs", "/api/v1/queue", "/api/v1/studies/none", "/"} {
		var w gone
		s.Handler().ServeHTTP(&w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
		if len(w.statuses) != 1 {
			t.Errorf("GET %s: statuses %d, want one", path, w.statuses)
		}
	}
}

// A directory that is itself a bundle has the ID of the root.
func TestRoot(t *testing.T) {
	t.Parallel()
	ask, _ := newServer(t, kept+"/bundle")
	if status, text, _ := ask("/runs/_/"); status != 200 || !strings.Contains(text, "cnsbench-bar") {
		t.Errorf("%d %.200s", status, text)
	}
}

// The bar does not weaken the policy of the report, and a report without a policy is not served.
func TestFramed(t *testing.T) {
	t.Parallel()
	// Quotes as html/template writes them.
	page := `<head><meta http-equiv="Content-Security-Policy" content="default-src &#39;none&#39;; ` +
		`style-src &#39;unsafe-inline&#39;"></head><body><h1>x</h1>`
	text, policy, err := framed([]byte(page), bar{Name: "<script>"})
	if err != nil || policy != "default-src 'none'; style-src 'self' 'unsafe-inline'; "+framePolicy {
		t.Errorf("policy %q, %v", policy, err)
	}
	if s := string(text); strings.Contains(s, "<script>") || strings.Contains(s, "http-equiv") ||
		!strings.Contains(s, "</div><h1>x</h1>") {
		t.Error(s)
	}
	for _, bad := range []string{"<body>", `<body>` + page, strings.Replace(page, "style-src", "img-src", 1)} {
		if _, _, err := framed([]byte(bad), bar{}); err == nil {
			t.Errorf("served: %s", bad)
		}
	}
}

func TestRequireToken(t *testing.T) {
	t.Parallel()
	h := RequireToken(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }), "secret")
	other := RequireToken(http.NotFoundHandler(), "another")
	visit := func(h http.Handler, token string) []*http.Cookie {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1:8080/?token="+token, nil))
		return w.Result().Cookies()
	}
	cookies := visit(h, "secret")
	if len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].Secure || cookies[0].Path != "/" ||
		cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(cookies[0].Value, "secret") {
		t.Fatal(cookies)
	}
	add := func(cookies []*http.Cookie) func(*http.Request) {
		return func(r *http.Request) {
			for _, c := range cookies {
				r.AddCookie(c)
			}
		}
	}
	for name, tt := range map[string]struct {
		target string
		set    func(*http.Request)
		want   int
	}{
		"none":                      {"GET /", nil, 401},
		"wrong":                     {"GET /", func(r *http.Request) { r.SetBasicAuth("me", "secre") }, 401},
		"empty":                     {"GET /", func(r *http.Request) { r.Header.Set("Authorization", "Bearer ") }, 401},
		"password":                  {"GET /", func(r *http.Request) { r.SetBasicAuth("", "secret") }, 204},
		"bearer":                    {"GET /", func(r *http.Request) { r.Header.Set("Authorization", "Bearer secret") }, 204},
		"address":                   {"GET /?token=secret", nil, 303},
		"wrong in the address":      {"GET /?token=secre", nil, 401},
		"none in the address":       {"GET /?token=", nil, 401},
		"in the address of a POST":  {"POST /?token=secret", nil, 401},
		"cookie":                    {"GET /", add(cookies), 204},
		"cookie of a POST":          {"POST /", add(cookies), 204},
		"cookie, an old address":    {"GET /?token=old", add(cookies), 204},
		"cookie of another token":   {"GET /", add(visit(other, "another")), 401},
		"cookie with the token":     {"GET /", add([]*http.Cookie{{Name: cookies[0].Name, Value: "secret"}}), 401},
		"cookie for another server": {"GET http://127.0.0.1:8081/", add(cookies), 401},
	} {
		method, target, _ := strings.Cut(tt.target, " ")
		if target[0] == '/' {
			target = "http://127.0.0.1:8080" + target
		}
		r := httptest.NewRequest(method, target, nil)
		if tt.set != nil {
			tt.set(r)
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != tt.want {
			t.Errorf("%s: %d, want %d", name, w.Code, tt.want)
		}
	}
}

// The address with the token leads to the same one without it, on this server.
func TestTokenLeavesAddress(t *testing.T) {
	t.Parallel()
	h := RequireToken(http.NotFoundHandler(), "secret")
	for target, want := range map[string]string{
		"https://h/?token=secret":                 "/",
		"https://h/runs/a%2Fb/?token=secret":      "/runs/a%2Fb/",
		"https://h/compare?run=a&token=secret":    "/compare?run=a",
		"https://h/?token=secret&token=secret":    "/",
		"https://h//other.example/x?token=secret": "/other.example/x",
		"https://h/%5Cother.example?token=secret": "/%5Cother.example",
		"https://h/x?next=https://o&token=secret": "/x?next=https%3A%2F%2Fo",
	} {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, target, nil))
		if got := w.Header().Get("Location"); w.Code != http.StatusSeeOther || got != want {
			t.Errorf("%s: %d, %q, want %q", target, w.Code, got, want)
		}
		if c := w.Result().Cookies(); len(c) != 1 || !c[0].Secure {
			t.Errorf("%s: cookies %v", target, c)
		}
	}
}

// Readers of a live run get what is new, a resumed one from where it was, and all the end.
func TestEvents(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w, err := bundle.Create(filepath.Join(dir, "live"), bundle.Run{ID: "r", Name: "live", BarrierAt: op.Never,
		EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	for s := range 10 {
		at := op.Time(s) * 1e9
		w.Sample(op.Sample{Instance: "a", At: at, ReadBytes: int64(s) * 1000})
		w.Op(op.Op{ID: int64(s), Action: "snap", Intended: at, Started: at, Ended: at + 5e8, Outcome: op.OK})
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	_, s := newServer(t, dir)
	web := httptest.NewServer(s.Handler())
	defer web.Close()
	read := func(last string) func() Update {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, web.URL+"/api/v1/runs/live/events", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Last-Event-ID", last)
		answer, err := web.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = answer.Body.Close() })
		lines := bufio.NewScanner(answer.Body)
		lines.Buffer(nil, 1<<20)
		return func() (u Update) {
			for lines.Scan() {
				if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
					if err := json.Unmarshal([]byte(data), &u); err != nil {
						t.Fatal(err)
					}
					return u
				}
			}
			t.Fatal("the stream ended:", errors.Join(lines.Err(), io.EOF))
			return u
		}
	}
	first := read("")
	u := first()
	if len(u.Points) != 7 || u.Points[3].Read != 1000 || u.Points[3].Ops["snap"] != 0.5 || len(u.Ops) != 10 ||
		u.Status.Actions[0].N != 10 || u.Status.Phase != "preparing" {
		t.Errorf("%+v", u)
	}
	s.hubs.mu.Lock()
	epoch := s.hubs.all[filepath.Join(dir, "live")].epoch
	s.hubs.mu.Unlock()
	if u := read(epoch + "-5")(); len(u.Points) != 2 || u.Points[0].At != 5 {
		t.Errorf("resumed after 5 seconds: %+v", u.Points)
	}
	if u := read("other-5")(); len(u.Points) != 7 {
		t.Errorf("resumed after a restart: %d points", len(u.Points))
	}
	if err := w.Close(nil); err != nil {
		t.Fatal(err)
	}
	for u.Status.Phase != "ended" {
		u = first()
	}
}

// TestTurns: readers take an event at different times, the first at once, and all before the next.
func TestTurns(t *testing.T) {
	t.Parallel()
	for _, readers := range []int{1, 2, 100, maxReaders} {
		h := &hub{live: newLive(bundle.Run{}), readers: readers, changed: make(chan struct{})}
		for range 2 {
			h.step(nil, true, nil)
			last := time.Duration(-1)
			for range readers {
				d := h.turn()
				if d <= last || d >= followStep || last < 0 && d != 0 {
					t.Errorf("%d readers: one waits %v after one that waits %v", readers, d, last)
				}
				last = d
			}
		}
	}
}

// TestSizeOfScripts: all scripts of the pages together, compressed, are at most 250 kB.
func TestSizeOfScripts(t *testing.T) {
	t.Parallel()
	var compressed bytes.Buffer
	z := gzip.NewWriter(&compressed)
	scripts, err := fs.Glob(assets, "assets/*.js")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("%d scripts, %v", len(scripts), err)
	}
	for _, name := range scripts {
		text, err := assets.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := z.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if compressed.Len() > 250_000 {
		t.Errorf("%d bytes of scripts", compressed.Len())
	}
}
