// Package sweep compares one action over the cells of a study in which one factor
// increases: latency, throughput, state of operations in progress, and where
// throughput stops scaling. A sentence per cell names the component that took the
// time, from the operations' critical paths.
package sweep

import (
	"cmp"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/analysis/attribution"
	"github.com/cnsbench/cnsbench/internal/analysis/dataset"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/stats"
)

// Sweep is one action over all cells.
type Sweep struct {
	Action string   `json:"action"`
	Factor string   `json:"factor"` // that increases; empty: none
	Series []Series `json:"series"`
}

// Series are the cells that differ only in the factor, in ascending order.
type Series struct {
	Name   string  `json:"name"` // the levels of the other factors
	Points []Point `json:"points"`
}

// Point is one cell.
type Point struct {
	Level  float64 `json:"level"`
	Label  string  `json:"label"`
	Trials int     `json:"trials"`
	// PerMinute is the throughput of each trial that has one.
	PerMinute []float64 `json:"perMinute"`
	N         int64     `json:"n"`      // operations of all trials
	Failed    int64     `json:"failed"` // of those, not ok
	// Why is the cause of most that failed, with the message of the first of them; empty if none failed.
	Why      string       `json:"why,omitempty"`
	CDF      []stats.Step `json:"-"` // of the response of all trials together
	MedianNs *int64       `json:"medianNs"`
	P99Ns    *int64       `json:"p99Ns"` // nil also where there are too few
	// Shares of the time of those that were ok.
	Shares []attribution.Share `json:"attribution"`
	// Calls are those of the CSI driver on the critical paths of those that were ok, largest first.
	Calls    []Call  `json:"calls,omitempty"`
	States   *States `json:"-"` // of the first trial
	Sentence string  `json:"sentence"`
}

// Call is the time of the driver in one of its calls.
type Call struct {
	Name   string  `json:"name"`
	MeanNs float64 `json:"meanNs"` // per operation
}

// call returns the mean time of a call in an operation, in ns.
func (p *Point) call(name string) float64 {
	i := slices.IndexFunc(p.Calls, func(c Call) bool { return c.Name == name })
	if i < 0 {
		return 0
	}
	return p.Calls[i].MeanNs
}

// Rate is the median throughput of the trials per minute; 0 without trials.
func (p *Point) Rate() float64 { return stats.Median(p.PerMinute) }

// mean returns the mean time of a component in an operation, in ns.
func (p *Point) mean(component string) float64 {
	i := slices.IndexFunc(p.Shares, func(s attribution.Share) bool { return s.Component == component })
	if i < 0 {
		return 0
	}
	return p.Shares[i].MeanNs
}

// total is the mean time of an operation.
func (p *Point) total() float64 {
	sum := 0.0
	for _, s := range p.Shares {
		sum += s.MeanNs
	}
	return sum
}

// Gather sums the trials of one cell. The zero value is ready to use; it is not safe
// for concurrent use.
type Gather struct {
	response  stats.Sample
	tally     attribution.Tally
	perMinute []float64
	n, failed int64
	calls     map[string]int64 // ns, by call
	failures  dataset.Failures
	states    *States
}

// maxMessage bounds the message in a sentence, in bytes.
const maxMessage = 160

// why is the most frequent cause.
func (g *Gather) why() string {
	causes := g.failures.List()
	if len(causes) == 0 {
		return ""
	}
	text := strings.TrimSpace(string(causes[0].Outcome) + " " + causes[0].Code)
	message, _, _ := strings.Cut(causes[0].Message, "\n")
	if len(message) > maxMessage {
		message = strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	if message == "" {
		return text
	}
	return text + ": " + message
}

// Trial adds the operations of one trial, with their throughput per second; 0: none. ends has the end of each
// instance's pod; nil: unknown.
func (g *Gather) Trial(ops []op.Op, perSecond float64, oneMachine bool, ends map[string]op.Time) {
	g.tally.OneMachine = oneMachine
	for i := range ops {
		o := &ops[i]
		g.n++
		g.tally.Add(o)
		dataset.AddLatencies(o, &g.response, nil)
		if o.Outcome != op.OK {
			g.failed++
			g.failures.Add(o)
		} else {
			g.addCalls(o)
		}
	}
	if perSecond > 0 {
		g.perMinute = append(g.perMinute, 60*perSecond)
	}
	if g.states == nil {
		g.states = statesOf(ops, ends)
	}
}

// addCalls adds the time of the driver's calls on the critical path of an operation.
func (g *Gather) addCalls(o *op.Op) {
	if g.calls == nil {
		g.calls = map[string]int64{}
	}
	for _, x := range attribution.Intervals(o) {
		if call, ok := strings.CutSuffix(x.Step, ".end"); ok && x.Component == attribution.Driver {
			g.calls[call] += x.Ns()
		}
	}
}

// meanCalls are the calls, largest first.
func (g *Gather) meanCalls() (list []Call) {
	for name, ns := range g.calls {
		list = append(list, Call{name, float64(ns) / float64(g.n-g.failed)})
	}
	slices.SortFunc(list, func(a, b Call) int {
		return cmp.Or(cmp.Compare(b.MeanNs, a.MeanNs), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Point returns the figures of the trials added so far.
func (g *Gather) Point(level float64, label string, trials int) Point {
	p := Point{Level: level, Label: label, Trials: trials, PerMinute: g.perMinute, N: g.n, Failed: g.failed,
		Why: g.why(),
		CDF: g.response.CDF(400), Shares: g.tally.Shares(), Calls: g.meanCalls(),
		States: g.states}
	at := func(q float64) *int64 {
		if e, ok := g.response.Quantile(q); ok && !e.Infinite {
			return &e.Value
		}
		return nil
	}
	p.MedianNs, p.P99Ns = at(0.5), at(0.99)
	return p
}
