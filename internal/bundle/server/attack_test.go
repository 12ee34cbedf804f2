package server

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// attacked returns a service with the given limits and its store.
func attacked(t *testing.T, l Limits, change func(*Handler)) (*httptest.Server, *Store) {
	t.Helper()
	store, err := OpenStore(t.TempDir(), l)
	if err != nil {
		t.Fatal(err)
	}
	h := &Handler{Store: store, Auth: AllowAll{}}
	if change != nil {
		change(h)
	}
	s := httptest.NewServer(h.Serve())
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, store
}

func send(ctx context.Context, s *httptest.Server, method, target string, body io.Reader) (int, string, error) {
	req, err := http.NewRequestWithContext(ctx, method, s.URL+target, body)
	if err != nil {
		return 0, "", err
	}
	resp, err := s.Client().Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 4096))
	return resp.StatusCode, string(b), err
}

// onDisk returns the size of the files in a directory, in bytes, including files that belong to no bundle.
func onDisk(dir string) (bytes int64) {
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			if info, err := d.Info(); err == nil {
				bytes += info.Size()
			}
		}
		return nil // files are created and removed concurrently
	})
	return bytes
}

// TestUnknownSendersCostNothing checks that a request that is not authenticated does not read any file of a run.
func TestUnknownSendersCostNothing(t *testing.T) {
	s, store := attacked(t, Limits{}, func(h *Handler) { h.Auth = Token("secret") })
	if err := os.MkdirAll(store.path("ns", "r1"), 0o755); err != nil {
		t.Fatal(err)
	}
	// run.json is a pipe, so that a read blocks.
	if err := unix.Mkfifo(filepath.Join(store.path("ns", "r1"), runFile), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, request := range []string{"PUT /files/log.jsonl?offset=0", "PUT /files/run.json?replace=1", "GET ",
		"GET /files", "GET /files/run.json",
		"GET /report", "GET /summary", "POST /close", "POST /lost", "DELETE ", "DELETE /files/run.json"} {
		method, what, _ := strings.Cut(request, " ")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		status, answer, err := send(ctx, s, method, "/v1/runs/ns/r1"+what, strings.NewReader("x"))
		cancel()
		if err != nil || status != http.StatusUnauthorized {
			t.Errorf("%s: %d %s, %v", request, status, answer, err)
		}
	}
}

// TestReplacingStaysWithinTheLimit checks that concurrent replacements do not use more disk space than the limit of the
// run and one replaced file.
func TestReplacingStaysWithinTheLimit(t *testing.T) {
	const limit = 4 << 20
	s, store := attacked(t, Limits{RunBytes: limit}, nil)
	var most atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var watching, attack sync.WaitGroup
	watching.Go(func() {
		for ctx.Err() == nil {
			most.Store(max(most.Load(), onDisk(store.dir)))
			time.Sleep(time.Millisecond)
		}
	})
	var refused atomic.Int64
	for i := range 12 {
		attack.Go(func() {
			// The body has no length, so that the limit does not apply to the announced size.
			body := io.LimitReader(endless{}, 1<<30)
			status, answer, err := send(ctx, s, http.MethodPut,
				fmt.Sprintf("/v1/runs/ns/r1/files/histograms/%d?replace=1", i),
				body)
			if status != http.StatusRequestEntityTooLarge && err == nil {
				t.Errorf("%d %s", status, answer)
			}
			refused.Add(1)
		})
	}
	attack.Wait()
	stop()
	watching.Wait()
	if n := most.Load(); n > limit+limit/4 {
		t.Errorf("%d bytes were on disk, the limit is %d", n, limit)
	}
	if n := onDisk(store.dir); n > 0 || refused.Load() != 12 {
		t.Errorf("%d bytes are left; %d were refused", n, refused.Load())
	}
	status, answer, err := send(t.Context(), s, http.MethodPut, "/v1/runs/ns/r1/files/run.json?replace=1",
		strings.NewReader(`{}`))
	if err != nil || status != http.StatusNoContent {
		t.Errorf("the run takes nothing more: %d %s %v", status, answer, err)
	}
}

// TestAnnouncedBodies checks that a body with too large a Content-Length is rejected before it is sent.
func TestAnnouncedBodies(t *testing.T) {
	s, store := attacked(t, Limits{RunBytes: 1 << 20}, nil)
	for _, tt := range []struct {
		target string
		length int64
	}{
		{"PUT /files/histograms/x?replace=1", 2 << 20}, {"PUT /files/log.jsonl?offset=0", 2 << 20},
		{"PUT /files/log.jsonl?offset=0", maxChunk + 1},
		{"PUT /files/run.json?replace=1", maxRunFile + 1}, {"POST /close", maxManifest + 1},
	} {
		if tt.target == "POST /close" {
			if _, _, err := send(t.Context(), s, http.MethodPut, "/v1/runs/ns/r1/files/log.jsonl?offset=0",
				strings.NewReader("x")); err != nil {
				t.Fatal(err)
			}
		}
		method, what, _ := strings.Cut(tt.target, " ")
		status, answer := announce(t, s, method, "/v1/runs/ns/r1"+what, tt.length)
		if status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s of %d bytes: %d %s", tt.target, tt.length, status, answer)
		}
	}
	if n := onDisk(store.dir); n > 1 {
		t.Errorf("%d bytes were written", n)
	}
}

// announce sends the header of a request without a body.
func announce(t *testing.T, s *httptest.Server, method, target string, length int64) (int, string) {
	t.Helper()
	conn := dial(t, s)
	fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: h\r\nContent-Length: %d\r\n\r\n", method, target, length)
	return answerOf(t, conn)
}

func dial(t *testing.T, s *httptest.Server) net.Conn {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", strings.TrimPrefix(s.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	return conn
}

func answerOf(t *testing.T, conn net.Conn) (int, string) {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatalf("no answer: %v", err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestSlowBodiesConcernTheirNamespace checks that slow bodies that occupy all slots of one namespace do not delay
// requests of other namespaces.
func TestSlowBodiesConcernTheirNamespace(t *testing.T) {
	s, _ := attacked(t, Limits{}, func(h *Handler) { h.Pace = Pace{Grace: time.Hour, Rate: 1} })
	for i := range 3 * slotsPerNamespace {
		conn := dial(t, s)
		fmt.Fprintf(conn, "PUT /v1/runs/slow/r%d/files/log.jsonl?offset=0 HTTP/1.1\r\nHost: h\r\n", i)
		fmt.Fprint(conn, "Content-Length: 1000000\r\n\r\nx")
	}
	done := make(chan error, 1)
	go func() {
		for i := range 20 {
			status, answer, err := send(t.Context(), s, http.MethodPut,
				fmt.Sprintf("/v1/runs/quick/r1/files/log.jsonl?offset=%d", i), strings.NewReader("x"))
			if err != nil || status != http.StatusOK {
				done <- fmt.Errorf("%d %s: %w", status, answer, err)
				return
			}
		}
		done <- nil
	}()
	select {
	case err := <-done: // the slow requests are still open: their deadline is an hour
		if err != nil {
			t.Error(err)
		}
	case <-time.After(slotWait):
		t.Error("another namespace waits")
	}
}

// TestTricklingEnds checks that a body has a fixed deadline, which slow progress does not extend. This includes bodies
// of rejected requests.
func TestTricklingEnds(t *testing.T) {
	s, _ := attacked(t, Limits{}, func(h *Handler) { h.Pace = Pace{Grace: 500 * time.Millisecond, Rate: 64 << 10} })
	denied, _ := attacked(t, Limits{}, func(h *Handler) {
		h.Pace, h.Auth = Pace{Grace: 500 * time.Millisecond, Rate: 64 << 10}, Token("t")
	})
	for name, tt := range map[string]struct {
		s              *httptest.Server
		method, target string
		status         int
	}{
		"append":      {s, "PUT", "/v1/runs/ns/r1/files/log.jsonl?offset=0", http.StatusRequestTimeout},
		"replace":     {s, "PUT", "/v1/runs/ns/r1/files/run.json?replace=1", http.StatusRequestTimeout},
		"not allowed": {denied, "PUT", "/v1/runs/ns/r1/files/log.jsonl?offset=0", http.StatusUnauthorized},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn := dial(t, tt.s)
			fmt.Fprintf(conn, "%s %s HTTP/1.1\r\nHost: h\r\nContent-Length: 100000\r\n\r\n", tt.method, tt.target)
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				for { // until the server closes the connection, long before the deadline set by dial
					if _, err := conn.Write([]byte(" ")); err != nil {
						return
					}
					time.Sleep(20 * time.Millisecond)
				}
			}()
			if status, answer := answerOf(t, conn); status != tt.status {
				t.Errorf("%d %s", status, answer)
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Error("the connection stays")
			}
		})
	}
	if _, _, err := send(t.Context(), s, "POST", "/v1/runs/ns/r1/lost", nil); err != nil {
		t.Error(err)
	}
}

// TestDeadlineEndsWithTheBody checks that the work after a body may take longer than the deadline of the body.
func TestDeadlineEndsWithTheBody(t *testing.T) {
	h := &Handler{Pace: Pace{Grace: 200 * time.Millisecond, Rate: 1 << 20}}
	s := httptest.NewServer(h.paced(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, h.body(w, r))
		select {
		case <-r.Context().Done():
			err = errors.Join(err, errors.New("the request was ended"))
		case <-time.After(600 * time.Millisecond):
		}
		fmt.Fprint(w, err)
	})))
	defer s.Close()
	if _, answer, err := send(t.Context(), s, http.MethodPost, "/", strings.NewReader("body")); err != nil ||
		answer != "<nil>" {
		t.Errorf("%q, %v", answer, err)
	}
}

// TestPagesOfOthers checks that a client that does not read its page does not block others, and that a page whose
// rendering hangs blocks only its own namespace. Pages are rendered in turn but sent concurrently.
func TestPagesOfOthers(t *testing.T) {
	hangs := make(chan struct{})
	defer close(hangs)
	s, store := attacked(t, Limits{}, func(h *Handler) {
		h.Render = func(ctx context.Context, _, dir string, w io.Writer) error {
			if strings.Contains(dir, "/hangs/") {
				select {
				case <-hangs:
				case <-ctx.Done():
				}
				return ctx.Err()
			}
			_, err := w.Write(make([]byte, 32<<20)) // exceeds the buffers of the sockets
			return err
		}
	})
	for _, ns := range []string{"unread", "hangs", "quick"} {
		if err := store.Replace(ns, "r1", runFile, strings.NewReader(`{"runID":"r1","name":"n"}`), -1); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * maxPages {
		fmt.Fprint(dial(t, s), "GET /v1/runs/unread/r1/report HTTP/1.1\r\nHost: h\r\n\r\n")
		fmt.Fprint(dial(t, s), "GET /v1/runs/hangs/r1/report HTTP/1.1\r\nHost: h\r\n\r\n")
	}
	// Ends before the timeout of the hanging pages.
	ctx, cancel := context.WithTimeout(t.Context(), renderTimeout-10*time.Second)
	defer cancel()
	for range 3 {
		if status, answer, err := send(ctx, s, http.MethodGet, "/v1/runs/quick/r1/report", nil); err != nil ||
			status != http.StatusOK {
			t.Fatalf("%d %.100s %v", status, answer, err)
		}
	}
}

// TestFilesThatAreReadWhole checks that files that are read into memory have a size limit.
func TestFilesThatAreReadWhole(t *testing.T) {
	s, store := attacked(t, Limits{}, nil)
	for name, tt := range map[string]struct{ target, body string }{
		"large":          {"/files/run.json?replace=1", `{"name":"` + strings.Repeat("x", maxRunFile) + `"}`},
		"many values":    {"/files/run.json?replace=1", `{"verdicts":[` + strings.Repeat("{},", maxRunValues) + `{}]}`},
		"large document": {"/files/environment.json?replace=1", strings.Repeat(" ", maxDocument+1)},
	} {
		if status, answer, err := send(t.Context(), s, http.MethodPut, "/v1/runs/ns/r1"+tt.target,
			io.MultiReader(strings.NewReader(tt.body))); err == nil && status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	if n := onDisk(store.dir); n > 0 {
		t.Errorf("%d bytes are left", n)
	}
	// The limit also applies to a file that exists already.
	if err := os.WriteFile(filepath.Join(store.path("ns", "r1"), runFile), bytes.Repeat([]byte(" "), maxRunFile+1),
		0o644); err != nil {
		t.Fatal(err)
	}
	if status, answer, err := send(t.Context(), s, http.MethodGet, "/v1/runs", nil); err != nil ||
		status != http.StatusOK || !strings.Contains(answer, "too large") {
		t.Errorf("%d %s %v", status, answer, err)
	}
	if status, answer, err := send(t.Context(), s, http.MethodPost, "/v1/runs/ns/r1/lost", nil); err != nil ||
		status != http.StatusOK && !strings.Contains(answer, "too large") {
		t.Errorf("%d %s %v", status, answer, err)
	}
}

// TestHalfReceivedIsSwept checks that a service removes partially received files of a killed one.
func TestHalfReceivedIsSwept(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "ns", "r1", incomingDir)
	if err := errors.Join(os.MkdirAll(left, 0o755), os.WriteFile(filepath.Join(left, "ABC"), make([]byte, 1000),
		0o644)); err != nil {
		t.Fatal(err)
	}
	// A separate file system has lost+found, which only root can read.
	if err := os.Mkdir(filepath.Join(dir, "lost+found"), 0); err != nil {
		t.Fatal(err)
	}
	store, err := OpenStore(dir, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	if n := onDisk(dir); n > 0 {
		t.Errorf("%d bytes are left", n)
	}
	if second, err := OpenStore(dir, Limits{}); err == nil {
		_ = second.Close()
		t.Error("two services have one directory")
	}
}
