package validate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// Null is a variable with a null value in the file.
type Null struct{ Name, Path string }

// Nulls returns the variables with a null value, by path of their createObjSpec. It
// precedes the schema check, which drops them as an API server does: a dropped variable
// has no effect, but an unknown name must be reported.
func Nulls(d *parse.Document) map[string][]Null {
	found := map[string][]Null{}
	spec, _ := d.Value["spec"].(map[string]any)
	actions, _ := spec["actions"].([]any)
	for i, a := range actions {
		action, _ := a.(map[string]any)
		create, _ := action["createObjSpec"].(map[string]any)
		path := fmt.Sprintf("spec.actions[%d].createObjSpec", i)
		if nulls := nullsOf(path, create); len(nulls) > 0 {
			found[path] = nulls
		}
	}
	return found
}

func nullsOf(path string, create map[string]any) (nulls []Null) {
	note := func(where string, vars any) {
		m, _ := vars.(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(m)) {
			if m[name] == nil {
				nulls = append(nulls, Null{name, path + "." + where + "." + name})
			}
		}
	}
	note("vars", create["vars"])
	note("matrix", create["matrix"])
	sets, _ := create["varsList"].([]any)
	for j, set := range sets {
		note(fmt.Sprintf("varsList[%d]", j), set)
	}
	phases, _ := create["phases"].([]any)
	for j, phase := range phases {
		p, _ := phase.(map[string]any)
		note(fmt.Sprintf("phases[%d].vars", j), p["vars"])
	}
	return nulls
}

// nullValues reports null values in the factors, variants and scales of a Study. A
// null is most often the string null without quotes.
func nullValues(report *parse.Report) {
	const message, hint = "the value is missing", `the text null is written "null"`
	check := func(path string, v any) {
		if v == nil {
			report.Fail(path, hint, message)
		}
	}
	factors := func(path string, v any) {
		m, _ := v.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(m)) {
			at := path + "." + key
			values, _ := m[key].([]any)
			if distribution, ok := m[key].(map[string]any); ok {
				at += ".choice"
				values, _ = distribution["choice"].([]any)
			}
			for i, value := range values {
				check(fmt.Sprintf("%s[%d]", at, i), value)
			}
		}
	}
	set := func(path string, v any) {
		m, _ := v.(map[string]any)
		for _, key := range slices.Sorted(maps.Keys(m)) {
			check(path+"."+key, m[key])
		}
	}
	spec, _ := report.Value["spec"].(map[string]any)
	factors("spec.factors", spec["factors"])
	variants := func(path string, v any) {
		list, _ := v.([]any)
		for i, v := range list {
			variant, _ := v.(map[string]any)
			set(fmt.Sprintf("%s[%d].set", path, i), variant["set"])
		}
	}
	variants("spec.variants", spec["variants"])
	scales, _ := spec["scales"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(scales)) {
		scale, _ := scales[name].(map[string]any)
		factors("spec.scales."+name+".factors", scale["factors"])
		set("spec.scales."+name+".set", scale["set"])
		variants("spec.scales."+name+".variants", scale["variants"])
	}
}
