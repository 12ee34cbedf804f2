package parse

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/cnsbench/cnsbench/internal/hints"
)

// ApplySets applies --set flags to the Benchmark, before it is checked. The keys are:
//
//	spec.runtime=10s                                a field of the spec
//	spec.actions.fio.createObjSpec.count=5          a list element by name
//	spec.rates[0].limit=3                           a list element by index
//	fio.iodepth=4                                   variable iodepth of the workload of action fio
//	vars.storageClass=btrfs                         variable storageClass of all workloads that have it
//	metadata.name=other                             the name of the Benchmark, or a label
//	spec.actions.snapshots=null                     without a list element
//
// A value is YAML: 5 is a number and "5" is a string. Values of variables are strings.
// variables returns the variables of a workload in the library, or nil if the library does not have the workload.
func ApplySets(d *Document, sets []string, variables func(workload string) []string) []Problem {
	var problems []Problem
	for _, s := range sets {
		if message, hint := applySet(d, s, variables); message != "" {
			problems = append(problems, Problem{File: setFile + s, Message: message, Hint: hint})
		}
	}
	return problems
}

// setFile stands for the file of a value that a flag sets.
const setFile = "--set "

// applySet applies one flag. It returns a message and a hint if the flag is invalid.
func applySet(d *Document, s string, variables func(workload string) []string) (message, hint string) {
	key, text, ok := strings.Cut(s, "=")
	if !ok || key == "" {
		return "not of the form KEY=VALUE", "such as spec.runtime=10s or vars.storageClass=btrfs"
	}
	value, err := setValue(text)
	if err != nil {
		return err.Error(), "the value is YAML"
	}
	if text == "" && (strings.HasPrefix(key, "spec.") || strings.HasPrefix(key, "metadata.")) {
		return "the value is missing", `such as spec.runtime=10s; an empty text is written KEY='""'`
	}
	switch head, rest, _ := strings.Cut(key, "."); {
	case (head == "spec" || head == "metadata") && rest != "":
		return setField(d, s, head, rest, value)
	case head == "vars" && rest != "":
		return setVars(d, s, rest, text, variables)
	case rest != "":
		return setVar(d, s, head, rest, text)
	}
	return fmt.Sprintf("unknown key %q", key), "a key begins with spec., metadata., vars. or the name of an action"
}

func setValue(text string) (any, error) {
	var n yaml.Node
	if err := safely(func() error { return yaml.Unmarshal([]byte(text), &n) }); err != nil {
		return nil, err
	}
	c := converter{doc: &Document{places: map[string]place{}, keys: map[string]place{}}}
	v := c.convert(&n, "", 0)
	if len(c.problems) > 0 {
		return nil, fmt.Errorf("%s", c.problems[0].Message)
	}
	return v, nil
}

// put records a flag as the source of the value at path, for the place of problems.
func put(d *Document, path, set string) {
	at := place{file: setFile + set}
	d.places[path], d.keys[path] = at, at
}

// setField sets a field of the Benchmark. It creates missing mappings on the path.
func setField(d *Document, set, head, key string, value any) (message, hint string) {
	steps := strings.Split(Normal(key), ".")
	at, path := child(d.Value, head), head
	shorten := func([]any) {} // replaces the list at
	for i, step := range steps {
		last := i == len(steps)-1
		switch v := at.(type) {
		case map[string]any:
			path = join(path, step)
			if last {
				v[step] = value
				put(d, path, set)
				return "", ""
			}
			at = child(v, step)
			shorten = func(list []any) { v[step] = list }
		case []any:
			n, names := index(v, step)
			if n < 0 {
				return fmt.Sprintf("there is no %q in %s", step, path), hints.Suggest(step, names)
			}
			if last && value == nil {
				shorten(slices.Concat(v[:n], v[n+1:])) // not in place: an alias may have the list too
				d.leaveOut(path, n)
				return "", ""
			}
			path = join(path, strconv.Itoa(n))
			if last {
				v[n] = value
				put(d, path, set)
				return "", ""
			}
			at = v[n]
			shorten = func(list []any) { v[n] = list }
		default:
			return fmt.Sprintf("%s has no fields", path), ""
		}
	}
	return "", ""
}

// child returns the value of a field. If the field is not set, it sets it to a new
// mapping.
func child(m map[string]any, key string) any {
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

// Element returns a list element that is given by name or by index; nil: there is none.
func Element(list []any, step string) any {
	if n, _ := index(list, step); n >= 0 {
		return list[n]
	}
	return nil
}

// Names returns the names of the elements of a list.
func Names(list []any) []string {
	_, names := index(list, "")
	return names
}

// Workloads returns the workload of each action that creates one, by the name of the action.
func (d *Document) Workloads() map[string]string {
	all := map[string]string{}
	workloadActions(d, func(_ int, name string, create map[string]any) { all[name] = create["workload"].(string) })
	return all
}

// workloadActions calls f for each action that creates a workload, and returns the
// names of these actions.
func workloadActions(d *Document, f func(i int, name string, create map[string]any)) (names []string) {
	spec, _ := d.Value["spec"].(map[string]any)
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
func setVar(d *Document, set, action, variable, value string) (message, hint string) {
	found := false
	names := workloadActions(d, func(i int, name string, create map[string]any) {
		if name == action {
			found = true
			giveVar(d, set, i, create, variable, value)
		}
	})
	if !found {
		return fmt.Sprintf("no action %q creates a workload", action),
			hints.Suggest(action, append(names, "spec", "metadata", "vars"))
	}
	return "", ""
}

// setVars sets a variable of all workloads that have it.
func setVars(d *Document, set, variable, value string, variables func(workload string) []string) (message,
	hint string) {
	found, unknown := false, false
	var known []string
	workloadActions(d, func(i int, _ string, create map[string]any) {
		of := variables(create["workload"].(string))
		unknown = unknown || of == nil
		for _, v := range of {
			known = append(known, v)
			if v == variable {
				found = true
				giveVar(d, set, i, create, variable, value)
			}
		}
	})
	if !found && !unknown { // that a workload is unknown is reported, and it may have the variable
		return fmt.Sprintf("no workload of this file has a variable %q", variable), hints.Suggest(variable, known)
	}
	return "", ""
}

func giveVar(d *Document, set string, i int, create map[string]any, variable, value string) {
	vars, ok := child(create, "vars").(map[string]any)
	if !ok {
		return // the schema check reports it
	}
	unvary(create, variable)
	vars[variable] = value
	put(d, fmt.Sprintf("spec.actions.%d.createObjSpec.vars.%s", i, variable), set)
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
