package plan

import (
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/plan/validate"
)

// SetKeys returns the keys of --set that begin with prefix, one step further than it, for the completion of shells.
// A key that a value can follow ends in "=", others in ".". The names in lists are those of the Benchmark in files, in
// which problems are ignored.
func SetKeys(files []File, prefix string) []string {
	d := benchmarkIn(files)
	var keys []string
	head, _, inside := strings.Cut(prefix, ".")
	switch {
	case !inside, head == "metadata":
		keys = append(actionKeys(d), "spec.", "metadata.name=", "vars.")
	case head == "spec":
		keys = fieldKeys(d, prefix[:strings.LastIndexByte(prefix, '.')])
	default:
		keys = variableKeys(d, head)
	}
	keys = slices.DeleteFunc(keys, func(k string) bool { return !strings.HasPrefix(k, prefix) })
	slices.Sort(keys)
	return slices.Compact(keys)
}

// benchmarkIn returns the Benchmark in files, that of a Study included. It is empty if there is none.
func benchmarkIn(files []File) *parse.Document {
	all := &documents{part: parse.StudyBenchmark}
	for _, f := range files {
		docs, _ := parse.Documents(f)
		for _, doc := range docs {
			if kind := doc.Value["kind"]; kind == "Benchmark" || kind == studyKind {
				all.add(&parse.Report{}, doc)
			}
		}
	}
	if all.benchmark == nil {
		return &parse.Document{Value: map[string]any{}}
	}
	return all.benchmark
}

// actionKeys are the names of the actions that create a workload, whose variables can be set.
func actionKeys(d *parse.Document) (keys []string) {
	for name := range d.Workloads() {
		keys = append(keys, name+".")
	}
	return keys
}

// variableKeys are the variables of the workload of an action, or of all workloads if action is "vars".
func variableKeys(d *parse.Document, action string) (keys []string) {
	library, err := BuiltIn()
	if err != nil {
		return nil
	}
	for name, workload := range d.Workloads() {
		entry, ok := library.Get(workload)
		if !ok || name != action && action != "vars" {
			continue
		}
		for _, v := range entry.Variables() {
			keys = append(keys, action+"."+v+"=")
		}
	}
	return keys
}

// fieldKeys are the fields of the object at a path of the form spec.actions.NAME, or the names of the list's elements.
func fieldKeys(d *parse.Document, path string) (keys []string) {
	var value any = d.Value
	fields := "" // the path with an index for each name
	for _, step := range strings.Split(path, ".") {
		switch v := value.(type) {
		case []any:
			value = parse.Element(v, step)
			fields += ".0"
		case map[string]any:
			value = v[step]
			fields += "." + step
		default: // the file does not set it
			fields += "." + step
		}
	}
	if list, isList := value.([]any); isList {
		for _, name := range parse.Names(list) {
			keys = append(keys, path+"."+name+".")
		}
		return keys
	}
	for name, leaf := range validate.Fields(strings.TrimPrefix(fields, ".")) {
		if leaf {
			keys = append(keys, path+"."+name+"=")
		} else {
			keys = append(keys, path+"."+name+".")
		}
	}
	return keys
}
