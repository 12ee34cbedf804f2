package plan

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// Condition is a resolved triggerRateSpec: its rate triggers when an expression becomes true.
type Condition struct {
	When, Reset   string // expressions that compile; Reset may be empty
	For, Cooldown time.Duration
	Interval      time.Duration // over which metrics are taken
}

// Every is how often the expressions are evaluated.
func (c *Condition) Every() time.Duration { return c.Interval / evaluations }

// evaluations is the number of evaluations in an interval, samples that of the samples that the engine asks for: what
// becomes known after its instant delays a firing by at most an evaluation and a sample.
const evaluations, samples = 10, 4

// Bounds of an interval. A shorter one would have samples that cost more than they show.
const (
	minInterval = 200 * time.Millisecond
	maxInterval = time.Minute
)

// Live returns how soon measurements of workloads must reach the run, so that its conditions see them; 0: no rate has
// a condition.
func (p *Plan) Live() time.Duration {
	least := time.Duration(0)
	for i := range p.Rates {
		if c := p.Rates[i].Condition; c != nil && (least == 0 || c.Interval/samples < least) {
			least = c.Interval / samples
		}
	}
	return min(least, time.Second)
}

// resolveCondition resolves the durations of a triggerRateSpec; resolveExpressions compiles its expressions.
func resolveCondition(report *parse.Report, path string, spec *v1alpha1.TriggerRateSpec, out *Rate) {
	c := Condition{When: spec.When, Reset: spec.Reset}
	for _, d := range []struct {
		given *v1alpha1.Duration
		to    *time.Duration
	}{{spec.For, &c.For}, {spec.Cooldown, &c.Cooldown}, {spec.Interval, &c.Interval}} {
		if d.given != nil {
			*d.to = d.given.Duration.Duration
		}
	}
	if c.Interval < minInterval || c.Interval > maxInterval {
		report.Fail(path+".interval", "such as 1s", "must be %v to %v", minInterval, maxInterval)
		return
	}
	out.Condition = &c
}

// resolveExpressions compiles the expressions of triggerRateSpecs.
func resolveExpressions(g *graph, rates []Rate) {
	env := expr.Env{Actions: map[string][]string{}, Queries: queryNames(g.spec)}
	for _, n := range g.order {
		env.Actions[n.out.Name] = liveNames(n)
	}
	for i := range g.spec.Rates {
		spec, c := g.spec.Rates[i].TriggerRateSpec, rates[i].Condition
		if spec == nil || c == nil {
			continue
		}
		path := fmt.Sprintf("spec.rates[%d].triggerRateSpec", i)
		resolveExpression(g, path+".when", c.When, env, c)
		resolveExpression(g, path+".reset", c.Reset, env, c)
	}
}

// liveNames are the names that an expression may use of an action: those of a workload include the tool's figures, so
// that a message can say why they are not known.
func liveNames(n *node) []string {
	if n.does == nil || n.unresolved() {
		return nil
	}
	names := slices.Concat(withCalls(n.does.milestones), n.metrics, n.values)
	if n.out.Workload != nil {
		names = append(names, metric.Read, metric.Write)
	}
	return names
}

func resolveExpression(g *graph, path, text string, env expr.Env, c *Condition) {
	if text == "" {
		return
	}
	p, ok := compile(g.Report, path, text, env)
	if !ok {
		return
	}
	for _, q := range p.Queries() {
		if problem := q.LiveProblem(); problem != "" {
			g.Fail(path, "", "%s", problem)
			continue
		}
		if q.OfPrometheus() {
			checkLiveQuery(g, path, q, c)
			continue
		}
		if n := g.nodes[q.Metric.Action]; n != nil {
			checkLive(g, path, q, n, c)
		}
	}
}

// checkLiveQuery checks that an interval of a condition has an answer of Prometheus, also if one is late.
func checkLiveQuery(g *graph, path string, q expr.Query, c *Condition) {
	m := g.spec.Metrics
	if m == nil || m.Interval == nil { // there is no such query
		return
	}
	if each := m.Interval.Duration.Duration; c.Interval < 2*each {
		g.Fail(path, fmt.Sprintf("interval: %v", 2*each),
			"%s: the interval of the condition, %v, must be at least twice that of the query, %v", q, c.Interval, each)
	}
}

// checkLive checks that the action of a query has what the query asks for.
func checkLive(g *graph, path string, q expr.Query, n *node, c *Condition) {
	canary := q.Metric.Name == metric.CanaryRead || q.Metric.Name == metric.CanaryWrite
	process := q.Func == expr.IOPS || q.Func == expr.Throughput
	base, _, _ := strings.Cut(q.Metric.Name, "/")
	w := n.out.Workload
	switch {
	case n.does == nil || w == nil && n.made() == engine.WorkloadObject: // it could not be resolved
	case w == nil && (canary || process):
		g.Fail(path, "", "%s: action %q creates no workload", q, n.out.Name)
	case process && n.inline != nil:
		g.Fail(path, "", "%s: an object workload does its I/O over the network, which no sample of its process has", q)
	case process && g.spec.Metrics != nil && g.spec.Metrics.Level == string(op.SampleNone):
		g.Fail(path, "metrics.level: basic", "%s: with metrics.level none no process is sampled", q)
	case canary && w.Canary == nil:
		g.Fail(path, "canary: {} in its createObjSpec", "%s: action %q has no canary", q, n.out.Name)
	case canary && w.Canary.Interval > c.Interval:
		g.Fail(path, "", "%s: an interval of %v has no I/O of a canary each %v", q, c.Interval, w.Canary.Interval)
	case w != nil && !canary && !process && base != "" && !slices.Contains(withCalls(n.does.milestones), base):
		g.Fail(path, "", "%s: the output of a workload's tool is parsed after the run: use throughput(%s.write), iops "+
			"or the canary", q, expr.Metric{Action: q.Metric.Action})
	}
}

// most is the greatest number of triggers in a time.
func (c *Condition) most(length time.Duration) int64 {
	each := max(c.Cooldown, 2*c.Every()) // true, false, true
	return int64(math.Ceil(float64(length) / float64(each)))
}

// compile compiles an expression and reports its error with its place in the file.
func compile(report *parse.Report, path, text string, env expr.Env) (*expr.Program, bool) {
	p, err := expr.Compile(text, env)
	var wrong *expr.Error
	switch {
	case err == nil:
		return p, true
	case errors.As(err, &wrong):
		p := report.Problem(path, "", "%s", wrong.Message)
		p.Line, p.Column = report.Inside(path, wrong.Line, wrong.Column)
		report.Add(p)
	default:
		report.Fail(path, "", "%v", err)
	}
	return nil, false
}
