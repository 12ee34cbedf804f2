package plan

import (
	"fmt"
	"maps"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// maxInstances is the maximum number of instances that one trigger creates.
const maxInstances = 10000

// variant is one combination of values of a workload's variables.
type variant struct {
	given map[string]string // all values from the file
	own   map[string]string // values that distinguish it from the other variants
	paths map[string]string // path of each variable in the file
}

// variantsOf returns the variants of a createObjSpec: each set of varsList with each
// combination of the matrix. The last variable of the matrix, in order of name, varies
// fastest. Without varsList and matrix there is one variant. It returns none if it
// reported a problem.
func variantsOf(report *parse.Report, path string, c *v1alpha1.CreateObjSpec) []variant {
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
				v = with(report, v, name, string(set[name]), fmt.Sprintf("%s.varsList[%d].%s", path, i, name))
			}
			list = append(list, v)
		}
	}
	for _, name := range sortedKeys(c.Matrix) {
		switch n := len(c.Matrix[name]); {
		case n == 0:
			report.Fail(path+".matrix."+name, "such as [4k, 64k]", "variable %q has no values", name)
			return nil
		case n*len(list) > maxInstances: // checked before the combinations take up memory
			report.Fail(path+".matrix", fmt.Sprintf("at most %d", maxInstances), "there are more than %d combinations",
				maxInstances)
			return nil
		}
		var crossed []variant
		for _, v := range list {
			for i, value := range c.Matrix[name] {
				crossed = append(crossed, with(report, v, name, string(value),
					fmt.Sprintf("%s.matrix.%s[%d]", path, name, i)))
			}
		}
		list = crossed
	}
	return list
}

// with returns a copy of a variant with one more variable. It reports a variable that
// has a value already.
func with(report *parse.Report, v variant, name, value, path string) variant {
	if at, twice := v.paths[name]; twice {
		report.Fail(path, "leave one out", "variable %q is given at %s already", name, at)
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
