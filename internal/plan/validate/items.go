package validate

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// manyItems is the length of a list from which the checks of its items would take memory and time without a use: no
// list may have so many.
const manyItems = 4096

// tooMany returns a problem for each list of more than manyItems items that may have fewer. All other problems wait
// until it is shorter.
func (c *checker) tooMany(d *parse.Document) (problems []parse.Problem) {
	var walk func(value any, s *schema.Structural, path string)
	walk = func(value any, s *schema.Structural, path string) {
		if s == nil {
			return
		}
		switch v := value.(type) {
		case map[string]any:
			for name, child := range v {
				if field, ok := s.Properties[name]; ok {
					walk(child, &field, join(path, name))
				}
			}
		case []any:
			if s.ValueValidation != nil && s.ValueValidation.MaxItems != nil && len(v) > manyItems &&
				int64(len(v)) > *s.ValueValidation.MaxItems {
				problems = append(problems, d.Problem(path, "use count, varsList or matrix",
					"%d items: at most %d are allowed", len(v), *s.ValueValidation.MaxItems))
				return
			}
			for i, child := range v {
				walk(child, s.Items, fmt.Sprintf("%s[%d]", path, i))
			}
		}
	}
	walk(d.Value, c.structural, "")
	return problems
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + "." + name
}
