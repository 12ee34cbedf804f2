package parser

import (
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// declare declares a metric that is no latency.
func declare(name, unit string, kind metric.Kind, better metric.Direction, meaning string) metric.Declaration {
	return metric.Declaration{Name: name, Unit: unit, Traits: metric.Traits{Kind: kind, Better: better}, Meaning: meaning}
}

// rateOf declares operations per second.
func rateOf(name, meaning string) metric.Declaration {
	return declare(name, metric.PerSecond, metric.Rate, metric.Higher, meaning)
}

// bandwidthOf declares bytes per second.
func bandwidthOf(name, meaning string) metric.Declaration {
	return declare(name, metric.BytesPerSecond, metric.Rate, metric.Higher, meaning)
}

// countOf declares a number of which neither more nor less is better.
func countOf(name, meaning string) metric.Declaration {
	return declare(name, metric.Count, metric.Quantity, "", meaning)
}

// faultsOf declares a number of what should not be.
func faultsOf(name, meaning string) metric.Declaration {
	return declare(name, metric.Count, metric.Quantity, metric.Lower, meaning)
}

// timeOf declares a time that a tool prints, of a kind.
func timeOf(name string, kind metric.Kind, meaning string) metric.Declaration {
	return declare(name, metric.Nanoseconds, kind, metric.Lower, meaning)
}

// latencyOf declares the distribution of the latency of an operation.
func latencyOf(operation, meaning string) metric.Declaration {
	return timeOf(operation, metric.Distribution, meaning)
}

// value returns a figure; false: there is none.
func (r *Result) value(of metric.Declaration) (float64, bool) {
	i := slices.IndexFunc(r.Scalars, func(s metric.Scalar) bool { return s.Metric == of.Name })
	if i < 0 {
		return 0, false
	}
	return r.Scalars[i].Value, true
}

func (r *Result) has(of metric.Declaration) bool {
	_, ok := r.value(of)
	return ok
}

// expect warns of figures that a complete report of the tool has, and this one lacks.
func (r *Result) expect(want ...metric.Declaration) {
	var absent []string
	for _, d := range want {
		if !r.has(d) {
			absent = append(absent, d.Name)
		}
	}
	if len(absent) > 0 {
		r.Warnings = append(r.Warnings, Warning{Code: "figuresMissing",
			Message: "the report lacks " + strings.Join(absent, ", ") +
				": it was changed, or is of another version of the tool"})
	}
}
