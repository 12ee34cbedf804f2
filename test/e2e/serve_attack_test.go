package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// peak returns the peak resident memory of a process in bytes.
func (l *live) peak() int64 {
	l.b.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", l.cmd.Process.Pid))
	if err != nil {
		l.b.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	number, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kb, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		l.b.Fatal(err)
	}
	return kb << 10
}

// sparse creates a file of zeros that uses no disk space.
func (b *box) sparse(name string, size int64) {
	b.Helper()
	f, err := os.Create(b.in(name))
	if err == nil {
		err = errors.Join(f.Truncate(size), f.Close())
	}
	if err != nil {
		b.Fatal(err)
	}
}

// TestResultsServiceIsAttacked checks that attacks by unauthenticated clients and by one runner do
// not raise the memory of the results service, which answers other clients meanwhile.
func TestResultsServiceIsAttacked(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	at := freePort(t)
	// An older service accepted these: a huge run.json, a bundle that takes far more memory than
	// its text, and a partly received file.
	large, swollen, half := "results/bad/large", "results/bad/swollen", "results/bad/half/.incoming"
	for _, dir := range []string{large, swollen, half} {
		if err := os.MkdirAll(b.in(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.sparse(large+"/run.json", 300<<20)
	b.sparse(half+"/XYZ", 1<<20)
	run := `{"format":1,"runID":"swollen","name":"n","state":"running","engine":"local","endedAt":null,"barrierAt":null,` +
		`"source":{"file":"","text":""},"verdicts":[`
	b.write(swollen+"/run.json", run+strings.Repeat("{},", 7<<20/3-100)+"{}]}")
	s := b.start(b.cnsbench(), "serve", "--dir", b.in("results"), "--listen", at, "--auth", "token", "--token-file",
		b.private("token", "secret"))
	s.reaches("results of")
	if b.has(half + "/XYZ") {
		t.Error("what was half received is still there")
	}
	ask := func(token, method, target string, body io.Reader) (int, string) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, method, "http://"+at+"/v1/runs"+target, body)
		if err != nil {
			t.Error(err)
			return 0, ""
		}
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			return 0, err.Error() // rejected in mid-body
		}
		defer resp.Body.Close()
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp.StatusCode, string(text)
	}
	before := s.peak()
	var attack sync.WaitGroup
	for range 3 {
		attack.Go(func() {
			for _, request := range []string{"PUT /bad/large/files/log.jsonl?offset=0", "GET /bad/large",
				"GET /bad/large/report", "GET "} {
				method, target, _ := strings.Cut(request, " ")
				if status, text := ask("wrong", method, target, nil); status != http.StatusUnauthorized {
					t.Errorf("unknown, %s: %d %s", request, status, text)
				}
			}
			for _, request := range []string{"GET /bad/large", "GET /bad/large/summary", "GET /bad/swollen/report",
				"POST /bad/large/lost"} {
				method, target, _ := strings.Cut(request, " ")
				if status, text := ask("secret", method, target, nil); status == 0 {
					t.Errorf("known, %s: %s", request, text)
				}
			}
			if status, _ := ask("secret", "PUT", "/bad/new/files/run.json?replace=1", io.LimitReader(zeros{},
				300<<20)); status >= 200 && status < 300 {
				t.Errorf("a run.json of 300 MiB: %d", status)
			}
		})
	}
	// The service answers other clients meanwhile.
	if status, text := ask("secret", "PUT", "/good/r1/files/log.jsonl?offset=0",
		strings.NewReader("x")); status != http.StatusOK {
		t.Errorf("another namespace: %d %s", status, text)
	}
	attack.Wait()
	if after := s.peak(); after > before+192<<20 {
		t.Errorf("the service took %d MiB at its peak, %d MiB before", after>>20, before>>20)
	}
	if _, err := os.Stat(b.in("results/bad/new/run.json")); err == nil {
		t.Error("the run.json of 300 MiB is kept")
	}
	if left, _ := filepath.Glob(b.in("results/bad/*/.incoming/*")); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	s.signal(os.Interrupt)
	if r := s.wait(); r.code != 0 {
		t.Errorf("%v", r)
	}
}

// TestResultsServiceSweeps checks that a service that was killed while it received a file removes
// the partial file at its next start.
func TestResultsServiceSweeps(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	at := freePort(t)
	args := []string{"serve", "--dir", b.in("results"), "--listen", at}
	s := b.start(b.cnsbench(), args...)
	s.reaches("results of")
	body, sender := io.Pipe()
	defer sender.Close()
	var sending sync.WaitGroup
	sending.Go(func() {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
			"http://"+at+"/v1/runs/ns/r1/files/histograms/x?replace=1", body)
		if err != nil {
			t.Error(err)
			return
		}
		if resp, err := http.DefaultClient.Do(req); err == nil { // the service is killed
			resp.Body.Close()
			t.Errorf("%s", resp.Status)
		}
	})
	half := func() []string {
		found, _ := filepath.Glob(b.in("results/ns/r1/.incoming/*"))
		return found
	}
	if _, err := sender.Write(make([]byte, 1<<20)); err != nil {
		t.Fatal(err)
	}
	s.until("a part has come", func() bool {
		for _, name := range half() {
			if info, err := os.Stat(name); err == nil && info.Size() > 0 {
				return true
			}
		}
		return false
	})
	s.kill()
	_ = sender.CloseWithError(io.ErrUnexpectedEOF) // else the client waits for more data to send
	sending.Wait()
	if len(half()) == 0 {
		t.Fatal("nothing was half received")
	}
	s = b.start(b.cnsbench(), append(args, "--allow-host", "friend.example")...)
	s.reaches("results of")
	if left := half(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	// Requests that a foreign page sends from a browser on this host are rejected.
	for _, tt := range []struct {
		host, origin string
		want         int
	}{
		{at, "", http.StatusOK}, {"localhost", "", http.StatusOK}, {at, "http://" + at, http.StatusOK},
		{"evil.example", "", http.StatusForbidden}, {"evil.example:80", "http://evil.example", http.StatusForbidden},
		{at, "http://evil.example", http.StatusForbidden}, {at, "null", http.StatusForbidden},
		{"friend.example:8080", "http://friend.example:8080", http.StatusOK},
	} {
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			req, err := http.NewRequestWithContext(t.Context(), method, "http://"+at+"/v1/runs/none/none/files", nil)
			if err != nil {
				t.Fatal(err)
			}
			if req.Host = tt.host; tt.origin != "" {
				req.Header.Set("Origin", tt.origin)
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if refused := resp.StatusCode == http.StatusForbidden; refused != (tt.want == http.StatusForbidden) {
				t.Errorf("%s, host %q, origin %q: %s", method, tt.host, tt.origin, resp.Status)
			}
		}
	}
	// Two services on one directory would not know of each other, so the second one is rejected.
	r := b.run("serve", "--dir", b.in("results"), "--listen", freePort(t)).wants(t, 2)
	if !strings.Contains(r.stderr, "in use by another results service") {
		t.Errorf("%v", r)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) {
	clear(b)
	return len(b), nil
}
