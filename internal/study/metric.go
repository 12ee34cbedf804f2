package study

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/plan"
)

// TableMetric describes the values of a response.
type TableMetric struct {
	Metric
	Unit string `json:"unit"`
}

// Responses parses responses. Each is one call, such as p50(pods) or rate(pods).
func Responses(texts []string) ([]expr.Query, error) { return responsesIn(texts, expr.Env{}) }

// responsesIn parses responses of a run that has only these names.
func responsesIn(texts []string, names expr.Env) ([]expr.Query, error) {
	var queries []expr.Query
	for _, text := range texts {
		// Compile takes objectives: compare the response with itself.
		p, err := expr.Compile(fmt.Sprintf("%s == (%s)", text, text), names)
		if err != nil {
			return nil, fmt.Errorf("response %q: %w", text, err)
		}
		qs := p.Queries()
		if len(qs) != 2 || qs[0].String() != qs[1].String() { // once on each side
			return nil, fmt.Errorf("invalid response %q: want one call, such as p50(pods) or rate(pods)", text)
		}
		queries = append(queries, qs[0])
	}
	return queries, nil
}

// CheckNames reports a response about an action or a metric that the Benchmark of a plan does not have. A response
// about an action that the cell leaves out is not checked.
func (d *Design) CheckNames(p *plan.Plan, without []string) error {
	responses := d.Responses
	if len(without) > 0 {
		queries, err := Responses(d.Responses)
		if err != nil {
			return err
		}
		responses = nil
		for i, q := range queries {
			left := slices.Contains(without, q.Metric.Action) || slices.ContainsFunc(q.Windows,
				func(w expr.Window) bool { return slices.Contains(without, w.Action) })
			if !left {
				responses = append(responses, d.Responses[i])
			}
		}
	}
	_, err := responsesIn(responses, p.Names)
	return err
}

// metric describes a response. Without a declared direction it follows from the function.
func (d *Design) metric(response string, q expr.Query) TableMetric {
	m := TableMetric{Metric: Metric{Response: q.String()}, Unit: q.Func.Unit()}
	for _, declared := range d.Metrics {
		if declared.Response == response {
			m.Margin, m.Direction = declared.Margin, declared.Direction
		}
	}
	if m.Direction == "" {
		m.Direction = directionOf(q)
	}
	return m
}

// The directions.
const (
	higher = "higher"
	lower  = "lower"
)

// directionOf says which values of a function are better; empty: neither.
func directionOf(q expr.Query) string {
	switch q.Func {
	case expr.Rate, expr.IOPS, expr.Throughput, expr.FindMax, expr.Compliance:
		return higher
	case expr.Count, expr.Ops, expr.Knee, expr.ValueOf:
		return ""
	}
	return lower // latencies, and operations that failed
}

// DefaultResponses are the median latency of each action, the rate of those with a rate, and the rates of a workload.
func DefaultResponses(actions []Action) []string {
	var list []string
	for _, a := range actions {
		list = append(list, expr.Query{Func: expr.Quantile, Q: 0.5, Metric: expr.Metric{Action: a.Name}}.String())
		if a.Repeated {
			list = append(list, expr.Query{Func: expr.Rate, Metric: expr.Metric{Action: a.Name}}.String())
		}
		for _, m := range a.IO {
			list = append(list, expr.Query{Func: expr.IOPS, Metric: expr.Metric{Action: a.Name, Name: m}}.String())
		}
		for _, m := range a.Rates {
			list = append(list, expr.Query{Func: expr.ValueOf, Metric: expr.Metric{Action: a.Name, Name: m}}.String())
		}
	}
	return list
}

// Action is what responses are made for by default.
type Action struct {
	Name     string
	Repeated bool     // at a rate, or in an episode
	IO       []string // "read", "write"
	Rates    []string // that the parser declares, and of which more is better: "tps"
}
