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
	"golang.org/x/net/netutil"

	"github.com/cnsbench/cnsbench/internal/bundle/server"
)

// What clients of the metrics may take. Others than Prometheus may reach the port, and all of it is memory and time of
// the machine that measures.
const (
	metricsTimeout = 10 * time.Second // for a request, and for its answer
	maxConnections = 16
)

// Server serves metrics at /metrics of an address.
type Server struct {
	http     *http.Server
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
	s := &Server{http: server.Bounded(mux), listener: l}
	if a, ok := l.Addr().(*net.TCPAddr); ok && a.IP.IsLoopback() {
		s.http.Handler = server.Guard(mux, nil)
	}
	s.http.ReadTimeout, s.http.WriteTimeout = metricsTimeout, metricsTimeout
	s.serving.Go(func() { _ = s.http.Serve(netutil.LimitListener(l, maxConnections)) }) // always returns an error, in the end that of Close
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
