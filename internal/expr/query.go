package expr

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/metric"
)

// Func is a function of a metric.
type Func string

// The functions. Those in quantiles, Quantile, Min, Max, Mean, Recovery, Outage, Elapsed and Violations give
// nanoseconds, Throughput bytes per second, Rate, IOPS and FindMax 1/s, others counts.
const (
	Quantile   Func = "quantile"
	Min        Func = "min"
	Max        Func = "max"
	Mean       Func = "mean"
	Count      Func = "count"
	Ops        Func = "ops"
	Errors     Func = "errors"
	Dropped    Func = "dropped"
	Censored   Func = "censored"
	Rate       Func = "rate"
	IOPS       Func = "iops"
	Throughput Func = "throughput"
	// ValueOf is a scalar or series of a workload's tool, in the unit that its parser declares. Without a Name the
	// metric's Action is the name of a query to Prometheus.
	ValueOf Func = "value"
	// Interference is a quantile of a workload's latency while ops of an action were in
	// progress ÷ the same while none was.
	Interference Func = "interference"
	// Recovery is the time from the start of an op until the throughput was back at a share (Q) of its level, and Outage
	// the time until the first operation after a slice without any: the longest over the ops.
	Recovery Func = "recovery"
	Outage   Func = "outage"
	// Elapsed is how long an instance of a workload ran, from its barrier to its end: the mean over the instances.
	Elapsed Func = "elapsed"
	// FindMax and Knee are results of a capacity search of a stage of object storage: the
	// highest rate at which its condition held, and the number of workers.
	FindMax Func = "findMax"
	Knee    Func = "knee"
	// Violations is the time in which a tenant missed a target, in nanoseconds; Compliance is the share of its
	// measured time in which it met all, from 0 to 1. Their metric's Action is the name of the tenant.
	Violations Func = "violations"
	Compliance Func = "compliance"
)

// defaultInterference is the quantile of Interference: the highest for which 29 I/Os during ops are enough.
const defaultInterference = 0.9

// defaultRecovery is the share of the level that Recovery waits for.
const defaultRecovery = 0.9

// quantiles have names of their own.
var quantiles = map[string]float64{"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p999": 0.999}

// functions has by name whether the value is a duration.
var functions = map[string]bool{
	"p50": true, "p90": true, "p95": true, "p99": true, "p999": true,
	"quantile": true, "min": true, "max": true, "mean": true,
	"count": false, "ops": false, "errors": false, "dropped": false, "censored": false,
	"rate": false, "iops": false, "throughput": false, "value": false, "interference": false, "findMax": false,
	"knee":       false,
	"violations": true, "compliance": false, "recovery": true, "outage": true, "elapsed": true,
}

// View says from which instant a latency counts.
type View string

// The views. Default is response where there is one, else the only view.
const (
	Default  View = ""
	Response View = "response"
	Service  View = "service"
)

// Metric is a metric of an action or, with From and To, a span between two milestones.
type Metric struct {
	Action string
	Name   string // a milestone or a workload's metric; empty: the whole op
	View   View
	// From and To are the milestones of a span, or "intended", "started",
	// "ended"; empty when this is no span.
	From, To string
}

// Window restricts a query to the time in which ops of Action were in
// progress (Inside), or to the rest.
type Window struct {
	Action string
	Inside bool
}

// Query is one call in an expression.
type Query struct {
	Func    Func
	Q       float64 // of Quantile and Interference: in (0, 1); of Recovery: in (0, 1]
	Metric  Metric
	Windows []Window // all must hold
	// Phase of the workload, from 0; nil: all.
	Phase *int
	// Baseline: of the run without the searched action, not of the run that is judged.
	Baseline bool
}

// InterferenceOf is the query for the interference of the ops of an action with a workload's I/O.
func InterferenceOf(m Metric, action string) Query {
	return Query{Func: Interference, Q: defaultInterference, Metric: m, Windows: []Window{{Action: action, Inside: true}}}
}

// Recovered is the query for the time until a workload's throughput is back at its level after ops of an action.
func Recovered(m Metric, action string) Query {
	return Query{Func: Recovery, Q: defaultRecovery, Metric: m, Windows: []Window{{Action: action, Inside: true}}}
}

// OutageOf is the query for the time until a workload answers again after ops of an action.
func OutageOf(m Metric, action string) Query {
	return Query{Func: Outage, Metric: m, Windows: []Window{{Action: action, Inside: true}}}
}

// AfterOps reports whether the query is about the time after ops of the action of its only window.
func (q Query) AfterOps() bool { return q.Func == Recovery || q.Func == Outage }

// OfTenant reports whether the query is about a tenant.
func (q Query) OfTenant() bool { return q.Func == Violations || q.Func == Compliance }

// OfPrometheus reports whether the query is about the answers of a Prometheus server.
func (q Query) OfPrometheus() bool {
	return q.Func == ValueOf && q.Metric.Name == "" && q.Metric.From == ""
}

// String is the query in the language of expressions.
func (q Query) String() string {
	name, args := string(q.Func), []string{q.Metric.String()}
	if (q.OfTenant() || q.OfPrometheus()) && !isIdentifier(q.Metric.Action) {
		args[0] = strconv.Quote(q.Metric.Action)
	}
	if q.Func == Quantile {
		for n, v := range quantiles {
			if v == q.Q {
				name = n
			}
		}
		if name == string(Quantile) {
			args = append(args, strconv.FormatFloat(q.Q, 'g', -1, 64))
		}
	}
	if q.Func == Interference && q.Q != defaultInterference || q.Func == Recovery && q.Q != defaultRecovery {
		args = append(args, strconv.FormatFloat(q.Q, 'g', -1, 64))
	}
	for _, w := range q.Windows {
		f := "outside"
		switch {
		case q.AfterOps():
			f = "after"
		case w.Inside:
			f = "during"
		}
		args = append(args, fmt.Sprintf("%s(%q)", f, w.Action))
	}
	if q.Phase != nil {
		args = append(args, fmt.Sprintf("phase(%d)", *q.Phase))
	}
	text := name + "(" + strings.Join(args, ", ") + ")"
	if q.Baseline {
		return "baseline(" + text + ")"
	}
	return text
}

// String is the metric in the language of expressions.
func (m Metric) String() string {
	s := m.Action
	if !isIdentifier(s) {
		s = fmt.Sprintf("action(%q)", s)
	}
	switch {
	case m.From != "":
		return fmt.Sprintf("span(%s, %q, %q)", s, m.From, m.To)
	case m.Name == "":
	case allIdentifiers(m.Name) && !isView(m.Name[strings.LastIndexByte(m.Name, '.')+1:]):
		s += "." + m.Name
	default:
		s += fmt.Sprintf("[%q]", m.Name)
	}
	if m.View != Default {
		s += "." + string(m.View)
	}
	return s
}

func allIdentifiers(dotted string) bool {
	for _, p := range strings.Split(dotted, ".") {
		if !isIdentifier(p) {
			return false
		}
	}
	return true
}

func isIdentifier(s string) bool {
	for i, r := range s {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return false
		}
	}
	return s != "" && !reserved[s]
}

// reserved are CEL's words that cannot be names.
var reserved = map[string]bool{
	"as": true, "break": true, "const": true, "continue": true, "else": true, "false": true, "for": true,
	"function": true, "if": true, "import": true, "in": true, "let": true, "loop": true, "namespace": true,
	"null": true, "package": true, "return": true, "true": true, "var": true, "void": true, "while": true,
}

// Value is a Source's answer, in the unit of the query's function. A dropped
// op makes a quantile +Inf.
type Value struct {
	Number float64
	// Unit and Better are those of the metric of ValueOf; empty of other functions.
	Unit   string
	Better metric.Direction
	// AtLeast: Number is a lower bound and High an upper one, +Inf without one.
	AtLeast bool
	High    float64
	// Within is the ± error of Number, the resolution of what measured it.
	Within float64
	// N is the number of ops or I/Os.
	N int64
	// Few bounds a quantile with too few values for an interval; nil otherwise.
	Few *Bounds
	// Warning says why the value is weak; empty when it is not.
	Warning string
}

// Bounds of a value; +Inf and -Inf: unbounded.
type Bounds struct{ Low, High float64 }

// ErrNoData is wrapped by a Source without data for a query. It is not an error of the
// expression, and never a pass.
var ErrNoData = errors.New("no data")

// Source answers queries. Errors wrap ErrNoData, or the query does not apply to the run.
type Source interface {
	Value(q Query) (Value, error)
}

func isView(s string) bool { return s == string(Response) || s == string(Service) }
