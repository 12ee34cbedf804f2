package plan

import (
	"fmt"

	"github.com/cnsbench/cnsbench/internal/workload"
)

// nullVar is a variable with a null value in the file.
type nullVar struct{ name, path string }

// findNulls collects the variables with a null value, by createObjSpec. It runs before
// the schema check drops them, as an API server does: a dropped variable has no effect,
// but an unknown name must be reported.
func (l *loader) findNulls() {
	l.nulls = map[string][]nullVar{}
	spec, _ := l.doc.value["spec"].(map[string]any)
	actions, _ := spec["actions"].([]any)
	for i, a := range actions {
		action, _ := a.(map[string]any)
		create, _ := action["createObjSpec"].(map[string]any)
		l.nullsOf(fmt.Sprintf("spec.actions[%d].createObjSpec", i), create)
	}
}

func (l *loader) nullsOf(path string, create map[string]any) {
	note := func(where string, vars any) {
		m, _ := vars.(map[string]any)
		for _, name := range sortedKeys(m) {
			if m[name] == nil {
				l.nulls[path] = append(l.nulls[path], nullVar{name, path + "." + where + "." + name})
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
}

// resolver is a template with variables.
type resolver interface {
	Resolve(given map[string]string) (map[string]string, []*workload.Error)
}

// unknownNulls reports the null variables of the createObjSpec at path that the
// template does not have.
func (l *loader) unknownNulls(path string, template resolver) {
	for _, null := range l.nulls[path] {
		_, wrong := template.Resolve(map[string]string{null.name: ""})
		for _, e := range wrong {
			if e.Var == null.name && e.Unknown() {
				l.badVar(null.path, e)
			}
		}
	}
}

// nullValues reports null values in the factors, variants and scales of a Study. A
// null is most often the string null without quotes.
func (l *loader) nullValues(d *document) {
	const message, hint = "the value is missing", `the text null is written "null"`
	check := func(path string, v any) {
		if v == nil {
			l.fail(path, hint, message)
		}
	}
	factors := func(path string, v any) {
		m, _ := v.(map[string]any)
		for _, key := range sortedKeys(m) {
			values, _ := m[key].([]any)
			for i, value := range values {
				check(fmt.Sprintf("%s.%s[%d]", path, key, i), value)
			}
		}
	}
	set := func(path string, v any) {
		m, _ := v.(map[string]any)
		for _, key := range sortedKeys(m) {
			check(path+"."+key, m[key])
		}
	}
	spec, _ := d.value["spec"].(map[string]any)
	factors("spec.factors", spec["factors"])
	variants, _ := spec["variants"].([]any)
	for i, v := range variants {
		variant, _ := v.(map[string]any)
		set(fmt.Sprintf("spec.variants[%d].set", i), variant["set"])
	}
	scales, _ := spec["scales"].(map[string]any)
	for _, name := range sortedKeys(scales) {
		scale, _ := scales[name].(map[string]any)
		factors("spec.scales."+name+".factors", scale["factors"])
		set("spec.scales."+name+".set", scale["set"])
	}
}
