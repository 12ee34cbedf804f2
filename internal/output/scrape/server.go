package scrape

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Server serves metrics at /metrics of an address.
type Server struct {
	http     http.Server
	listener net.Listener
	serving  sync.WaitGroup
}

// Listen starts to serve metrics at HOST:PORT.
func Listen(address string, m *Metrics) (*Server, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve metrics at %s: %w", address, err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{}))
	s := &Server{http: http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}, listener: l}
	s.serving.Go(func() { _ = s.http.Serve(l) }) // always returns an error, in the end that of Close
	return s, nil
}

// Address is where the metrics are served.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.http.Close()
	s.serving.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		err = nil
	}
	return err
}
