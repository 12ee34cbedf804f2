package operator

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestResultsOverHTTP(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var lost string
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/runs/ns/good/files/progress.json", func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who?", http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, `{"runID":"good","phase":"running","ops":{"ok":3,"error":1}}`)
	})
	mux.HandleFunc("GET /v1/runs/ns/broken/files/progress.json",
		func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{") })
	mux.HandleFunc("GET /v1/runs/ns/ill/files/progress.json", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "disk full", http.StatusInsufficientStorage)
	})
	mux.HandleFunc("POST /v1/runs/ns/good/lost", func(_ http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		lost = string(b)
	})
	server := httptest.NewServer(mux)
	defer server.Close()
	h := &HTTPResults{URL: server.URL + "/", TokenFile: token, Client: server.Client()}

	p, err := h.Progress(t.Context(), "ns", "good")
	if err != nil || p.Phase != "running" || opCounts(p.Ops).Failed != 1 || opCounts(p.Ops).Total != 4 {
		t.Errorf("%+v, %v", p, err)
	}
	if p, err := h.Progress(t.Context(), "ns", "unknown"); p != nil || err != nil {
		t.Errorf("a run that has not said anything: %+v, %v", p, err)
	}
	for run, want := range map[string]string{"broken": "unexpected end", "ill": "HTTP 507: disk full"} {
		if _, err := h.Progress(t.Context(), "ns", run); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", run, err)
		}
	}
	if err := h.Lost(t.Context(), "ns", "good", "out of memory"); err != nil || lost != `{"reason":"out of memory"}` {
		t.Errorf("%s, %v", lost, err)
	}
	if err := h.Lost(t.Context(), "ns", "unknown", "x"); err != nil {
		t.Errorf("a run that never sent anything: %v", err)
	}
	server.Close()
	if _, err := h.Progress(t.Context(), "ns", "good"); err == nil {
		t.Error("no error without a server")
	}
}
