package plan

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

const studyKind = "Study"

// studyBenchmark is the path of the Benchmark's spec in a Study.
const studyBenchmark = "spec.benchmark"

// benchmarkOf returns the Benchmark that a Study repeats, as a document. Commands that
// do not handle studies use it in place of the Study.
func benchmarkOf(study *document) *document {
	d := &document{file: study.file, value: maps.Clone(study.value), places: map[string]place{},
		keys: map[string]place{}}
	spec, _ := study.value["spec"].(map[string]any)
	d.value["kind"] = "Benchmark"
	delete(d.value, "spec")
	if b, ok := spec["benchmark"]; ok {
		d.value["spec"] = b
	}
	lift(study.places, d.places)
	lift(study.keys, d.keys)
	return d
}

// lift copies the places of a Study to the paths that they have in its Benchmark.
func lift(from, to map[string]place) {
	for path, at := range from {
		rest, within := strings.CutPrefix(path, studyBenchmark)
		switch {
		case within && (rest == "" || rest[0] == '.'):
			to["spec"+rest] = at
		case path != "spec" && !strings.HasPrefix(path, "spec."):
			to[path] = at
		}
	}
}

// Study is a Study in a file.
type Study struct {
	v1alpha1.Study
	// Order lists the factors in the order of the file.
	Order []string
}

// LoadStudy returns the Study in files. Without a Study it returns nil and no problems.
// It does not check the Benchmark: Load does so for each trial.
func LoadStudy(files []File) (*Study, []Problem) {
	l := &loader{}
	var found *Study
	for _, f := range files {
		docs, problems := parseFile(f)
		l.problems = append(l.problems, problems...)
		for _, d := range docs {
			if d.value["kind"] != studyKind {
				continue
			}
			l.doc = d
			if found != nil {
				l.fail("kind", "one file, one study", "this is a second Study")
				continue
			}
			found = l.study(d)
		}
	}
	if len(l.problems) > 0 {
		return nil, sorted(l.problems)
	}
	return found, nil
}

func (l *loader) study(d *document) *Study {
	s := &Study{}
	if d.value["apiVersion"] != apiVersion {
		l.fail("apiVersion", "write apiVersion: "+apiVersion, "%q is not the apiVersion of a Study",
			d.value["apiVersion"])
	}
	l.nullValues(d)
	if !l.strict(d, &s.Study) {
		return s
	}
	if s.Name == "" {
		l.fail("metadata", "metadata: {name: …}", "metadata.name is missing")
	}
	if len(s.Spec.Benchmark.Raw) == 0 {
		l.fail("spec", "benchmark: {actions: …}", "spec.benchmark is missing: the spec of what is repeated")
	}
	if s.Spec.Repetitions < 0 || s.Spec.Repetitions > 10000 {
		l.fail("spec.repetitions", "", "must be from 1 to 10000")
	}
	for key, values := range s.Spec.Factors {
		l.factor("spec.factors."+key, key, values)
	}
	for name, scale := range s.Spec.Scales {
		for key, values := range scale.Factors {
			path := "spec.scales." + name + ".factors." + key
			if _, ok := s.Spec.Factors[key]; !ok {
				l.fail(path, suggest(key, sortedKeys(s.Spec.Factors)), "the study has no factor %q", key)
			}
			l.factor(path, key, values)
		}
	}
	var names []string
	for i, v := range s.Spec.Variants {
		if v.Name == "" || slices.Contains(names, string(v.Name)) {
			l.fail(fmt.Sprintf("spec.variants[%d]", i), "", "a variant needs a name of its own")
		}
		names = append(names, string(v.Name))
	}
	s.Order = sortedKeys(s.Spec.Factors)
	slices.SortStableFunc(s.Order, func(a, b string) int { return l.line(a) - l.line(b) })
	return s
}

// line returns the line of a factor in the file.
func (l *loader) line(factor string) int { return l.doc.findKey("spec.factors." + factor).line }

func (l *loader) factor(path, key string, values []v1alpha1.Var) {
	if key == "" || len(values) == 0 {
		l.fail(path, "such as [1, 10, 30]", "factor %q has no values", key)
	}
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			l.fail(path, "repetitions repeats", "value %q is there twice", v)
		}
	}
}
