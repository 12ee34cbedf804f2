// Package promquery asks a Prometheus server, or one with its HTTP API, for the values of queries at an interval.
package promquery

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheus "github.com/prometheus/client_golang/api/prometheus/v1"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Limits of what a server may take and answer.
const (
	// Timeout of one request. Instants meanwhile are missed.
	Timeout = 5 * time.Second
	// MaxSeries is the number of series of one query that are kept in a run.
	MaxSeries = 100
	maxAnswer = 4 << 20
)

// Config is a server and what it is asked for.
type Config struct {
	URL string
	// Authorization is the header of that name, and RawQuery is added to the URL; either may be empty.
	Authorization, RawQuery string
	Queries                 []Query
	Interval                time.Duration
	Timeout                 time.Duration // of one request; 0: Timeout
}

// Query is an expression and its name.
type Query struct{ Name, Expr string }

// Poller asks a server. Create it with New.
type Poller struct {
	config Config
	client api.Client
	server prometheus.API
}

// New returns a poller. The error is one of the URL.
func New(c Config) (*Poller, error) {
	if c.Timeout == 0 {
		c.Timeout = Timeout
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	client, err := api.NewClient(api.Config{Address: c.URL, Client: &http.Client{
		Transport: &signed{transport, c.Authorization, c.RawQuery},
		// A redirect could lead the credentials to another server.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}})
	if err != nil {
		return nil, fmt.Errorf("prometheus: %w", err)
	}
	return &Poller{config: c, client: client, server: prometheus.NewAPI(client)}, nil
}

// Poll asks each query at each interval until ctx ends, and returns then. Queries wait for no other; one whose request
// is not over in time misses instants. keep is called from one goroutine at a time and must not block.
func (p *Poller) Poll(ctx context.Context, clock op.Clock, keep func(op.QueryReading)) {
	var mu sync.Mutex
	var all sync.WaitGroup
	start := clock.Now()
	for _, q := range p.config.Queries {
		s := &stream{Poller: p, Query: q, clock: clock, ids: map[string]int{}, keep: func(r op.QueryReading) {
			mu.Lock()
			defer mu.Unlock()
			keep(r)
		}}
		all.Go(func() { s.poll(ctx, start) })
	}
	all.Wait()
	if c, ok := p.client.(api.CloseIdler); ok {
		c.CloseIdleConnections()
	}
}

// stream asks one query.
type stream struct {
	*Poller
	Query
	clock op.Clock
	keep  func(op.QueryReading)
	ids   map[string]int // numbers of series, by their labels
}

func (s *stream) poll(ctx context.Context, start op.Time) {
	every := op.Time(s.config.Interval)
	for at := start; s.sleep(ctx, at); at += every {
		r, ok := s.ask(ctx)
		if !ok {
			return // the run has ended meanwhile
		}
		s.keep(r)
		for s.clock.Now() >= at+2*every {
			at += every
			s.keep(op.QueryReading{Query: s.Name, At: at, Problem: op.QueryMissed})
		}
	}
}

// sleep waits until an instant; false: ctx has ended.
func (s *stream) sleep(ctx context.Context, at op.Time) bool {
	timer := time.NewTimer(time.Until(s.clock.At(at)))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return ctx.Err() == nil
	}
}

// ask makes one request. It is false if ctx ended before the answer.
func (s *stream) ask(ctx context.Context) (op.QueryReading, bool) {
	limited, cancel := context.WithTimeout(ctx, s.config.Timeout)
	defer cancel()
	began := s.clock.Now()
	value, _, err := s.server.Query(limited, s.Expr, time.Time{}, prometheus.WithTimeout(s.config.Timeout))
	half := (s.clock.Now() - began) / 2
	r := op.QueryReading{Query: s.Name, At: began + half, WithinNanos: int64(half)}
	if err != nil {
		r.Problem, r.Message = problemOf(err, limited.Err() != nil), bounded.Text(err.Error(), maxMessage)
		return r, ctx.Err() == nil
	}
	s.read(value, &r)
	return r, true
}
