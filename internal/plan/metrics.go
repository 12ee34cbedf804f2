package plan

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Metrics is the resolved spec.metrics.
type Metrics struct {
	Level    op.SampleLevel
	Interval time.Duration
	// MaxOverhead is the greatest share of a CPU that sampling may take; 0: no limit.
	MaxOverhead float64     `json:",omitempty"`
	Prometheus  *Prometheus `json:",omitempty"` // nil: no server is asked
}

// Prometheus is a server and its queries, in order of their names.
type Prometheus struct {
	URL     string
	Queries []PrometheusQuery
}

// PrometheusQuery is a named expression in PromQL.
type PrometheusQuery struct{ Name, Expr string }

// prometheusVariable is the beginning of the environment variables for the server of spec.metrics.prometheus.
const prometheusVariable = "CNSBENCH_PROMETHEUS"

// Bounds of the interval of samples. A shorter one would cost more than it shows.
const (
	minSampling = 100 * time.Millisecond
	maxSampling = time.Minute
)

// resolveMetrics resolves spec.metrics.
func resolveMetrics(g *graph) (out Metrics) {
	spec := g.spec.Metrics
	if spec == nil {
		return out // the schema sets a default
	}
	out.Level = op.SampleLevel(spec.Level)
	if spec.MaxOverhead != nil {
		out.MaxOverhead = spec.MaxOverhead.Value / 100
	}
	if spec.Interval != nil {
		out.Interval = spec.Interval.Duration.Duration
	}
	if out.Interval < minSampling || out.Interval > maxSampling {
		g.Fail("spec.metrics.interval", "such as 1s", "must be %v to %v", minSampling, maxSampling)
	}
	p := spec.Prometheus
	if p == nil {
		return out
	}
	const path = "spec.metrics.prometheus"
	checkURL(g.Report, path+".url", p.URL, prometheusVariable)
	checkCredentials(g.Report, path+".credentials", p.Credentials, g.in.Capabilities.Cluster, prometheusVariable)
	out.Prometheus = &Prometheus{URL: p.URL}
	for _, name := range slices.Sorted(maps.Keys(p.Queries)) {
		checkQueryName(g, path+".queries", name)
		out.Prometheus.Queries = append(out.Prometheus.Queries, PrometheusQuery{name, string(p.Queries[name])})
	}
	return out
}

// checkQueryName checks what the schema cannot of a key of a map.
func checkQueryName(g *graph, path, name string) {
	switch {
	case !queryName.MatchString(name):
		g.Fail(path, "such as iops", "invalid name %q of a query: want letters, digits, - and _, of which the first is a "+
			"letter, at most 63", name)
	case g.nodes[name] != nil:
		g.Fail(path, "choose another name", "query %q has the name of an action, so that value(%s) would be ambiguous", name,
			name)
	}
}

// queryName is the pattern of v1alpha1.Name.
var queryName = regexp.MustCompile(`^[A-Za-z]([-_A-Za-z0-9]{0,61}[A-Za-z0-9])?$`)

// queryNames are the names of the queries to Prometheus.
func queryNames(spec *v1alpha1.BenchmarkSpec) []string {
	if spec.Metrics == nil || spec.Metrics.Prometheus == nil {
		return []string{}
	}
	return slices.Sorted(maps.Keys(spec.Metrics.Prometheus.Queries))
}

// Sampling is what is read of workloads at the start of a run, and how often.
func (p *Plan) Sampling() op.Sampling {
	s := op.Sampling{Level: p.Metrics.Level, Interval: p.Metrics.Interval}
	if live := p.Live(); live > 0 {
		s.Interval = min(s.Interval, live)
	}
	return s
}

// LeastLevel is the level below which a run must not go: its conditions need samples.
func (p *Plan) LeastLevel() op.SampleLevel {
	if p.Live() > 0 {
		return op.SampleBasic
	}
	return op.SampleNone
}
