package lease

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/core"
	"github.com/cnsbench/cnsbench/internal/engine/kubernetes/turns"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/owned"
	"github.com/cnsbench/cnsbench/test/apitest"
	"github.com/cnsbench/cnsbench/test/enginetest"
)

const leases = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/"

// queued is a Holder of a run of the driver d.example on an API server.
func queued(t *testing.T, s *apitest.Server, id string, q engine.Queue) *Holder {
	t.Helper()
	own := owned.New(id)
	own.Namespace, own.Server = "ns", s.URL
	r := core.New(core.Options{Config: &rest.Config{Host: s.URL}, Namespace: "ns", Identity: own})
	r.Session = engine.Session{RunID: id, Queue: q, Ledger: &enginetest.Ledger{}, Sink: engine.DiscardSink{},
		Needs: engine.Needs{Drivers: []string{"d.example"}}}
	r.Ctx = t.Context()
	if err := r.Connect(op.NewClock()); err != nil {
		t.Fatal(err)
	}
	return New(r)
}

// acquire returns the error of an Acquire that must end within the time.
func acquire(t *testing.T, h *Holder, within time.Duration) error {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), within, errors.New("it still waits"))
	defer cancel()
	return h.Acquire(ctx)
}

// TestFirst checks that a run gets a driver that no other run uses at once, whatever it does otherwise.
func TestFirst(t *testing.T) {
	t.Parallel()
	for _, policy := range []v1alpha1.QueuePolicy{v1alpha1.QueueWait, v1alpha1.QueueFail, v1alpha1.QueueShare} {
		for _, operated := range []bool{false, true} {
			s := apitest.Start(t)
			if operated {
				s.Add(t, "/api/v1/namespaces/ns/configmaps/"+turns.ConfigMap("aaaa"), `{}`)
			}
			h := queued(t, s, "aaaa", engine.Queue{Policy: policy, Limit: time.Minute, Operated: operated})
			if err := acquire(t, h, pollInterval/2); err != nil {
				t.Errorf("%s, operated %v: %v", policy, operated, err)
			}
			if got := s.Paths(); !slices.Contains(got, leases+"cnsbench-d.example") ||
				slices.Contains(got, leases+"cnsbench-d.example-aaaa") {
				t.Errorf("%s, operated %v: objects %v", policy, operated, got)
			}
			h.Stop()
		}
	}
}

// TestQueue checks that runs which wait get the driver one after the other, and what the others get.
func TestQueue(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t)
	wait := engine.Queue{Policy: v1alpha1.QueueWait, Limit: time.Minute}
	holder := queued(t, s, "aaaa", wait)
	if err := acquire(t, holder, pollInterval/2); err != nil {
		t.Fatal(err)
	}
	got := make(chan string)
	waiting := map[string]*Holder{"cccc": queued(t, s, "cccc", wait), "bbbb": queued(t, s, "bbbb", wait)}
	for _, id := range []string{"cccc", "bbbb"} {
		go func() {
			if err := waiting[id].Acquire(t.Context()); err != nil {
				t.Errorf("run %s: %v", id, err)
			}
			got <- id
		}()
		time.Sleep(1100 * time.Millisecond) // creation times are in seconds
	}
	short := queued(t, s, "dddd", engine.Queue{Policy: v1alpha1.QueueWait, Limit: time.Second})
	err := acquire(t, short, 10*time.Second)
	var coded *engine.Error
	if !errors.As(err, &coded) || coded.Code != "InUse" || !strings.Contains(err.Error(), "run aaaa") ||
		!strings.Contains(err.Error(), "place 3 in the queue after 1s") {
		t.Errorf("beyond its limit: %v", err)
	}
	share := queued(t, s, "eeee", engine.Queue{Policy: v1alpha1.QueueShare})
	if err := acquire(t, share, time.Second); err != nil || len(share.Findings()) != 1 {
		t.Errorf("shared: %v, findings %v", err, share.Findings())
	}
	share.Stop()
	for holder, next := holder, []string{"cccc", "bbbb"}; len(next) > 0; holder, next = waiting[next[0]], next[1:] {
		holder.Stop()
		s.Remove(leases + "cnsbench-d.example")
		if id := <-got; id != next[0] {
			t.Errorf("run %s has the driver, want %s", id, next[0])
		}
	}
	waiting["bbbb"].Stop()
	ticket := func(path string) bool { return strings.HasPrefix(path, leases+"cnsbench-d.example-") }
	if got := s.Paths(); slices.ContainsFunc(got, ticket) {
		t.Errorf("left: %v", got)
	}
}

// TestTurn checks that a run of an operator waits for its turn, even if no run of its namespace uses the driver.
func TestTurn(t *testing.T) {
	t.Parallel()
	s := apitest.Start(t)
	h := queued(t, s, "aaaa", engine.Queue{Policy: v1alpha1.QueueWait, Limit: time.Minute, Operated: true})
	done := make(chan error)
	go func() { done <- h.Acquire(t.Context()) }()
	time.Sleep(2 * pollInterval)
	if got := s.Paths(); !slices.Contains(got, leases+"cnsbench-d.example-aaaa") ||
		slices.Contains(got, leases+"cnsbench-d.example") {
		t.Errorf("waiting: objects %v", got)
	}
	s.Add(t, "/api/v1/namespaces/ns/configmaps/"+turns.ConfigMap("aaaa"), `{}`)
	if err := <-done; err != nil {
		t.Error(err)
	}
	h.Stop()
	if err := Release(t.Context(), h.run, h); err != nil {
		t.Error(err)
	}
	if got := s.Paths(); slices.ContainsFunc(got, func(p string) bool { return strings.HasPrefix(p, leases) }) {
		t.Errorf("left: %v", got)
	}
}
