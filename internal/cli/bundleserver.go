package cli

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

// fetchWithin is how long a runner's pod waits for somebody to fetch what is
// left of its bundle.
const fetchWithin = 10 * time.Minute

// silence is after how long without a request nobody fetches any more: whoever
// follows a run asks several times a second.
const silence = 5 * time.Second

// serving offers the bundle of a run that goes on, to whoever has started the
// runner's pod.
type serving struct {
	server *http.Server
	store  *server.Store
	ns, id string
	asks   asks
}

// asks watches over requests. It is safe for concurrent use.
type asks struct {
	http.Handler
	mu   sync.Mutex
	now  int       // under way
	last time.Time // when the last one ended
}

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

// over says that nobody has asked for a while.
func (a *asks) over() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.now == 0 && time.Since(a.last) > silence
}

// serveBundle begins to serve the bundle, whose directory is <root>/<namespace>/<run>.
func serveBundle(ctx context.Context, address, dir string) (*serving, error) {
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
	s := &serving{store: store, ns: namespace, id: id, asks: asks{Handler: h.Serve()}}
	s.server = &http.Server{Handler: &s.asks, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// finish says that the bundle is complete, and waits until it was fetched: until
// the pod is asked to end or, where it was asked before, until nobody asks any more.
func (s *serving) finish(ctx context.Context, asked bool) error {
	if err := s.store.Finish(s.ns, s.id); err != nil {
		return err
	}
	s.asks.count(0) // from now on
	ctx, cancel := context.WithTimeout(ctx, fetchWithin)
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
