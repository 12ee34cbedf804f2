package plan

import (
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// applySets applies the --set flags for which among returns true to the Benchmark,
// before it is checked. The keys are:
//
//	spec.runtime=10s                                a field of the spec
//	spec.actions.fio.createObjSpec.count=5          a list element by name
//	spec.rates[0].limit=3                           a list element by index
//	fio.iodepth=4                                   variable iodepth of the workload of action fio
//	vars.storageClass=btrfs                         variable storageClass of all workloads that have it
//	metadata.name=other                             the name of the Benchmark, or a label
//
// A value is YAML: 5 is a number and "5" is a string. Values of variables are strings.
func (l *loader) applySets(among func(set string) bool) {
	for _, s := range l.in.Set {
		if !among(s) {
			continue
		}
		key, text, ok := strings.Cut(s, "=")
		if !ok || key == "" {
			l.badSet(s, "not of the form KEY=VALUE", "such as spec.runtime=10s or vars.storageClass=btrfs")
			continue
		}
		value, err := setValue(text)
		if err != nil {
			l.badSet(s, err.Error(), "the value is YAML")
			continue
		}
		if text == "" && (strings.HasPrefix(key, "spec.") || strings.HasPrefix(key, "metadata.")) {
			l.badSet(s, "the value is missing", `such as spec.runtime=10s; an empty text is written KEY='""'`)
			continue
		}
		switch head, rest, _ := strings.Cut(key, "."); {
		case (head == "spec" || head == "metadata") && rest != "":
			l.setField(s, head, rest, value)
		case head == "vars" && rest != "":
			l.setVars(s, rest, text)
		case rest != "":
			l.setVar(s, head, rest, text)
		default:
			l.badSet(s, fmt.Sprintf("unknown key %q", key),
				"a key begins with spec., metadata., vars. or the name of an action")
		}
	}
}

func (l *loader) badSet(set, message, hint string) {
	l.problems = append(l.problems, Problem{File: "--set " + set, Message: message, Hint: hint})
}

func setValue(text string) (any, error) {
	var n yaml.Node
	if err := safely(func() error { return yaml.Unmarshal([]byte(text), &n) }); err != nil {
		return nil, err
	}
	c := converter{doc: &document{places: map[string]place{}, keys: map[string]place{}}}
	v := c.convert(&n, "", 0)
	if len(c.problems) > 0 {
		return nil, fmt.Errorf("%s", c.problems[0].Message)
	}
	return v, nil
}

// put records a flag as the source of the value at path, for the place of problems.
func (l *loader) put(path, set string) {
	at := place{file: "--set " + set}
	l.doc.places[path], l.doc.keys[path] = at, at
}

// setField sets a field of the Benchmark. It creates missing mappings on the path.
func (l *loader) setField(set, head, key string, value any) {
	steps := strings.Split(normal(key), ".")
	at, path := l.child(l.doc.value, head), head
	for i, step := range steps {
		last := i == len(steps)-1
		switch v := at.(type) {
		case map[string]any:
			path = join(path, step)
			if last {
				v[step] = value
				l.put(path, set)
				return
			}
			at = l.child(v, step)
		case []any:
			n, names := index(v, step)
			if n < 0 {
				l.badSet(set, fmt.Sprintf("there is no %q in %s", step, path), suggest(step, names))
				return
			}
			path = join(path, strconv.Itoa(n))
			if last {
				v[n] = value
				l.put(path, set)
				return
			}
			at = v[n]
		default:
			l.badSet(set, fmt.Sprintf("%s has no fields", path), "")
			return
		}
	}
}

// child returns the value of a field. If the field is not set, it sets it to a new
// mapping.
func (l *loader) child(m map[string]any, key string) any {
	if m[key] == nil {
		m[key] = map[string]any{}
	}
	return m[key]
}

// index returns the index of a list element that is given by name or by index. If
// there is no such element, it returns -1 and the names of all elements.
func index(list []any, step string) (n int, names []string) {
	for i, e := range list {
		m, _ := e.(map[string]any)
		name, _ := m["name"].(string)
		if name == step && name != "" {
			return i, nil
		}
		if name != "" {
			names = append(names, name)
		}
	}
	if n, err := strconv.Atoi(step); err == nil && n >= 0 && n < len(list) {
		return n, nil
	}
	return -1, names
}

// workloadActions calls f for each action that creates a workload, and returns the
// names of these actions.
func (l *loader) workloadActions(f func(i int, name string, create map[string]any)) (names []string) {
	spec, _ := l.doc.value["spec"].(map[string]any)
	actions, _ := spec["actions"].([]any)
	for i, a := range actions {
		action, _ := a.(map[string]any)
		name, _ := action["name"].(string)
		create, _ := action["createObjSpec"].(map[string]any)
		if _, ok := create["workload"].(string); ok {
			names = append(names, name)
			f(i, name, create)
		}
	}
	return names
}

// setVar sets a variable of one action's workload. Values of variables are strings.
func (l *loader) setVar(set, action, variable, value string) {
	found := false
	names := l.workloadActions(func(i int, name string, create map[string]any) {
		if name == action {
			found = true
			l.giveVar(set, i, create, variable, value)
		}
	})
	if !found {
		l.badSet(set, fmt.Sprintf("no action %q creates a workload", action),
			suggest(action, append(names, "spec", "metadata", "vars")))
	}
}

// setVars sets a variable of all workloads that have it.
func (l *loader) setVars(set, variable, value string) {
	found := false
	var known []string
	l.workloadActions(func(i int, _ string, create map[string]any) {
		entry, ok := l.library.Get(create["workload"].(string))
		if !ok {
			return
		}
		for _, v := range entry.Variables() {
			known = append(known, v)
			if v == variable {
				found = true
				l.giveVar(set, i, create, variable, value)
			}
		}
	})
	if !found {
		l.badSet(set, fmt.Sprintf("no workload of this file has a variable %q", variable), suggest(variable, known))
	}
}

func (l *loader) giveVar(set string, i int, create map[string]any, variable, value string) {
	vars, ok := l.child(create, "vars").(map[string]any)
	if !ok {
		return // the schema check reports it
	}
	unvary(create, variable)
	vars[variable] = value
	l.put(fmt.Sprintf("spec.actions.%d.createObjSpec.vars.%s", i, variable), set)
}
