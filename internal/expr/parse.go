package expr

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common"
	"github.com/google/cel-go/common/ast"
	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/types"
)

// parser replaces calls of our functions by slots while CEL parses. A call is a macro that
// leaves a variable, so that metrics need not be CEL values, and queries that && and ||
// skip are evaluated as well.
type parser struct {
	known Env
	src   string
	slots []slot
}

func (p *parser) macros() []cel.Macro {
	rename := func(to string) cel.MacroFactory {
		return func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
			return eh.NewCall(to, args...), nil
		}
	}
	macros := []cel.Macro{
		cel.GlobalMacro(operators.Equals, 2, rename("==")),
		cel.GlobalMacro(operators.NotEquals, 2, rename("!=")),
		cel.GlobalVarArgMacro("duration", p.duration),
		cel.GlobalVarArgMacro("baseline", p.baseline),
	}
	for name, isDuration := range functions {
		macros = append(macros, cel.GlobalVarArgMacro(name, p.call(name, isDuration)))
	}
	return macros
}

// variables declares the slots. '@' cannot occur in a name of an expression.
func (p *parser) variables() []cel.EnvOption {
	var vars []cel.EnvOption
	for i, s := range p.slots {
		vars = append(vars, cel.Variable(slotName(i), s.constant.typ))
	}
	return vars
}

// slot is a variable of the CEL expression: a query's answer, or a constant (query nil).
type slot struct {
	query    *Query
	constant quantity
}

func slotName(i int) string { return fmt.Sprintf("@slot%d", i) }

func (p *parser) slot(eh cel.MacroExprFactory, s slot) ast.Expr {
	p.slots = append(p.slots, s)
	return eh.NewIdent(slotName(len(p.slots) - 1))
}

// duration is the macro of duration("10s").
func (p *parser) duration(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
	s, ok := oneString(args)
	if !ok {
		return nil, eh.NewError(0, `duration takes one string: duration("1.5s")`)
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return nil, eh.NewError(args[0].ID(),
			fmt.Sprintf(`invalid duration %q: want a value such as "1.5s", "200ms" or "2m"`, s))
	}
	return p.slot(eh, slot{constant: exactly(float64(d), durationType)}), nil
}

// call is the macro of one function.
func (p *parser) call(name string, isDuration bool) cel.MacroFactory {
	return func(eh cel.MacroExprFactory, _ ast.Expr, args []ast.Expr) (ast.Expr, *common.Error) {
		q, problem := p.query(name, args)
		if problem != nil {
			if problem.at == nil {
				return nil, &common.Error{Message: problem.message}
			}
			return nil, eh.NewError(problem.at.ID(), problem.message)
		}
		t := numberType
		if isDuration {
			t = durationType
		}
		return p.slot(eh, slot{query: q, constant: quantity{typ: t}}), nil
	}
}

// problem is a message and the part of the expression it is about; nil: all.
type problem struct {
	at      ast.Expr
	message string
}

func problemAt(at ast.Expr, format string, args ...any) *problem {
	return &problem{at: at, message: fmt.Sprintf(format, args...)}
}

func (p *parser) query(name string, args []ast.Expr) (*Query, *problem) {
	if len(args) == 0 {
		return nil, problemAt(nil, "%s takes a metric, such as %s(snapshots)", name, name)
	}
	q := &Query{Func: Func(name)}
	if v, ok := quantiles[name]; ok {
		q.Func, q.Q = Quantile, v
	}
	if q.OfTenant() {
		return q, p.tenant(q, args)
	}
	if q.Func == ValueOf {
		if is, pr := p.prometheusQuery(name, q, args); is {
			return q, pr
		}
	}
	var pr *problem
	if q.Metric, pr = p.metric(args[0]); pr != nil {
		return nil, pr
	}
	rest := args[1:]
	if name == string(Quantile) {
		if len(rest) == 0 {
			return nil, problemAt(nil,
				"quantile takes a metric and a number in (0, 1), such as quantile(snapshots, 0.75)")
		}
		v, ok := number(rest[0])
		if !ok || !(v > 0 && v < 1) {
			return nil, problemAt(rest[0], "the second argument of quantile is a number in (0, 1)")
		}
		q.Q, rest = v, rest[1:]
	}
	if q.Func == Interference {
		q.Q = defaultInterference
		if len(rest) > 0 {
			if v, ok := number(rest[0]); ok && v > 0 && v < 1 {
				q.Q, rest = v, rest[1:]
			}
		}
	}
	if q.AfterOps() {
		return q, p.after(args[0], q, rest)
	}
	if rest, pr = p.phase(q, rest); pr != nil {
		return nil, pr
	}
	if q.Windows, pr = p.windows(name, rest); pr != nil {
		return nil, pr
	}
	return q, p.checkFunction(args[0], q)
}

// after reads after("action"), and for Recovery the share of the level.
func (p *parser) after(at ast.Expr, q *Query, args []ast.Expr) *problem {
	if q.Metric.Name == "" || q.Metric.From != "" || q.Metric.View != Default {
		return problemAt(at, `%s takes a rate of a workload's tool and the ops: %s(%s, after("kill"))`, q.Func, q.Func,
			Metric{Action: q.Metric.Action, Name: "tps"})
	}
	for _, a := range args {
		if v, ok := number(a); ok && q.Func == Recovery && q.Q == 0 {
			if !(v > 0 && v <= 1) {
				return problemAt(a, "the share of the level is a number in (0, 1]")
			}
			q.Q = v
			continue
		}
		var call ast.CallExpr
		if a.Kind() == ast.CallKind {
			call = a.AsCall()
		}
		if call == nil || call.FunctionName() != "after" || len(q.Windows) > 0 {
			return problemAt(a, `%s takes a metric and the ops, such as %s(%s, after("kill"))`, q.Func, q.Func, q.Metric)
		}
		action, ok := oneString(call.Args())
		if !ok {
			return problemAt(a, `after takes the name of an action: after("kill")`)
		}
		if pr := p.action(a, action); pr != nil {
			return pr
		}
		q.Windows = []Window{{Action: action, Inside: true}}
	}
	if len(q.Windows) == 0 {
		return problemAt(at, `%s takes the ops that it is after: %s(%s, after("kill"))`, q.Func, q.Func, q.Metric)
	}
	if q.Func == Recovery {
		q.Q = cmp.Or(q.Q, defaultRecovery)
	}
	return nil
}

// tenant reads the one argument of a function of a tenant: its name, as a string if it is no identifier.
func (p *parser) tenant(q *Query, args []ast.Expr) *problem {
	name, ok := oneString(args)
	if len(args) == 1 && args[0].Kind() == ast.IdentKind {
		name, ok = args[0].AsIdent(), true
	}
	switch {
	case !ok || name == "" || strings.HasPrefix(name, "@"):
		return problemAt(args[0], `%s takes the name of one tenant: %s(gold), or %s("gold-1")`, q.Func, q.Func, q.Func)
	case p.known.Tenants != nil && !slices.Contains(p.known.Tenants, name):
		return problemAt(args[0], "tenant %q not found%s", name, suggest(name, p.known.Tenants))
	}
	q.Metric.Action = name
	return nil
}

// checkFunction checks that the function applies to the metric.
func (p *parser) checkFunction(at ast.Expr, q *Query) *problem {
	switch q.Func {
	case Ops, Errors, Dropped, Censored, Rate:
		if q.Metric.Name != "" || q.Metric.From != "" {
			return problemAt(at, "%s applies to whole ops: write %s(%s)", q.Func, q.Func,
				Metric{Action: q.Metric.Action})
		}
	case Elapsed:
		if q.Metric.Name != "" || q.Metric.From != "" || len(q.Windows) > 0 || q.Phase != nil {
			return problemAt(at, "elapsed applies to a whole workload: write elapsed(%s)", Metric{Action: q.Metric.Action})
		}
	case FindMax, Knee:
		if q.Metric.Name != "" || q.Metric.From != "" || len(q.Windows) > 0 {
			return problemAt(at, "%s applies to a whole stage: write %s(%s)", q.Func, q.Func,
				Metric{Action: q.Metric.Action})
		}
	case Interference:
		if q.Metric.Name == "" || q.Metric.From != "" || len(q.Windows) != 1 || !q.Windows[0].Inside {
			return problemAt(at, "interference takes a workload's I/O and the ops beside it: "+
				`interference(%s.canaryWrite, during("snapshots"))`, Metric{Action: q.Metric.Action})
		}
	case ValueOf:
		if q.Metric.Name == "" || q.Metric.From != "" || q.Metric.View != Default {
			return problemAt(at, "value applies to a metric of a workload's tool, such as %s",
				Metric{Action: q.Metric.Action, Name: "tps"})
		}
	case IOPS, Throughput:
		if q.Metric.Name == "" {
			return problemAt(at, "%s applies to a workload's metric: write %s(%s.read) or .write", q.Func, q.Func,
				Metric{Action: q.Metric.Action})
		}
	}
	return nil
}

// phase removes phase(1) from the arguments.
func (p *parser) phase(q *Query, args []ast.Expr) (rest []ast.Expr, pr *problem) {
	for _, a := range args {
		if a.Kind() != ast.CallKind || a.AsCall().FunctionName() != "phase" {
			rest = append(rest, a)
			continue
		}
		n := -1.0
		if list := a.AsCall().Args(); len(list) == 1 {
			if v, ok := number(list[0]); ok {
				n = v
			}
		}
		k := int(n)
		switch count := p.known.Phases[q.Metric.Action]; {
		case n < 0 || n != float64(k) || q.Phase != nil:
			return nil, problemAt(a, "phase takes the number of one phase, from 0: phase(1) is the first of phases")
		case q.Metric.Name == "" || q.Metric.From != "":
			return nil, problemAt(a, "phase applies to a workload's I/O, such as %s.read",
				Metric{Action: q.Metric.Action})
		case p.known.Phases != nil && count == 0:
			return nil, problemAt(a, "%s has no phases", q.Metric.Action)
		case p.known.Phases != nil && k >= count:
			return nil, problemAt(a, "%s has no phase %d: there are 0 to %d", q.Metric.Action, k, count-1)
		}
		q.Phase = &k
	}
	return rest, nil
}

func (p *parser) windows(name string, args []ast.Expr) ([]Window, *problem) {
	var ws []Window
	for _, a := range args {
		if a.Kind() != ast.CallKind || a.AsCall().FunctionName() != "during" && a.AsCall().FunctionName() != "outside" {
			return nil, problemAt(a,
				`%s takes a metric and windows: during("action") or outside("action"), or phase(1)`, name)
		}
		call := a.AsCall()
		action, ok := oneString(call.Args())
		if !ok {
			return nil, problemAt(a, `%s takes the name of an action: %s("snapshots")`, call.FunctionName(),
				call.FunctionName())
		}
		if pr := p.action(a, action); pr != nil {
			return nil, pr
		}
		ws = append(ws, Window{Action: action, Inside: call.FunctionName() == "during"})
	}
	return ws, nil
}

// metric reads action, action.name, action.name.view, action("a-b")…,
// action["a/b"], and span(action, "from", "to").
func (p *parser) metric(e ast.Expr) (Metric, *problem) {
	if e.Kind() == ast.CallKind && e.AsCall().FunctionName() == "span" && !e.AsCall().IsMemberFunction() {
		return p.span(e)
	}
	action, path, pr := p.path(e)
	if pr != nil {
		return Metric{}, pr
	}
	m := Metric{Action: action}
	if n := len(path); n > 0 && e.Kind() == ast.SelectKind && isView(path[n-1]) {
		m.View, path = View(path[n-1]), path[:n-1]
	}
	m.Name = strings.Join(path, ".")
	if pr := p.action(e, action); pr != nil {
		return Metric{}, pr
	}
	if m.Name != "" {
		if pr := p.name(e, action, m.Name); pr != nil {
			return Metric{}, pr
		}
	}
	return m, nil
}

// path flattens a chain of selections to the action and its fields.
func (p *parser) path(e ast.Expr) (action string, path []string, pr *problem) {
	switch e.Kind() {
	case ast.IdentKind:
		if name := e.AsIdent(); !strings.HasPrefix(name, "@") {
			return name, nil, nil
		}
	case ast.SelectKind:
		s := e.AsSelect()
		action, path, pr = p.path(s.Operand())
		return action, append(path, s.FieldName()), pr
	case ast.CallKind:
		c := e.AsCall()
		if c.FunctionName() == "action" && !c.IsMemberFunction() {
			if name, ok := oneString(c.Args()); ok && name != "" {
				return name, nil, nil
			}
			return "", nil, problemAt(e, `action takes a name: action("my-action")`)
		}
		if c.FunctionName() == operators.Index {
			if name, ok := oneString(c.Args()[1:]); ok && name != "" {
				action, path, pr = p.path(c.Args()[0])
				return action, append(path, name), pr
			}
		}
	}
	if name, rest := p.dashed(e); name != "" {
		return "", nil, problemAt(e, `write a name with dashes as action("..."): action(%q)%s`, name, rest)
	}
	return "", nil, problemAt(e,
		`a metric is wanted here, such as snapshots, snapshots.ready or action("my-action").ready`)
}

// dashed returns the action and the fields of a name such as mk-ext4.ready, which CEL
// parses as a subtraction.
func (p *parser) dashed(e ast.Expr) (name, rest string) {
	if e.Kind() != ast.CallKind || e.AsCall().FunctionName() != operators.Subtract {
		return "", ""
	}
	args := e.AsCall().Args()
	left, leftRest := p.plainName(args[0])
	right, rest := p.plainName(args[1])
	if name = left + "-" + right; left == "" || right == "" || leftRest != "" {
		return "", ""
	}
	if _, ok := p.known.Actions[name]; !ok && p.known.Actions != nil {
		return "", ""
	}
	return name, rest
}

// plainName returns an identifier, or a dashed name, and its fields.
func (p *parser) plainName(e ast.Expr) (name, rest string) {
	switch e.Kind() {
	case ast.IdentKind:
		return e.AsIdent(), ""
	case ast.SelectKind:
		name, rest = p.plainName(e.AsSelect().Operand())
		return name, rest + "." + e.AsSelect().FieldName()
	case ast.CallKind:
		if c := e.AsCall(); c.FunctionName() == operators.Subtract {
			left, leftRest := p.plainName(c.Args()[0])
			right, rest := p.plainName(c.Args()[1])
			if left != "" && right != "" && leftRest == "" {
				return left + "-" + right, rest
			}
		}
	}
	return "", ""
}

func (p *parser) span(e ast.Expr) (Metric, *problem) {
	args := e.AsCall().Args()
	usage := problemAt(e, `span takes an action and two milestones: span(snapshots, "taken", "ready")`)
	if len(args) != 3 {
		return Metric{}, usage
	}
	action, path, pr := p.path(args[0])
	from, ok1 := oneString(args[1:2])
	to, ok2 := oneString(args[2:3])
	if pr != nil || len(path) != 0 || !ok1 || !ok2 || from == "" || to == "" {
		return Metric{}, usage
	}
	if pr := p.action(args[0], action); pr != nil {
		return Metric{}, pr
	}
	for i, name := range []string{from, to} {
		if name == "intended" || name == "started" || name == "ended" {
			continue
		}
		if pr := p.name(args[i+1], action, name); pr != nil {
			return Metric{}, pr
		}
	}
	return Metric{Action: action, From: from, To: to}, nil
}

func (p *parser) action(at ast.Expr, name string) *problem {
	if _, ok := p.known.Actions[name]; ok || p.known.Actions == nil {
		return nil
	}
	return problemAt(at, "action %q not found%s", name, suggest(name, sortedKeys(p.known.Actions)))
}

// name checks a metric's name. The part after a '/' is a claim's name, which is not known
// in advance.
func (p *parser) name(at ast.Expr, action, name string) *problem {
	known := p.known.Actions[action]
	base, _, _ := strings.Cut(name, "/")
	if known == nil || slices.Contains(known, base) {
		return nil
	}
	return problemAt(at, "%s has no metric %q%s", action, name, suggest(base, known))
}

func oneString(args []ast.Expr) (string, bool) {
	if len(args) != 1 || args[0].Kind() != ast.LiteralKind {
		return "", false
	}
	s, ok := args[0].AsLiteral().(types.String)
	return string(s), ok
}

func number(e ast.Expr) (float64, bool) {
	if e.Kind() != ast.LiteralKind {
		return 0, false
	}
	q := asQuantity(e.AsLiteral())
	return q.lo, q.err == nil && !math.IsNaN(q.lo)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// prometheus reads the name of a query to Prometheus, the first argument of value: an identifier, or a string. It is
// false if the argument is a metric of an action.
func (p *parser) prometheus(q *Query, arg ast.Expr) (bool, *problem) {
	name, quoted := oneString([]ast.Expr{arg})
	if !quoted {
		if arg.Kind() != ast.IdentKind {
			return false, nil
		}
		name = arg.AsIdent()
	}
	_, isAction := p.known.Actions[name]
	switch {
	case slices.Contains(p.known.Queries, name):
	case isAction && !quoted, name == "", p.known.Queries == nil && p.known.Actions != nil && !quoted:
		return false, nil
	case p.known.Queries != nil:
		return true, problemAt(arg, "there is no query %q in spec.metrics.prometheus.queries%s", name,
			suggest(name, p.known.Queries))
	}
	q.Metric = Metric{Action: name}
	return true, nil
}

// prometheusQuery reads value(NAME) and its windows. It is false if the query is about an action.
func (p *parser) prometheusQuery(name string, q *Query, args []ast.Expr) (bool, *problem) {
	is, pr := p.prometheus(q, args[0])
	if !is || pr != nil {
		return is, pr
	}
	q.Windows, pr = p.windows(name, args[1:])
	return true, pr
}
