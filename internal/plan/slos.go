package plan

import (
	"fmt"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/expr"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// namesOf are the names that expressions about a run may have.
func namesOf(spec *v1alpha1.BenchmarkSpec, nodes []*node) expr.Env {
	env := expr.Env{Actions: map[string][]string{}, Phases: map[string]int{}, Tenants: []string{},
		Queries: queryNames(spec)}
	for i := range spec.Tenants {
		env.Tenants = append(env.Tenants, string(spec.Tenants[i].Name))
	}
	for _, n := range nodes {
		if n.metrics != nil {
			env.Actions[n.out.Name] = slices.Concat(n.metrics, n.values)
		} else {
			env.Actions[n.out.Name] = nil
		}
		env.Phases[n.out.Name] = n.phases
	}
	return env
}

// resolveSLOs compiles the expressions of spec.slos.
func resolveSLOs(report *parse.Report, list []v1alpha1.SLO, env expr.Env) (slos []SLO) {
	for i, s := range list {
		slos = append(slos, SLO{Name: string(s.Name), Expr: s.Expr})
		if s.Expr == "" {
			continue
		}
		compile(report, fmt.Sprintf("spec.slos[%d].expr", i), s.Expr, env)
	}
	return slos
}
