package plan

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/workload"
	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

// blameQuantities reports the variables whose invalid quantities make the rendering of
// an entry fail. For each value that is not a quantity it renders the entry with all
// other such values replaced. It returns false if it reported no variable.
func (l *loader) blameQuantities(entry *workload.Entry, params workload.Params, v variant) bool {
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
			l.fail(v.paths[k], variable.QuantityHint(given[k]), "%q is not a quantity", given[k])
			blamed = true
		}
		params.Vars[k] = "1Gi"
	}
	return blamed
}
