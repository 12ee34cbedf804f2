package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/test/analysistest"
)

// service is a results service that can be made to fail.
type service struct {
	*httptest.Server
	store *Store
	// fault, if set, is called first. If it returns true, it has sent the response.
	fault atomic.Pointer[func(http.ResponseWriter, *http.Request) bool]
	stop  func() error // ends it when no request is in progress; idempotent
}

func serve(t *testing.T, dir string, auth Authenticator) *service {
	t.Helper()
	store, err := OpenStore(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	s := &service{store: store}
	handler := (&Handler{Store: store, Auth: auth,
		Render: func(_ context.Context, what, dir string, w io.Writer) error {
			b, err := bundle.Open(dir)
			if err == nil {
				_, err = fmt.Fprintf(w, "%s of %q: %q", what, b.Run.ID, b.Run.Name)
			}
			return err
		},
	}).Serve()
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f := s.fault.Load(); f != nil && (*f)(w, r) {
			return
		}
		handler.ServeHTTP(w, r)
	}))
	s.stop = sync.OnceValue(func() error {
		s.Server.CloseClientConnections()
		s.Server.Close()
		return store.Close()
	})
	t.Cleanup(func() {
		if err := s.stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *service) breaks(f func(http.ResponseWriter, *http.Request) bool) {
	if f == nil {
		s.fault.Store(nil)
		return
	}
	s.fault.Store(&f)
}

func (s *service) run(t *testing.T, ns, id string) *Remote {
	t.Helper()
	r, err := (&Client{URL: s.URL, HTTP: s.Client(), Stall: 20 * time.Second}).Run(ns, id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var quick = Options{Every: 2 * time.Millisecond, MaxBackoff: 20 * time.Millisecond}

// contents returns the files of a directory by their paths.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(filepath.Join(dir, name))
		all[name] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func same(t *testing.T, want, got string) {
	t.Helper()
	if diff := cmp.Diff(contents(t, want), contents(t, got)); diff != "" {
		if len(diff) > 2000 {
			diff = diff[:2000]
		}
		t.Errorf("the copy differs:\n%s", diff)
	}
	b, err := bundle.Open(got)
	if err == nil {
		err = b.Verify()
	}
	if err != nil || !b.Complete {
		t.Errorf("the copy is not complete: %v", err)
	}
}

// grower writes a bundle as a run does, one batch per step.
type grower struct {
	t   *testing.T
	w   *bundle.Writer
	ids int64
}

func newGrower(t *testing.T) *grower {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "bundle"),
		bundle.Run{ID: "r1", Name: "grown", Engine: "kubernetes", Spec: json.RawMessage(`{}`), BarrierAt: op.Never, EndedAt: op.Never,
			Clock: bundle.ClockInfo{Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close(nil) })
	return &grower{t: t, w: w}
}

func (g *grower) step() {
	g.t.Helper()
	for range 20 {
		g.ids++
		g.w.Op(op.Op{ID: g.ids, Action: "a", Kind: op.Create, Ended: op.Time(g.ids), Outcome: op.OK})
	}
	g.w.Log(op.Time(g.ids), "run", "step")
	if err := errors.Join(
		g.w.Raw("fio-0", "fio", "/output/output.json", bytes.Repeat([]byte("x"), 10_000)),
		g.w.Raw("fio-0", "fio", `/output/a\b`, []byte("odd")), // a copy supports any file name
		g.w.Raw("fio-0", "fio", "/output/x.tmp", []byte("half")),
		g.w.Raw("fio-0", "fio", "/output/line\nbreak?%2f#\xff", []byte("odder")),
		g.w.Ledger().Add(op.LedgerEntry{Kind: "dir", Name: fmt.Sprint(g.ids)}),
		g.w.Flush()); err != nil {
		g.t.Fatal(err)
	}
}

func (g *grower) close() {
	g.t.Helper()
	if err := g.w.Close(func(r *bundle.Run) { r.State, r.EndedAt = bundle.Complete, op.Time(5e9) }); err != nil {
		g.t.Fatal(err)
	}
	if err := bundle.Amend(g.w.Dir(), func(r *bundle.Run) {
		r.Verdicts = []bundle.Verdict{{Name: "v",
			Status: bundle.Pass}}
	}); err != nil {
		g.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(g.w.Dir(), bundle.ReportFile), []byte("<html>"), 0o644); err != nil {
		g.t.Fatal(err)
	}
}

// sizes lists the files of a bundle with their sizes. It omits the manifest, which is written on closing.
func sizes(t *testing.T, dir string) string {
	f, err := OpenFolder(dir, Limits{})
	if err != nil {
		return ""
	}
	defer f.Close()
	files, err := f.Files(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, file := range files {
		if file.Path != manifestFile {
			fmt.Fprintln(&b, file.Path, file.Size)
		}
	}
	return b.String()
}

// eventually waits until ok returns true, for at most 30 s.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

func opsOf(t *testing.T, dir string) int {
	b, err := bundle.Open(dir)
	if err != nil {
		return -1
	}
	n := 0
	for _, err := range b.Ops() {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

// TestPushFollowsARun checks that a copy follows a growing bundle promptly, and that both are equal in the end.
func TestPushFollowsARun(t *testing.T) {
	s := serve(t, t.TempDir(), AllowAll{})
	to := s.run(t, "team", "r1")
	g := newGrower(t)
	p, err := StartPush(t.Context(), g.w.Dir(), to, quick)
	if err != nil {
		t.Fatal(err)
	}
	there := s.store.path("team", "r1")
	for i := range 3 {
		g.step()
		eventually(t, "the ops are there", func() bool { return opsOf(t, there) == 20*(i+1) })
	}
	if b, err := bundle.Open(there); err != nil || !b.Live || b.Complete {
		t.Errorf("the copy of a living run: %v, live %v, complete %v", err, b.Live, b.Complete)
	}
	if info, err := to.Info(t.Context()); err != nil || time.Since(info.Seen) > time.Minute || info.Closed != "" ||
		info.State != bundle.Running || info.Name != "grown" {
		t.Errorf("%+v, %v", info, err)
	}
	g.close()
	if err := p.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, g.w.Dir(), there)
	info, err := to.Info(t.Context())
	want := time.Date(2026, 1, 2, 3, 4, 10, 0, time.UTC)
	if err != nil || info.Closed != Complete || info.State != bundle.Complete || info.Ended == nil ||
		!info.Ended.Equal(want) {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := to.Append(t.Context(), "log.jsonl", 0, []byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed run takes an append: %v", err)
	}
	for _, name := range []string{bundle.ReportFile, ledgerFile, runFile} {
		if err := to.Replace(t.Context(), name, strings.NewReader("{}")); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed run's %s is replaced: %v", name, err)
		}
		if err := to.Remove(t.Context(), name); !errors.Is(err, ErrClosed) {
			t.Errorf("a closed run's %s is removed: %v", name, err)
		}
	}
	if _, err := to.Append(t.Context(), ledgerFile, 0, nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed run's ledger takes an append: %v", err)
	}
	same(t, g.w.Dir(), there)
}

// TestPushOutlastsTheReceiver checks that no data is lost for any fault of the service.
func TestPushOutlastsTheReceiver(t *testing.T) {
	var n atomic.Int64
	faults := map[string]func(http.ResponseWriter, *http.Request) bool{
		"away": func(w http.ResponseWriter, _ *http.Request) bool {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return true
		},
		"error 500": func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "broken", http.StatusInternalServerError)
			return true
		},
		"not allowed": func(w http.ResponseWriter, _ *http.Request) bool {
			http.Error(w, "who are you", http.StatusUnauthorized)
			return true
		},
		"hangs": func(_ http.ResponseWriter, r *http.Request) bool {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
			return true
		},
		"closes in mid-body": func(w http.ResponseWriter, r *http.Request) bool {
			_, _ = r.Body.Read(make([]byte, 100))
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
			return true
		},
		"each second request fails": func(w http.ResponseWriter, _ *http.Request) bool {
			if n.Add(1)%2 == 0 {
				return false
			}
			http.Error(w, "busy", http.StatusServiceUnavailable)
			return true
		},
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := serve(t, t.TempDir(), AllowAll{})
			g := newGrower(t)
			g.step()
			said := make(chan string, 100)
			o := quick
			o.Log = func(text string) { said <- text }
			to := s.run(t, "team", "r1")
			if name == "hangs" {
				to.client.Stall = 300 * time.Millisecond
			}
			p, err := StartPush(t.Context(), g.w.Dir(), to, o)
			if err != nil {
				t.Fatal(err)
			}
			there := s.store.path("team", "r1")
			eventually(t, "the first ops are there", func() bool { return opsOf(t, there) == 20 })
			s.breaks(fault)
			for range 3 {
				g.step()
				time.Sleep(20 * time.Millisecond)
			}
			if name != "each second request fails" {
				if text := <-said; !strings.Contains(text, "no data is lost") {
					t.Error(text)
				}
				s.breaks(nil)
			}
			g.close()
			if err := p.Finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, g.w.Dir(), there)
		})
	}
}

// TestPushResumes checks that a new pusher continues where a killed one stopped, even if the service was restarted in
// between.
func TestPushResumes(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, dir, AllowAll{})
	g := newGrower(t)
	g.step()
	first, err := StartPush(t.Context(), g.w.Dir(), s.run(t, "team", "r1"), quick)
	if err != nil {
		t.Fatal(err)
	}
	there := s.store.path("team", "r1")
	eventually(t, "the first ops are there", func() bool { return opsOf(t, there) == 20 })
	if err := first.Abandon(); err != nil {
		t.Fatal(err)
	}
	// State after a killed service: appended data that was not acknowledged, and a partially written replacement.
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(there, incomingDir), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(there, incomingDir, "ABCDEFGH"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	s = serve(t, dir, AllowAll{})
	sent := atomic.Int64{}
	s.breaks(func(_ http.ResponseWriter, r *http.Request) bool {
		sent.Add(r.ContentLength)
		return false
	})
	g.step()
	g.close()
	second, err := StartPush(t.Context(), g.w.Dir(), s.run(t, "team", "r1"), quick)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := sent.Load(); n > 40_000 {
		t.Errorf("%d bytes were sent again", n)
	}
	same(t, g.w.Dir(), there)
}

// TestCloseFindsWhatDiffers checks that closing detects files that were changed in the copy by their checksums, and
// that the pusher repairs them.
func TestCloseFindsWhatDiffers(t *testing.T) {
	s := serve(t, t.TempDir(), AllowAll{})
	b, _ := analysistest.Demo(t)
	to := s.run(t, "team", "r1")
	p, err := StartPush(t.Context(), b.Dir, to, quick)
	if err != nil {
		t.Fatal(err)
	}
	there := s.store.path("team", "r1")
	eventually(t, "everything is there", func() bool { return sizes(t, there) == sizes(t, b.Dir) })
	lines := filepath.Join(there, "log.jsonl")
	text, err := os.ReadFile(lines)
	if err != nil {
		t.Fatal(err)
	}
	text[0] = '#'
	if err := errors.Join(os.WriteFile(lines, text, 0o644),
		os.WriteFile(filepath.Join(there, "events", "000009.seg"), []byte("x"), 0o644)); err != nil {
		t.Fatal(err)
	}
	manifest, err := os.ReadFile(filepath.Join(b.Dir, manifestFile))
	if err != nil {
		t.Fatal(err)
	}
	differs, err := to.Seal(t.Context(), manifest)
	if diff := cmp.Diff([]Difference{{"log.jsonl", Differs}, {"events/000009.seg", NotInManifest}},
		differs); err != nil || diff != "" {
		t.Errorf("%v\n%s", err, diff)
	}
	if err := p.Finish(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, b.Dir, there)
	if differs, err := to.Seal(t.Context(), manifest); err != nil || len(differs) > 0 {
		t.Errorf("closing twice: %v, %v", differs, err)
	}
}

// TestPushOfDamage checks that a source that does not match its manifest is not accepted as a bundle.
func TestPushOfDamage(t *testing.T) {
	s := serve(t, t.TempDir(), AllowAll{})
	b, _ := analysistest.Demo(t)
	if err := os.WriteFile(filepath.Join(b.Dir, "log.jsonl"), []byte("damage\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	p, err := StartPush(t.Context(), b.Dir, s.run(t, "team", "r1"), quick)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Finish(t.Context()); err == nil || !strings.Contains(err.Error(), "log.jsonl (differs)") {
		t.Errorf("error %v", err)
	}
}

func TestFinishGivesUpWithItsContext(t *testing.T) {
	s := serve(t, t.TempDir(), AllowAll{})
	s.breaks(func(w http.ResponseWriter, _ *http.Request) bool {
		http.Error(w, "full", http.StatusInsufficientStorage)
		return true
	})
	g := newGrower(t)
	p, err := StartPush(t.Context(), g.w.Dir(), s.run(t, "team", "r1"), quick)
	if err != nil {
		t.Fatal(err)
	}
	g.close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := p.Finish(ctx); err == nil || !strings.Contains(err.Error(), "507") ||
		!strings.Contains(err.Error(), "incomplete") {
		t.Errorf("error %v", err)
	}
}

// TestLost checks that a lost runner leaves an incomplete bundle, and that a runner that was reported lost by mistake
// cannot add data to it.
func TestLost(t *testing.T) {
	s := serve(t, t.TempDir(), AllowAll{})
	to := s.run(t, "team", "r1")
	g := newGrower(t)
	p, err := StartPush(t.Context(), g.w.Dir(), to, quick)
	if err != nil {
		t.Fatal(err)
	}
	g.step()
	there := s.store.path("team", "r1")
	eventually(t, "the ops are there", func() bool { return opsOf(t, there) == 20 })
	if err := to.Lost(t.Context(), "node n1 is gone"); err != nil {
		t.Fatal(err)
	}
	if err := to.Lost(t.Context(), "again"); err != nil {
		t.Errorf("twice: %v", err)
	}
	g.step()
	g.close()
	if err := p.Finish(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("the runner that was given up: %v", err)
	}
	b, err := bundle.Open(there)
	if err != nil {
		t.Fatal(err)
	}
	if b.Complete || b.Live || b.Run.State != bundle.Failed || b.Run.Reason != "node n1 is gone" ||
		opsOf(t, there) != 20 {
		t.Errorf("complete %v, live %v, %s: %s, %d ops", b.Complete, b.Live, b.Run.State, b.Run.Reason, opsOf(t, there))
	}
	info, err := to.Info(t.Context())
	if err != nil || info.Closed != Incomplete || info.Reason != "node n1 is gone" || info.Ended != nil {
		t.Errorf("%+v, %v", info, err)
	}
	// The clean-up trusts the ledger, so it must stay as the run left it.
	if err := to.Replace(t.Context(), ledgerFile, strings.NewReader("{}")); !errors.Is(err, ErrClosed) {
		t.Errorf("the ledger of a lost run is replaced: %v", err)
	}
	if _, err := to.Append(t.Context(), ledgerFile, 0, []byte("x")); !errors.Is(err, ErrClosed) {
		t.Errorf("the ledger of a lost run takes an append: %v", err)
	}
}

func TestPull(t *testing.T) {
	// The runner's pod serves the bundle that the runner writes.
	root := t.TempDir()
	w, err := bundle.Create(filepath.Join(root, "team", "r1"),
		bundle.Run{ID: "r1", Name: "pod", Engine: "kubernetes", BarrierAt: op.Never, EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	g := &grower{t: t, w: w}
	s := serve(t, root, Token("secret"))
	from := s.run(t, "team", "r1")
	here := filepath.Join(t.TempDir(), "copy")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	if _, err := Pull(ctx, from, here, quick); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("without the token: %v", err)
	}
	cancel()
	from.client.HTTP = &http.Client{Transport: bearerOf("secret")}

	g.step()
	ctx, cancel = context.WithCancel(t.Context())
	var interrupted sync.WaitGroup
	interrupted.Go(func() {
		if _, err := Pull(ctx, from, here, quick); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
	})
	eventually(t, "the ops are here", func() bool { return opsOf(t, here) == 20 })
	cancel()
	interrupted.Wait()

	g.step()
	result := make(chan error, 1)
	go func() {
		info, err := Pull(t.Context(), from, here, quick)
		if err == nil && info.Closed != Complete {
			err = fmt.Errorf("closed %q", info.Closed)
		}
		result <- err
	}()
	eventually(t, "the further ops are here", func() bool { return opsOf(t, here) == 40 })
	g.close()
	if err := s.store.Finish("team", "r1"); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	same(t, w.Dir(), here)

	// A copy without the raw files suffices for a report.
	part := filepath.Join(t.TempDir(), "part")
	if _, err := Fetch(t.Context(), from, part, Options{Skip: func(name string) bool {
		return strings.HasPrefix(name,
			"raw/")
	}}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(part, "raw")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("raw files came: %v", err)
	}
	if n := opsOf(t, part); n != 40 {
		t.Errorf("%d ops", n)
	}
}

type bearerOf string

func (b bearerOf) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

func TestRequests(t *testing.T) {
	s := serve(t, t.TempDir(), AllowAll{})
	do := func(method, target, body string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), method, s.URL+target, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := s.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, strings.TrimSpace(string(b))
	}
	const run = `{"format":1,"runID":"r1","name":"n","state":"running","clock":{"start":"2026-01-02T03:04:05Z"},"endedAt":null,"barrierAt":null,"source":{"file":"","text":""},"seed":1,"engine":"local","exitCode":0}`
	f := "/v1/runs/ns/r1/files/"
	for _, tt := range []struct {
		name, method, target, body string
		status                     int
		want                       string // part of the response
	}{
		{"health", "GET", "/healthz", "", 200, "ok"},
		{"no run", "GET", "/v1/runs/ns/r1", "", 404, "run not found"},
		{"no runs", "GET", "/v1/runs", "", 200, "[]"},
		{"append to nothing at 5", "PUT", f + "log.jsonl?offset=5", "x", 409, `"size":0`},
		{"append", "PUT", f + "log.jsonl?offset=0", "abc\n", 200, `{"size":4}`},
		{"append behind", "PUT", f + "log.jsonl?offset=9", "x", 409, `"size":4`},
		{"append before", "PUT", f + "log.jsonl?offset=0", "x", 409, `"size":4`},
		{"append on", "PUT", f + "log.jsonl?offset=4", "def\n", 200, `{"size":8}`},
		{"append nothing", "PUT", f + "log.jsonl?offset=8", "", 200, `{"size":8}`},
		{"offset", "PUT", f + "log.jsonl?offset=-1", "x", 400, "offset"},
		{"no offset", "PUT", f + "log.jsonl?offset=x", "x", 400, "offset"},
		{"read", "GET", f + "log.jsonl", "", 200, "abc\ndef"},
		{"read on", "GET", f + "log.jsonl?offset=4", "", 200, "def"},
		{"read at the end", "GET", f + "log.jsonl?offset=8", "", 200, ""},
		{"read behind the end", "GET", f + "log.jsonl?offset=9", "", 409, `"size":8`},
		{"read what is not there", "GET", f + "none", "", 404, "none"},
		{"read a directory", "GET", f + "%2e", "", 400, "clean relative path"},
		{"summary before run.json", "GET", "/v1/runs/ns/r1/summary", "", 404, "run.json"},
		{"replace", "PUT", f + "run.json?replace=1", run, 204, ""},
		{"info", "GET", "/v1/runs/ns/r1", "", 200, `"state":"running"`},
		{"list", "GET", "/v1/runs", "", 200, `"id":"r1"`},
		{"list a namespace", "GET", "/v1/runs?namespace=other", "", 200, "[]"},
		{"list what is none", "GET", "/v1/runs?namespace=..", "", 400, "namespace"},
		{"files", "GET", "/v1/runs/ns/r1/files", "", 200, `"path":"log.jsonl","size":8`},
		{"summary", "GET", "/v1/runs/ns/r1/summary", "", 200, `summary of "r1": "n"`},
		{"report", "GET", "/v1/runs/ns/r1/report", "", 200, `report of "r1": "n"`},
		{"run.json by appends", "PUT", f + "run.json?offset=0", "{}", 400, "cannot be appended to"},
		{"run.json that is none", "PUT", f + "run.json?replace=1", "{", 400, "invalid JSON"},
		{"manifest by put", "PUT", f + "manifest.json?replace=1", "{}", 400, "closing the run"},
		{"left-over", "PUT", f + "run.json.tmp?replace=1", "{}", 400, "not part of a bundle"},
		{"in the way of what is received", "PUT", f + ".incoming/x?offset=0", "x", 400, "not part of a bundle"},
		{"a workload's own names", "PUT", f + "raw/fio-0/fio/a%5Cb.tmp?offset=0", "x", 200, `{"size":1}`},
		{"deep", "PUT", f + strings.Repeat("d/", 460) + "x?offset=0", "x", 400, "450 directories"},
		{"out", "PUT", f + "..%2f..%2fx?offset=0", "x", 400, "clean relative path"},
		{"absolute", "PUT", f + "%2fetc%2fx?offset=0", "x", 400, "clean relative path"},
		{"file as directory", "PUT", f + "log.jsonl/x?offset=0", "x", 400, ""},
		{"directory as file", "PUT", f + "raw/a/b/c?offset=0", "x", 200, ""},
		{"directory as file 2", "PUT", f + "raw/a?offset=0", "x", 400, ""},
		{"long name", "PUT", f + "raw/a/b/" + strings.Repeat("x", 300) + "?offset=0", "x", 400, ""},
		{"namespace", "PUT", "/v1/runs/n_s/r1/files/x?offset=0", "x", 400, "namespace"},
		{"run", "PUT", "/v1/runs/ns/.r1/files/x?offset=0", "x", 400, "run"},
		{"close with nonsense", "POST", "/v1/runs/ns/r1/close", "nonsense", 400, "manifest"},
		{"close with nothing", "POST", "/v1/runs/ns/r1/close", "{}", 400, "manifest"},
		{"close outside", "POST", "/v1/runs/ns/r1/close", `{"format":1,"files":[{"path":"../../x"}]}`, 400,
			"clean relative path"},
		{"close with a file twice", "POST", "/v1/runs/ns/r1/close", `{"format":1,"files":[{"path":"a"},{"path":"a"}]}`,
			400,
			"twice"},
		{"close too early", "POST", "/v1/runs/ns/r1/close", `{"format":1,"files":[{"path":"a"}]}`, 409,
			`"path":"a","reason":"missing"`},
		{"lost", "POST", "/v1/runs/ns/r1/lost", `{"reason":"why"}`, 200, `"closed":"incomplete"`},
		{"append to the lost", "PUT", f + "log.jsonl?offset=8", "x", 410, "closed"},
		{"remove from the lost", "DELETE", f + "log.jsonl", "", 410, "closed"},
		{"close the lost", "POST", "/v1/runs/ns/r1/close", `{"format":1,"files":[{"path":"a"}]}`, 410, "incomplete"},
		{"remove from no run", "DELETE", "/v1/runs/ns/none/files/x", "", 404, ""},
		{"which is not made by that", "GET", "/v1/runs/ns/none", "", 404, ""},
		{"delete", "DELETE", "/v1/runs/ns/r1", "", 204, ""},
		{"gone", "GET", "/v1/runs/ns/r1/files", "", 404, ""},
		{"anew", "PUT", f + "log.jsonl?offset=0", "x", 200, `{"size":1}`},
		{"method", "PATCH", f + "log.jsonl", "x", 405, ""},
	} {
		status, body := do(tt.method, tt.target, tt.body)
		if status != tt.status || !strings.Contains(body, tt.want) {
			t.Errorf("%s: %d %s, want %d %s", tt.name, status, body, tt.status, tt.want)
		}
	}
}

func TestLimits(t *testing.T) {
	f, err := OpenFolder(t.TempDir(), Limits{RunBytes: 100, RunFiles: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ctx := t.Context()
	if _, err := f.Append(ctx, "a", 0, make([]byte, 60)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Append(ctx, "a", 60, make([]byte, 41)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("101 bytes: %v", err)
	}
	if err := f.Replace(ctx, "a", strings.NewReader(strings.Repeat("x", 100))); err != nil {
		t.Errorf("100 bytes in place of 60: %v", err)
	}
	if err := f.Replace(ctx, "a", io.LimitReader(endless{}, 1<<40)); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a body without end: %v", err)
	}
	if err := errors.Join(f.Remove(ctx, "a"), f.Replace(ctx, "b", strings.NewReader("b")),
		f.Replace(ctx, "c", strings.NewReader("c"))); err != nil {
		t.Errorf("after a removal: %v", err)
	}
	if err := f.Replace(ctx, "d", strings.NewReader("d")); !errors.Is(err, ErrTooLarge) {
		t.Errorf("a third file: %v", err)
	}
	other, err := OpenFolder(f.root.Name(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if _, err := other.Append(ctx, "b", 1, []byte("x")); !errors.Is(err, ErrBusy) {
		t.Errorf("two writers: %v", err)
	}
	left, err := os.ReadDir(f.root.Name())
	if err != nil || len(left) != 2 {
		t.Errorf("left %v, %v", left, err)
	}
}

type endless struct{}

func (endless) Read(b []byte) (int, error) { return len(b), nil }

// TestTruncatedBody checks that an interrupted body leaves the file unchanged.
func TestTruncatedBody(t *testing.T) {
	f, err := OpenFolder(t.TempDir(), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Replace(t.Context(), "run.json", strings.NewReader(`"old"`)); err != nil {
		t.Fatal(err)
	}
	broken := io.MultiReader(strings.NewReader("ne"), failing{})
	if err := f.Replace(t.Context(), "run.json", broken); !errors.Is(err, syscall.ECONNRESET) {
		t.Error(err)
	}
	if diff := cmp.Diff(map[string]string{"run.json": `"old"`}, contents(t, f.root.Name())); diff != "" {
		t.Error(diff)
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, syscall.ECONNRESET }

// TestConcurrentWriters checks that concurrent appends neither overlap nor mix.
func TestConcurrentWriters(t *testing.T) {
	s := serve(t, t.TempDir(), AllowAll{})
	to := s.run(t, "team", "r1")
	var writers sync.WaitGroup
	var accepted atomic.Int64
	for range 8 {
		writers.Go(func() {
			for offset := int64(0); offset < 400; {
				size, err := to.Append(t.Context(), "log.jsonl", offset,
					bytes.Repeat([]byte{byte('a' + offset/10%26)}, 10))
				var elsewhere *OffsetError
				switch {
				case errors.As(err, &elsewhere):
					offset = elsewhere.Size
				case err != nil:
					t.Error(err)
					return
				default:
					accepted.Add(1)
					offset = size
				}
			}
		})
	}
	writers.Wait()
	got, err := os.ReadFile(filepath.Join(s.store.path("team", "r1"), "log.jsonl"))
	if err != nil || int64(len(got)) != 10*accepted.Load() {
		t.Fatalf("%d bytes, %d acknowledged, %v", len(got), accepted.Load(), err)
	}
	for i := range got {
		if want := byte('a' + i/10%26); got[i] != want {
			t.Fatalf("byte %d is %c, want %c", i, got[i], want)
		}
	}
}

func TestPinned(t *testing.T) {
	cert, err := SelfSigned([]string{"127.0.0.1", "localhost"})
	if err != nil {
		t.Fatal(err)
	}
	other, err := SelfSigned(nil)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request) {
		fmt.Fprint(w, "[]")
	}))
	s.Config.ErrorLog = log.New(io.Discard, "", 0) // hides the message about the rejected handshake
	s.TLS = tlsOf(cert)
	s.StartTLS()
	defer s.Close()
	for _, tt := range []struct {
		pin string
		ok  bool
	}{{Pin(cert.Certificate[0]), true}, {Pin(other.Certificate[0]), false}} {
		conf, err := Pinned(tt.pin)
		if err != nil {
			t.Fatal(err)
		}
		c := &Client{URL: s.URL, HTTP: &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}}
		if _, err := c.Runs(t.Context(), ""); (err == nil) != tt.ok {
			t.Errorf("%v: %v", tt.ok, err)
		}
	}
	dir := filepath.Join(t.TempDir(), "tls")
	first, err := LoadOrCreateCertificate(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := LoadOrCreateCertificate(dir, nil); err != nil ||
		Pin(again.Certificate[0]) != Pin(first.Certificate[0]) {
		t.Errorf("the pin of a service that starts again is another one: %v", err)
	}
	for _, bad := range []string{"", "sha256:", "sha256:xy", "ab"} {
		if _, err := Pinned(bad); err == nil {
			t.Errorf("%q is taken for a pin", bad)
		}
	}
}
