package output

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/cnsbench/cnsbench/internal/analysis/summary"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// store is a receiver of remote write that keeps bodies in order; answer gives the status of a request.
type store struct {
	*httptest.Server
	mu     sync.Mutex
	bodies []string
	answer func(body string) int
}

func newStore(t *testing.T, answer func(body string) int) *store {
	s := &store{answer: answer}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Header.Get("Content-Encoding") != "snappy" || r.Header.Get("Content-Type") != "application/x-protobuf" ||
			r.Header.Get("X-Prometheus-Remote-Write-Version") != "0.1.0" {
			http.Error(w, "not remote write", http.StatusUnsupportedMediaType)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		status := s.answer(string(body))
		if status == http.StatusNoContent {
			s.bodies = append(s.bodies, string(body))
		}
		w.WriteHeader(status)
	}))
	t.Cleanup(s.Close)
	return s
}

// written is a bundle with requests 1 to n of the output "p".
func written(t *testing.T, n int) (*bundle.Bundle, []string) {
	t.Helper()
	w, err := bundle.Create(filepath.Join(t.TempDir(), "b"), bundle.Run{ID: "r", BarrierAt: op.Never, EndedAt: op.Never})
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for i := range n {
		want = append(want, fmt.Sprint("request ", i+1))
		w.RemoteWrite("p", []byte(want[i]))
	}
	if err := w.Close(func(r *bundle.Run) { r.State = bundle.Complete }); err != nil {
		t.Fatal(err)
	}
	b, err := bundle.Open(w.Dir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(OutboxOf(outboxAt(t))) }) // for -count
	return b, want
}

// TestRemoteWriteOutage: after an outage that is longer than the queue, all requests arrive once and in order.
func TestRemoteWriteOutage(t *testing.T) {
	b, want := written(t, queuedMetrics+50)
	first := []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusNoContent}
	ended := make(chan struct{})
	s := newStore(t, func(body string) int {
		select {
		case <-ended:
			return http.StatusNoContent
		default:
		}
		if body == "request 1" {
			status := first[0]
			first = first[1:]
			return status
		}
		return http.StatusServiceUnavailable
	})
	sender := start(t, b, Target{Name: "p", URL: s.URL, RemoteWrite: true, Actions: map[string]bool{"named": true}})
	for i, body := range want {
		sender.Op(op.Op{ID: int64(i + 1), Action: "named"}) // not sent, and its number settles no request
		sender.RemoteWrite("p", []byte(body))
		sender.RemoteWrite("another", []byte(body))
	}
	sender.Op(op.Op{ID: 1, Action: "v"})
	close(ended)
	stats, err := sender.Finish(t.Context(), b, &summary.Summary{})
	if err != nil {
		t.Fatal(err)
	}
	if got := stats[0]; got.Delivered != int64(len(want)) || got.Pending+got.Refused != 0 {
		t.Errorf("%+v", got)
	}
	if !slices.Equal(s.bodies, want) {
		t.Errorf("%d requests, want %d in order: %q", len(s.bodies), len(want), s.bodies)
	}
}

// TestRemoteWriteRefused: a refusal is counted, and the requests behind it are sent.
func TestRemoteWriteRefused(t *testing.T) {
	b, want := written(t, 5)
	s := newStore(t, func(body string) int {
		if body == "request 3" {
			return http.StatusBadRequest
		}
		return http.StatusNoContent
	})
	stats, err := start(t, b, Target{Name: "p", URL: s.URL, RemoteWrite: true}).Finish(t.Context(), b, &summary.Summary{})
	if err != nil {
		t.Fatal(err)
	}
	if got := stats[0]; got.Delivered != 4 || got.Refused != 1 || !strings.Contains(got.Error, "400") {
		t.Errorf("%+v", got)
	}
	if want = slices.Delete(want, 2, 3); !slices.Equal(s.bodies, want) {
		t.Errorf("%q, want %q", s.bodies, want)
	}
}

// TestRemoteWriteLater: what a run did not send is sent later, and nothing that was acknowledged twice.
func TestRemoteWriteLater(t *testing.T) {
	b, want := written(t, 9)
	s := newStore(t, func(body string) int {
		if body == "request 4" {
			return http.StatusServiceUnavailable
		}
		return http.StatusNoContent
	})
	to := Target{Name: "p", URL: s.URL, RemoteWrite: true}
	stats := finishWhen(t, start(t, b, to), b, &summary.Summary{}, []int64{3}, []int64{1})
	if got := stats[0]; got.Delivered != 3 || got.Pending != 6 || got.Retried == 0 {
		t.Errorf("%+v", got)
	}
	s.mu.Lock()
	s.answer = func(string) int { return http.StatusNoContent }
	s.mu.Unlock()
	if _, err := start(t, b, to).Finish(t.Context(), b, &summary.Summary{}); err != nil {
		t.Fatal(err)
	}
	// The request that was in progress at the end may come twice: Prometheus stores equal samples once.
	if !slices.Equal(slices.Compact(s.bodies), want) {
		t.Errorf("%q, want %q", s.bodies, want)
	}
}
