package plan

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// maxInstances is the maximum number of instances that one trigger creates.
const maxInstances = 10000

// variant is one combination of values of a workload's variables.
type variant struct {
	given map[string]string // all values from the file
	own   map[string]string // values that distinguish it from the other variants
	paths map[string]string // path of each variable in the file
}

// variants returns the variants of a createObjSpec: each set of varsList with each
// combination of the matrix. The last variable of the matrix, in order of name, varies
// fastest. Without varsList and matrix there is one variant. It returns none if it
// reported a problem.
func (l *loader) variants(path string, c *v1alpha1.CreateObjSpec) []variant {
	first := variant{given: map[string]string{}, own: map[string]string{}, paths: map[string]string{}}
	for name, value := range c.Vars {
		first.given[name], first.paths[name] = string(value), path+".vars."+name
	}
	list := []variant{first}
	if len(c.VarsList) > 0 {
		list = nil
		for i, set := range c.VarsList {
			v := first
			for _, name := range sortedKeys(set) {
				v = l.with(v, name, string(set[name]), fmt.Sprintf("%s.varsList[%d].%s", path, i, name))
			}
			list = append(list, v)
		}
	}
	for _, name := range sortedKeys(c.Matrix) {
		switch n := len(c.Matrix[name]); {
		case n == 0:
			l.fail(path+".matrix."+name, "such as [4k, 64k]", "variable %q has no values", name)
			return nil
		case n*len(list) > maxInstances: // checked before the combinations take up memory
			l.fail(path+".matrix", fmt.Sprintf("at most %d", maxInstances), "there are more than %d combinations",
				maxInstances)
			return nil
		}
		var crossed []variant
		for _, v := range list {
			for i, value := range c.Matrix[name] {
				crossed = append(crossed, l.with(v, name, string(value),
					fmt.Sprintf("%s.matrix.%s[%d]", path, name, i)))
			}
		}
		list = crossed
	}
	return list
}

// with returns a copy of a variant with one more variable. It reports a variable that
// has a value already.
func (l *loader) with(v variant, name, value, path string) variant {
	if at, twice := v.paths[name]; twice {
		l.fail(path, "leave one out", "variable %q is given at %s already", name, at)
	}
	v.given, v.own, v.paths = maps.Clone(v.given), maps.Clone(v.own), maps.Clone(v.paths)
	v.given[name], v.own[name], v.paths[name] = value, value, path
	return v
}

// common returns the variables that have the same value in all sets.
func common(all []map[string]string) map[string]string {
	same := maps.Clone(all[0])
	for _, vars := range all[1:] {
		maps.DeleteFunc(same, func(k, v string) bool { return vars[k] != v })
	}
	return same
}

// unvary removes a variable from matrix and varsList, so that only --set determines its
// value.
func unvary(create map[string]any, variable string) {
	if m, ok := create["matrix"].(map[string]any); ok {
		delete(m, variable)
		if len(m) == 0 {
			delete(create, "matrix")
		}
	}
	sets, _ := create["varsList"].([]any)
	for _, s := range sets {
		if m, ok := s.(map[string]any); ok {
			delete(m, variable)
		}
	}
	// Without the variable, sets may be equal or empty.
	seen := []string{}
	create["varsList"] = slices.DeleteFunc(sets, func(s any) bool {
		key := fmt.Sprint(s)
		if slices.Contains(seen, key) {
			return true
		}
		seen = append(seen, key)
		return false
	})
	if left, _ := create["varsList"].([]any); len(left) == 0 || len(left) == 1 && len(left[0].(map[string]any)) == 0 {
		delete(create, "varsList")
	}
}
