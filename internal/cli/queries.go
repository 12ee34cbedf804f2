package cli

import (
	"context"
	"os"
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/promquery"
)

// The environment variables with the secrets of the server of spec.metrics.prometheus.
const (
	prometheusAuthorization = "CNSBENCH_PROMETHEUS_AUTHORIZATION"
	prometheusQuery         = "CNSBENCH_PROMETHEUS_QUERY"
)

// queries asks the Prometheus server of the plan; nil: there is none. Its credentials are hidden in what is recorded
// from now on.
func (r *running) queries(ctx context.Context) (func(context.Context, func(op.QueryReading)), error) {
	p := r.plan.Metrics.Prometheus
	if p == nil {
		return nil, nil
	}
	c := promquery.Config{URL: p.URL, Interval: r.plan.Metrics.Interval, RawQuery: os.Getenv(prometheusQuery)}
	for _, q := range p.Queries {
		c.Queries = append(c.Queries, promquery.Query(q))
	}
	var err error
	c.Authorization, err = credentialReader{on: r.on}.authorization(ctx, "prometheus", prometheusAuthorization,
		r.plan.Benchmark.Spec.Metrics.Prometheus.Credentials)
	if err != nil {
		return nil, err
	}
	_, value, _ := strings.Cut(c.Authorization, " ")
	r.writer.Hide(c.Authorization, value, c.RawQuery)
	poller, err := promquery.New(c)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, keep func(op.QueryReading)) { poller.Poll(ctx, r.clock, keep) }, nil
}
