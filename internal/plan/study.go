package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

const studyKind = "Study"

// Paths of the specs of Benchmarks in a Study.
const (
	studyBenchmark    = "spec.benchmark"
	studyPrecondition = "spec.precondition.benchmark"
)

// benchmarkOf returns the Benchmark that a Study repeats, or another one of it, as a
// document. Commands that do not handle studies use it in place of the Study.
func benchmarkOf(study *document, part string) *document {
	d := &document{file: study.file, value: maps.Clone(study.value), places: map[string]place{},
		keys: map[string]place{}}
	var at any = study.value
	for name := range strings.SplitSeq(part, ".") {
		within, _ := at.(map[string]any)
		at = within[name]
	}
	d.value["kind"] = "Benchmark"
	delete(d.value, "spec")
	if at != nil {
		d.value["spec"] = at
	}
	lift(part, study.places, d.places)
	lift(part, study.keys, d.keys)
	return d
}

// lift copies the places of a Study to the paths that they have in its Benchmark.
func lift(part string, from, to map[string]place) {
	for path, at := range from {
		rest, within := strings.CutPrefix(path, part)
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
	l.repeated(&s.Spec)
	l.studyCounts("spec", &s.Spec.Occasions, &s.Spec.Blocks, s.Spec.Repetitions)
	l.factors("spec.factors", s.Spec.Factors)
	for name, scale := range s.Spec.Scales {
		path := "spec.scales." + name
		l.studyCounts(path, &scale.Occasions, &scale.Blocks, scale.Repetitions)
		for key := range scale.Factors {
			if _, ok := s.Spec.Factors[key]; !ok {
				l.fail(path+".factors."+key, suggest(key, sortedKeys(s.Spec.Factors)), "the study has no factor %q", key)
			}
		}
		l.factors(path+".factors", scale.Factors)
		s.Spec.Scales[name] = scale
	}
	l.studyVariants(s.Spec.Variants)
	l.precondition(s.Spec.Precondition)
	l.metrics(s.Spec.Metrics)
	s.Order = sortedKeys(s.Spec.Factors)
	slices.SortStableFunc(s.Order, func(a, b string) int { return l.line(a) - l.line(b) })
	return s
}

// line returns the line of a factor in the file.
func (l *loader) line(factor string) int { return l.doc.findKey("spec.factors." + factor).line }
