package plan

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

// resolver is a template with variables.
type resolver interface {
	Resolve(given map[string]string) (map[string]string, []*workload.Error)
}

// unknownNulls reports the null variables of the createObjSpec at path that the
// template does not have.
func unknownNulls(g *graph, path string, template resolver) {
	for _, null := range g.nulls[path] {
		_, wrong := template.Resolve(map[string]string{null.Name: ""})
		for _, e := range wrong {
			if e.Var == null.Name && e.Unknown() {
				badVar(g.Report, null.Path, e)
			}
		}
	}
}

// badVar reports an unknown variable, at the place of its name, or an invalid
// value, at the place of the value.
func badVar(report *parse.Report, where string, e *workload.Error) {
	if report.Faulty[where] && !e.Unknown() {
		return // reported by the schema check
	}
	problem := report.Problem
	if e.Unknown() {
		problem = report.KeyProblem
	}
	report.Add(problem(where, cmp.Or(e.Hint, hints.Suggest(cmp.Or(e.Got, e.Var), e.Known)), "%s", e.Message))
}

func badEntry(report *parse.Report, path string, entry *workload.Entry, err error) {
	var e *workload.Error
	if !errors.As(err, &e) {
		report.Fail(path+".workload", "", "library entry %q (%s): %v", entry.Name, entry.Origin, err)
		return
	}
	where := fmt.Sprintf("library entry %q (%s)", entry.Name, entry.Origin)
	if e.Part != "" {
		where += ", " + e.Part
	}
	report.Fail(path+".workload", e.Hint, "%s: %s", where, e.Message)
}

// blameQuantities reports the variables whose invalid quantities make the rendering of
// an entry fail. For each value that is not a quantity it renders the entry with all
// other such values replaced. It returns false if it reported no variable.
func blameQuantities(report *parse.Report, entry *workload.Entry, params workload.Params, v variant) bool {
	params.Vars = maps.Clone(params.Vars)
	var suspects []string
	given := v.given
	for _, k := range sortedKeys(given) {
		if _, err := resource.ParseQuantity(given[k]); err != nil {
			suspects = append(suspects, k)
			params.Vars[k] = "1Gi"
		}
	}
	blamed := false
	for _, k := range suspects {
		params.Vars[k] = given[k]
		if _, err := entry.Render(params); err != nil && strings.Contains(err.Error(), "quantit") {
			report.Fail(v.paths[k], variable.QuantityHint(given[k]), "%q is not a quantity", given[k])
			blamed = true
		}
		params.Vars[k] = "1Gi"
	}
	return blamed
}
