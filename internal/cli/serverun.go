package cli

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/cnsbench/cnsbench/internal/results"
)

// fetchWithin is how long a runner's pod waits for somebody to fetch what is
// left of its bundle.
const fetchWithin = 10 * time.Minute

// serving offers the bundle of a run that goes on, to whoever has started the
// runner's pod.
type serving struct {
	server *http.Server
	store  *results.Store
	ns, id string
}

// serve begins to serve the bundle, whose directory is <root>/<namespace>/<run>.
func serve(ctx context.Context, address, dir string) (*serving, error) {
	namespace, id := filepath.Base(filepath.Dir(dir)), filepath.Base(dir)
	store, err := results.OpenStore(filepath.Dir(filepath.Dir(dir)), results.Limits{})
	if err != nil {
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve the bundle: %w", err)
	}
	h := &results.Handler{Store: store, Auth: results.Anyone{}}
	s := &serving{server: &http.Server{Handler: h.Serve(), ReadHeaderTimeout: 10 * time.Second}, store: store, ns: namespace, id: id}
	go func() { _ = s.server.Serve(listener) }()
	return s, nil
}

// finish says that the bundle is complete, and waits until it was fetched: until
// the pod is asked to end.
func (s *serving) finish(ctx context.Context) error {
	if err := s.store.Finish(s.ns, s.id); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case <-time.After(fetchWithin):
	}
	_ = s.server.Close()
	return s.store.Close()
}
