package parser

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/bounded"
	"github.com/cnsbench/cnsbench/internal/metric"
)

// declare declares a metric that is no latency.
func declare(name, unit string, kind metric.Kind, better metric.Direction, meaning string) metric.Declaration {
	return metric.Declaration{Name: name, Unit: unit, Traits: metric.Traits{Kind: kind, Better: better}, Meaning: meaning}
}

// latencyOf declares the latency of an operation.
func latencyOf(operation, meaning string) metric.Declaration {
	return metric.Declaration{Name: operation, Unit: metric.Nanoseconds,
		Traits: metric.Traits{Kind: metric.Distribution, Better: metric.Lower}, Meaning: meaning}
}

// expect warns of figures that a complete report of the tool has, and this one lacks.
func (r *Result) expect(want ...metric.Declaration) {
	var absent []string
	for _, d := range want {
		if !slices.ContainsFunc(r.Scalars, func(s metric.Scalar) bool { return s.Metric == d.Name }) {
			absent = append(absent, d.Name)
		}
	}
	if len(absent) > 0 {
		r.Warnings = append(r.Warnings, Warning{Code: "figuresMissing",
			Message: "the report lacks " + strings.Join(absent, ", ") +
				": it was changed, or is of another version of the tool"})
	}
}

// unreadLines counts lines of a tool's text that are neither read nor known to have no figures.
type unreadLines struct {
	n     int
	first string
}

// add counts a line of a file.
func (u *unreadLines) add(file, line string) {
	if u.n++; u.n == 1 {
		u.first = fmt.Sprintf("%s: %s", file, bounded.Text(line, 100))
	}
}

// warn adds a warning if there are any.
func (u *unreadLines) warn(r *Result) {
	if u.n > 0 {
		r.Warnings = append(r.Warnings, Warning{Code: "outputUnread",
			Message: fmt.Sprintf("%d lines are not understood, first %s", u.n, u.first)})
	}
}
