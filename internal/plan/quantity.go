package plan

import (
	"maps"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/cnsbench/cnsbench/internal/plan/workload"
)

// likeSize matches sizes as people write them that are no quantities.
var likeSize = regexp.MustCompile(`^\s*([0-9]+(?:\.[0-9]+)?)\s*([kKmMgGtTpPeE])(?:i?[bB])?\s*$`)

// quantityHint says how what was written as a quantity could have been meant.
func quantityHint(written string) string {
	m := likeSize.FindStringSubmatch(written)
	if m == nil {
		return "such as 4Ki, 512Mi, 10Gi or 2.5"
	}
	units := map[string][2]string{"k": {"k", "Ki"}, "K": {"k", "Ki"}, "m": {"M", "Mi"}, "M": {"M", "Mi"}, "g": {"G", "Gi"}, "G": {"G", "Gi"},
		"t": {"T", "Ti"}, "T": {"T", "Ti"}, "p": {"P", "Pi"}, "P": {"P", "Pi"}, "e": {"E", "Ei"}, "E": {"E", "Ei"}}[m[2]]
	return m[1] + units[0] + " or " + m[1] + units[1]
}

// blameQuantities reports the variables whose values are why an entry cannot
// be rendered: each is no quantity, and the only thing wrong when all others
// are. False if there is none.
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
			l.fail(v.paths[k], quantityHint(given[k]), "%q is not a quantity", given[k])
			blamed = true
		}
		params.Vars[k] = "1Gi"
	}
	return blamed
}
