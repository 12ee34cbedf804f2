package plan

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	corev1 "k8s.io/api/core/v1"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/metric"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/workload"
)

// info is the state of one action during resolution.
type info struct {
	path  string      // such as spec.actions[2]
	does  *descriptor // nil: the file sets no field of a kind
	kind  op.Kind
	spec  *v1alpha1.Action
	out   Action
	state resolution

	// claims are the volumes that one op creates; for a snapshot, the volumes of which
	// it is taken.
	claims []corev1.PersistentVolumeClaim
	pods   int
	// variants is the number of variants of a workload. claims and pods cover one
	// instance of each variant.
	variants int
	phases   int                    // number of phases of a workload, including the initial one; 0: no phases
	inline   *workload.ResolvedSpec // objectSpec of a workload; nil: none
	aims     []*info                // actions whose objects it acts on
	heads    []*info                // actions that it follows in episodes
	// metrics are the metrics of its ops and workloads; nil: any name is accepted.
	metrics []string
	ends    bool // workload that ends by itself
}

type resolution int

const (
	untouched resolution = iota
	resolving
	resolved
)

// resolve builds the plan from the decoded Benchmark.
func (l *loader) resolve() {
	l.plan.Needs = engine.Needs{Kinds: map[op.Kind]bool{}, Features: map[string]bool{}}
	l.plan.Seed = l.in.Seed
	if l.spec.Seed != nil {
		l.plan.Seed = uint64(*l.spec.Seed)
	}
	l.plan.Runtime = l.positive("spec.runtime", l.spec.Runtime)
	if l.spec.GracePeriod != nil {
		l.plan.Grace = l.spec.GracePeriod.Duration.Duration
	}
	l.maxOutput()
	l.resolveRates()
	l.infos = map[string]*info{}
	var order []*info
	for i := range l.spec.Actions {
		a := &l.spec.Actions[i]
		n := &info{path: fmt.Sprintf("spec.actions[%d]", i), spec: a}
		if n.does = descriptorOf(a); n.does != nil {
			n.kind = n.does.kind
		}
		order = append(order, n)
		if _, twice := l.infos[string(a.Name)]; !twice { // reported by the schema
			l.infos[string(a.Name)] = n
		}
	}
	l.names(order)
	l.heads(order)
	for _, n := range order {
		l.action(n)
	}
	l.circles()
	for _, n := range order {
		l.plan.Actions = append(l.plan.Actions, n.out)
	}
	l.replays(order)
	l.unusedRates()
	l.directions(order)
	l.singling(order)
	l.outputs()
	l.slos(order)
	l.endless(order)
	l.budget(order)
}

// names reports names of actions that make names of objects ambiguous: volume 1-data
// of instance 0 of fio and volume data of instance 1 of fio-0 would have one name.
func (l *loader) names(order []*info) {
	for _, n := range order {
		for other := range l.infos {
			rest, ok := strings.CutPrefix(string(n.spec.Name), other+"-")
			digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
			if ok && digits > 0 && (digits == len(rest) || rest[digits] == '-') {
				l.fail(n.path+".name", "choose a name that is not an action's name and a number",
					"objects of %q could not be told from those of %q", n.spec.Name, other)
			}
		}
	}
}

// action resolves one action, after the actions whose objects it acts on.
func (l *loader) action(n *info) {
	if n.state != untouched {
		return
	}
	n.state = resolving
	defer func() { n.state = resolved }()
	n.out.Name, n.out.Kind, n.out.Count = string(n.spec.Name), n.kind, 1
	n.out.Timeout = l.positive(n.path+".timeout", n.spec.Timeout)
	l.actionRate(n)
	l.references(n)
	if n.does == nil {
		return // reported by the schema check
	}
	if !l.in.Capabilities.Actions[n.kind] {
		l.unsupported(n.path+"."+n.does.field, n.does.field)
		return
	}
	l.plan.Needs.Kinds[n.kind] = true
	n.metrics = n.does.metrics()
	n.does.resolve(l, n)
	if n.out.Target != nil && n.out.Chained {
		n.out.Target.Makers = makers(n.aims)
	}
}

// references checks the references in fields that all kinds of action have.
func (l *loader) references(n *info) {
	l.actionOutput(n)
}

// slos compiles the expressions of spec.slos.
func (l *loader) slos(order []*info) {
	env := expr.Env{Actions: map[string][]string{}, Phases: map[string]int{}}
	for _, n := range order {
		env.Actions[n.out.Name] = n.metrics
		env.Phases[n.out.Name] = n.phases
	}
	for i, s := range l.spec.SLOs {
		l.plan.SLOs = append(l.plan.SLOs, SLO{Name: string(s.Name), Expr: s.Expr})
		if s.Expr == "" {
			continue
		}
		_, err := expr.Compile(s.Expr, env)
		var wrong *expr.Error
		path := fmt.Sprintf("spec.slos[%d].expr", i)
		switch {
		case err == nil:
		case errors.As(err, &wrong):
			p := l.problem(path, "", "%s", wrong.Message)
			p.Line, p.Column = inside(l.doc.find(path), wrong.Line, wrong.Column)
			l.problems = append(l.problems, p)
		default:
			l.fail(path, "", "%v", err)
		}
	}
}

// inside converts a position within the text of a scalar to a position in the file.
// at is the place of the scalar.
func inside(at place, line, col int) (int, int) {
	switch {
	case at.style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return at.line + line, 1 // the text begins on the next line; its indentation is not known
	case line > 1:
		return at.line + line - 1, 1
	case at.style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0:
		return at.line, at.col + col
	}
	return at.line, at.col + col - 1
}

// endless reports a run that would never end. It does nothing if there are other
// problems, because a workload that could not be resolved may end the run.
func (l *loader) endless(order []*info) {
	if l.spec.Runtime != nil || len(l.problems) > 0 {
		return
	}
	for _, n := range order {
		if n.ends && n.out.Rate == "" {
			return
		}
	}
	for i, r := range l.plan.Rates {
		if i < len(l.spec.Rates) && r.Limit == 0 && r.Duration == 0 && l.used[r.Name] && !r.ends() {
			l.fail(fmt.Sprintf("spec.rates[%d]", i), "give spec.runtime, or the rate a limit or a duration",
				"the run would never end: no workload of the start ends by itself, and this rate goes on forever")
		}
	}
}

// positive returns a duration, and reports it if it is not positive. It returns 0 if d
// is nil or not positive.
func (l *loader) positive(path string, d *v1alpha1.Duration) time.Duration {
	if d == nil {
		return 0
	}
	if d.Duration.Duration <= 0 {
		l.fail(path, "", "must be more than 0")
		return 0
	}
	return d.Duration.Duration
}

// workloadMetrics returns the metrics of a parser and of the canary.
func workloadMetrics(parser string) []string {
	metrics := []string{metric.CanaryRead, metric.CanaryWrite}
	if parser == "fio" {
		metrics = append(metrics, metric.Read, metric.Write, metric.Trim, metric.Sync)
	}
	return metrics
}

// instanceName returns the name of instance i (0-based) of an action.
func instanceName(n *info, i int) string { return workload.InstanceName(n.out.Name, i) }
