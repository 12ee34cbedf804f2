package parser

import "github.com/cnsbench/cnsbench/internal/metric"

// declare declares a metric that is no latency.
func declare(name, unit string, kind metric.Kind, better metric.Direction, meaning string) metric.Declaration {
	return metric.Declaration{Name: name, Unit: unit, Traits: metric.Traits{Kind: kind, Better: better}, Meaning: meaning}
}

// latencyOf declares the latency of an operation.
func latencyOf(operation, meaning string) metric.Declaration {
	return metric.Declaration{Name: operation, Unit: metric.Nanoseconds,
		Traits: metric.Traits{Kind: metric.Distribution, Better: metric.Lower}, Meaning: meaning}
}
