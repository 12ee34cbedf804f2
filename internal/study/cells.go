package study

import (
	"fmt"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// Names of factors that no key sets.
const (
	variantFactor = "variant"
	armFactor     = "arm"
)

// aaSuffix marks the second label of a cell that is run twice.
const aaSuffix = " (A/A)"

// cells crosses the factors that are lists; the last one varies fastest. Then come the A/A arms. It sets Factors and
// Distributions.
func (d *Design) cells(spec *v1alpha1.StudySpec, order []string) ([]Cell, error) {
	list := []Cell{{}}
	if len(spec.Variants) > 0 {
		d.Factors, list = append(d.Factors, variantFactor), nil
		for _, v := range spec.Variants {
			c := Cell{Levels: []Level{{variantFactor, string(v.Name)}}, Set: sets(v.Set)}
			for _, action := range v.Without {
				c.Set = append(c.Set, fmt.Sprintf("spec.actions.%s=null", action))
				c.Without = append(c.Without, string(action))
			}
			list = append(list, c)
		}
	}
	for _, key := range order {
		f, name := spec.Factors[key], short(key, order)
		if f.Distribution != nil {
			d.Distributions = append(d.Distributions, Distribution{name, key, f.Distribution})
			continue
		}
		for i, v := range f.Values {
			if slices.Contains(f.Values[:i], v) {
				return nil, fmt.Errorf("factor %s has the value %s twice: its cells would be the same; "+
					"an A/A arm (--aa) runs a cell twice", name, v)
			}
		}
		d.Factors = append(d.Factors, name)
		var crossed []Cell
		for _, c := range list {
			for _, v := range f.Values {
				crossed = append(crossed, Cell{
					Levels:  append(slices.Clone(c.Levels), Level{name, string(v)}),
					Set:     append(slices.Clone(c.Set), set(key, string(v))),
					Without: c.Without,
				})
			}
		}
		list = crossed
	}
	if spec.AAArm == nil {
		return list, nil
	}
	return d.addArms(list, spec.AAArm, order)
}

// addArms appends a copy of each cell that the A/A arm selects, under another label: that of the first factor which
// the arm names, or of the first factor. A study without factors gets one, the arm.
func (d *Design) addArms(list []Cell, arm *v1alpha1.StudyAAArm, order []string) ([]Cell, error) {
	if len(d.Factors) == 0 {
		d.Factors = []string{armFactor}
		list[0].Levels = []Level{{armFactor, "A"}}
	}
	levels := map[string]string{} // by the factor's short name
	label := len(d.Factors)
	for _, key := range sortedKeys(arm.Levels) {
		name := key
		if slices.Contains(order, key) {
			name = short(key, order)
		}
		at := slices.Index(d.Factors, name)
		if at < 0 {
			return nil, fmt.Errorf("the A/A arm selects levels of %s, which is no factor with a list of values; want one of %s",
				key, strings.Join(d.Factors, ", "))
		}
		levels[name], label = string(arm.Levels[key]), min(label, at)
	}
	label %= len(d.Factors)
	n := len(list)
	for i := range n {
		if !selects(levels, list[i].Levels) {
			continue
		}
		twin := Cell{Levels: slices.Clone(list[i].Levels), Set: list[i].Set, Without: list[i].Without, AAOf: &i}
		twin.Levels[label].Value += aaSuffix
		list = append(list, twin)
	}
	if len(list) == n {
		return nil, fmt.Errorf("the A/A arm selects no cell: %v", arm.Levels)
	}
	return list, nil
}

func selects(want map[string]string, levels []Level) bool {
	return !slices.ContainsFunc(levels, func(l Level) bool {
		value, named := want[l.Factor]
		return named && value != l.Value
	})
}

func sets(m map[string]v1alpha1.Var) []string {
	var list []string
	for _, k := range sortedKeys(m) {
		list = append(list, set(k, string(m[k])))
	}
	return list
}

// set is one value as --set takes it. It quotes null, which would unset the field.
func set(key, value string) string {
	if strings.HasPrefix(key, "spec.") && (value == "null" || value == "~") {
		value = `"` + value + `"`
	}
	return key + "=" + value
}

// short is the last part of a key, if no other key ends in it.
func short(key string, all []string) string {
	last := func(k string) string { return k[strings.LastIndexByte(k, '.')+1:] }
	for _, other := range all {
		if other != key && last(other) == last(key) {
			return key
		}
	}
	return last(key)
}
