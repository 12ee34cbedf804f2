package expr

import (
	"slices"

	"github.com/google/cel-go/common/ast"
)

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
