// Package scrape has the metrics of a run in progress for Prometheus: counts and latencies of operations, latencies of
// canary I/Os, and the counters of workloads. They are served to be scraped, or sampled as requests of remote write.
// docs/reference/outputs.md lists them.
package scrape

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cnsbench/cnsbench/internal/analysis/span"
	"github.com/cnsbench/cnsbench/internal/bundle"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Metrics of one run. Its methods are safe for concurrent use and do not wait for readers.
type Metrics struct {
	registry *prometheus.Registry

	ops                                *prometheus.CounterVec
	response, service, lateness, spans *prometheus.HistogramVec
	canary                             *prometheus.HistogramVec
	canaryErrors                       *prometheus.CounterVec
	samples                            *samples
}

// New returns the metrics of a run. Instances of workloads have the label "workload": Prometheus has a label "instance"
// of its own.
func New(r *bundle.Run) *Metrics {
	registry := prometheus.NewRegistry()
	of := prometheus.WrapRegistererWith(prometheus.Labels{"run": r.ID}, registry)
	histogram := func(name, help string, first float64, labels ...string) *prometheus.HistogramVec {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: "cnsbench", Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(first, 2, 22)}, labels)
		of.MustRegister(h)
		return h
	}
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		c := prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "cnsbench", Name: name, Help: help}, labels)
		of.MustRegister(c)
		return c
	}
	const millisecond = 1e-3 // to 2097 s
	m := &Metrics{registry: registry,
		ops: counter("operations_total", "Operations that have ended, or were dropped.", "action", "kind", "outcome"),
		response: histogram("operation_response_seconds",
			"Time of an operation from when it was due to its end.", millisecond, "action", "outcome"),
		service: histogram("operation_service_seconds",
			"Time of an operation from its start to its end.", millisecond, "action", "outcome"),
		lateness: histogram("operation_lateness_seconds",
			"How late the runner started an operation that was due.", 1e-5, "action"),
		spans: histogram("operation_span_seconds",
			"Time between two milestones of an operation, or of a call of the CSI driver.", millisecond, "action", "span"),
		canary: histogram("canary_response_seconds",
			"Time of a canary I/O from when it was due to its end.", 1e-5, "workload", "volume", "direction"),
		canaryErrors: counter("canary_errors_total", "Canary I/Os that failed.", "workload", "volume", "direction"),
		samples:      &samples{last: map[string]op.Sample{}},
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "cnsbench", Name: "run_info", Help: "The run in progress.",
		ConstLabels: prometheus.Labels{"benchmark": r.Name, "engine": r.Engine}})
	info.Set(1)
	of.MustRegister(info, m.samples)
	return m
}

// Op counts an operation that has ended.
func (m *Metrics) Op(o *op.Op) {
	m.ops.WithLabelValues(o.Action, string(o.Kind), string(o.Outcome)).Inc()
	if ns, ok := o.Response(); ok {
		m.response.WithLabelValues(o.Action, string(o.Outcome)).Observe(float64(ns) / 1e9)
	}
	if ns, ok := o.Service(); ok {
		m.service.WithLabelValues(o.Action, string(o.Outcome)).Observe(float64(ns) / 1e9)
	}
	if ns, ok := o.Lateness(); ok {
		m.lateness.WithLabelValues(o.Action).Observe(float64(ns) / 1e9)
	}
	for _, x := range span.Of(o) {
		m.spans.WithLabelValues(o.Action, x.Name).Observe(float64(x.Ns) / 1e9)
	}
}

// Canary counts canary I/Os of a volume.
func (m *Metrics) Canary(instance, volume string, ios []op.CanaryIO) {
	for _, io := range ios {
		direction := "read"
		if io.Write {
			direction = "write"
		}
		switch {
		case io.Errno != 0:
			m.canaryErrors.WithLabelValues(instance, volume, direction).Inc()
		case io.Ended.Known():
			m.canary.WithLabelValues(instance, volume, direction).Observe(float64(io.Ended-io.Intended) / 1e9)
		}
	}
}

// Sample keeps the counters of a workload instance.
func (m *Metrics) Sample(x op.Sample) { m.samples.keep(x) }

// samples are the last counters of each instance.
type samples struct {
	mu   sync.Mutex
	last map[string]op.Sample
}

func (s *samples) keep(x op.Sample) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[x.Instance] = x
}

var (
	instanceBytes = prometheus.NewDesc("cnsbench_workload_bytes_total",
		"Bytes that the processes of an instance have read and written.", []string{"workload", "direction"}, nil)
	instanceCalls = prometheus.NewDesc("cnsbench_workload_calls_total",
		"Read and write calls of the processes of an instance.", []string{"workload", "direction"}, nil)
	instanceCPU = prometheus.NewDesc("cnsbench_workload_cpu_seconds_total",
		"CPU time of the processes of an instance.", []string{"workload"}, nil)
	instanceMemory = prometheus.NewDesc("cnsbench_workload_resident_memory_bytes",
		"Resident memory of the processes of an instance.", []string{"workload"}, nil)
)

// Describe implements prometheus.Collector.
func (s *samples) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{instanceBytes, instanceCalls, instanceCPU, instanceMemory} {
		to <- d
	}
}

// Collect implements prometheus.Collector.
func (s *samples) Collect(to chan<- prometheus.Metric) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.last {
		for _, m := range []struct {
			desc   *prometheus.Desc
			kind   prometheus.ValueType
			value  float64
			labels []string
		}{
			{instanceBytes, prometheus.CounterValue, float64(x.ReadBytes), []string{x.Instance, "read"}},
			{instanceBytes, prometheus.CounterValue, float64(x.WriteBytes), []string{x.Instance, "write"}},
			{instanceCalls, prometheus.CounterValue, float64(x.ReadOps), []string{x.Instance, "read"}},
			{instanceCalls, prometheus.CounterValue, float64(x.WriteOps), []string{x.Instance, "write"}},
			{instanceCPU, prometheus.CounterValue, float64(x.CPUNanos) / 1e9, []string{x.Instance}},
			{instanceMemory, prometheus.GaugeValue, float64(x.RSSBytes), []string{x.Instance}},
		} {
			to <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value, m.labels...)
		}
	}
}
