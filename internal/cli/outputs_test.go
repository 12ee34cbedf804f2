package cli

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/output"
)

// TestOutputsHaveNoSecrets: the document of an op that is sent during the run has the message of the bundle.
func TestOutputsHaveNoSecrets(t *testing.T) {
	t.Parallel()
	bodies := make(chan string, 8)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies <- string(body)
	}))
	defer server.Close()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "b"), bundle.Run{ID: "r", BarrierAt: op.Never, EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = w.Close(func(r *bundle.Run) { r.State = bundle.Complete }) }()
	w.Hide("hunter2-of-the-run")
	sender, err := output.Start(t.Context(), w.Dir(), bundle.Run{ID: "r"},
		[]output.Target{{Name: "o", URL: server.URL, Actions: map[string]bool{"a": true}}}, output.Options{})
	if err != nil {
		t.Fatal(err)
	}
	o := &outgoing{w, sender}
	o.Op(op.Op{ID: 1, Action: "a", Outcome: op.Error, Message: "password=opensesame: hunter2-of-the-run is wrong"})
	deadline := time.After(time.Minute)
	for {
		select {
		case body := <-bodies:
			if strings.Contains(body, "opensesame") || strings.Contains(body, "hunter2") {
				t.Fatalf("a document has a secret: %s", body)
			}
			if strings.Contains(body, `"kind":"op"`) {
				if !strings.Contains(body, `"message":"password=*** *** is wrong"`) {
					t.Errorf("another message: %s", body)
				}
				return
			}
		case <-deadline:
			t.Fatal("no document of the op arrived")
		}
	}
}
