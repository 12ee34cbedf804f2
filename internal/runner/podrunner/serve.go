package podrunner

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

const (
	// fetchTimeout is how long a runner's pod waits for the rest of its bundle to be fetched.
	fetchTimeout = 10 * time.Minute
	// silence is how long without a request ends a fetch: a command that follows a run sends several a second.
	silence = 5 * time.Second
)

// Serving serves the growing bundle of a run to the command that started the runner's pod.
type Serving struct {
	server *http.Server
	store  *server.Store
	ns, id string
	asks   asks
}

// asks counts requests. It is safe for concurrent use.
type asks struct {
	http.Handler
	mu   sync.Mutex
	now  int       // in progress
	last time.Time // when the last one ended
}

// ServeHTTP implements http.Handler.
func (a *asks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.count(1)
	defer a.count(-1)
	a.Handler.ServeHTTP(w, r)
}

func (a *asks) count(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.now, a.last = a.now+n, time.Now()
}

// over says that there was no request for a while.
func (a *asks) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now == 0 && time.Since(a.last) > silence
}

// Serve begins to serve a bundle, whose directory is <root>/<namespace>/<run>.
func Serve(ctx context.Context, address, dir string) (*Serving, error) {
	namespace, id := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
	store, err := server.OpenStore(filepath.Dir(filepath.Dir(dir)), server.Limits{})
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the bundle: %w", err)
	}
	h := &server.Handler{Store: store, Auth: server.ReadOnly{}}
	s := &Serving{store: store, ns: namespace, id: id, asks: asks{Handler: h.Serve()}}
	s.server = &http.Server{Handler: &s.asks, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// Finish marks the bundle as complete and waits until it was fetched: until ctx ends or, if the pod was asked to end
// before, until requests stop.
func (s *Serving) Finish(ctx context.Context, asked bool) error {
	if err := s.store.Finish(s.ns, s.id); err != nil {
		return err
	}
	s.asks.count(0) // the silence begins now
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	for asked && !s.asks.over() && ctx.Err() == nil {
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	if !asked {
		<-ctx.Done()
	}
	_ = s.server.Close()
	return s.store.Close()
}
