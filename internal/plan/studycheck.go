package plan

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/factor"
)

// Bounds of the numbers of a study.
const (
	maxOccasions = 1000
	maxBlocks    = 10000
	maxRounds    = 1000
)

// repeated checks that there is one thing to repeat.
func (l *loader) repeated(s *v1alpha1.StudySpec) {
	object, benchmark := s.ObjectWorkload, len(s.Benchmark.Raw) > 0
	switch {
	case object == nil && !benchmark:
		l.fail("spec", "benchmark: {actions: …}", "spec.benchmark is missing: the spec of what is repeated")
	case object != nil && benchmark:
		l.fail("spec.objectWorkload", "remove one", "a study repeats a benchmark or an objectWorkload")
	case object != nil && object.File == "":
		l.fail("spec.objectWorkload", "file: workload.xml", "file is missing")
	case object != nil && s.Precondition != nil && s.Precondition.Benchmark != nil:
		l.fail("spec.precondition.benchmark", "write rounds", "an objectWorkload is preconditioned by its own rounds")
	}
}

// studyCounts checks the numbers of a study or a scale, and gives blocks the value of its former name.
func (l *loader) studyCounts(path string, occasions, blocks *int32, repetitions int32) {
	if repetitions != 0 && *blocks != 0 && repetitions != *blocks {
		l.fail(path+".repetitions", "remove repetitions, the former name of blocks", "differs from blocks")
	}
	l.between(path+".occasions", *occasions, maxOccasions)
	l.between(path+".blocks", *blocks, maxBlocks)
	l.between(path+".repetitions", repetitions, maxBlocks)
	if *blocks == 0 {
		*blocks = repetitions
	}
}

// between checks a number that may be absent.
func (l *loader) between(path string, n, most int32) {
	if n < 0 || n > most {
		l.fail(path, "", "must be from 1 to %d", most)
	}
}

func (l *loader) factors(path string, factors map[string]v1alpha1.Factor) {
	for _, key := range sortedKeys(factors) {
		l.factor(path+"."+key, key, factors[key])
	}
}

func (l *loader) factor(path, key string, f v1alpha1.Factor) {
	if f.Distribution != nil {
		l.distribution(path, f.Distribution)
		return
	}
	if key == "" || len(f.Values) == 0 {
		l.fail(path, "such as [1, 10, 30]", "factor %q has no values", key)
	}
	for i, v := range f.Values {
		if slices.Contains(f.Values[:i], v) {
			l.fail(path, "blocks repeats", "value %q is there twice", v)
		}
	}
}

// distribution checks a distribution. Its type reads its JSON itself, so that its fields are checked here.
func (l *loader) distribution(path string, d *v1alpha1.Distribution) {
	raw, _ := l.valueAt(path).(map[string]any)
	before := len(l.problems)
	l.knownFields(path, raw, reflect.TypeFor[v1alpha1.Distribution]())
	for _, part := range []string{"uniform", "loguniform", "normal"} {
		if inner, ok := raw[part].(map[string]any); ok {
			of := reflect.TypeFor[v1alpha1.DistributionRange]()
			if part == "normal" {
				of = reflect.TypeFor[v1alpha1.NormalDistribution]()
			}
			if l.knownFields(path+"."+part, inner, of) {
				l.requiredFields(path+"."+part, inner, of)
			}
		}
	}
	if err := factor.Check(d); err != nil && len(l.problems) == before {
		l.fail(path, "", "%v", err)
	}
}

// valueAt returns the value of a factor in the file; nil if there is none.
func (l *loader) valueAt(path string) any {
	spec, _ := l.doc.value["spec"].(map[string]any)
	within := strings.TrimPrefix(path, "spec.")
	if rest, ok := strings.CutPrefix(within, "scales."); ok {
		name, key, _ := strings.Cut(rest, ".factors.")
		scales, _ := spec["scales"].(map[string]any)
		spec, _ = scales[name].(map[string]any)
		within = "factors." + key
	}
	factors, _ := spec["factors"].(map[string]any)
	return factors[strings.TrimPrefix(within, "factors.")]
}

// fieldNames lists the JSON names of a type's fields.
func fieldNames(of reflect.Type) (names []string) {
	for i := range of.NumField() {
		name, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// knownFields reports fields that a type does not have; false if there are any.
func (l *loader) knownFields(path string, raw map[string]any, of reflect.Type) bool {
	names, before := fieldNames(of), len(l.problems)
	for _, key := range sortedKeys(raw) {
		if !slices.Contains(names, key) {
			l.fail(path+"."+key, suggest(key, names), "unknown field")
		}
	}
	return len(l.problems) == before
}

func (l *loader) requiredFields(path string, raw map[string]any, of reflect.Type) {
	for _, name := range fieldNames(of) {
		if raw[name] == nil {
			l.fail(path, name+": …", "%s is missing", name)
		}
	}
}

func (l *loader) studyVariants(variants []v1alpha1.StudyVariant) {
	var names []string
	for i, v := range variants {
		if v.Name == "" || slices.Contains(names, string(v.Name)) {
			l.fail(fmt.Sprintf("spec.variants[%d]", i), "", "a variant needs a name of its own")
		}
		names = append(names, string(v.Name))
	}
}

func (l *loader) precondition(p *v1alpha1.StudyPrecondition) {
	if p == nil {
		return
	}
	l.between("spec.precondition.rounds", p.Rounds, maxRounds)
	steady := p.SteadyState
	if steady == nil {
		return
	}
	const path = "spec.precondition.steadyState"
	if steady.Response == "" {
		l.fail(path, "response: iops(fio.write)", "response is missing: what must be steady")
	}
	if steady.AtMost != 0 && (steady.AtMost < max(5, p.Rounds) || steady.AtMost > maxRounds) {
		l.fail(path+".atMost", "the rule looks at five rounds", "must be from %d to %d", max(5, p.Rounds), maxRounds)
	}
}

func (l *loader) metrics(metrics []v1alpha1.StudyMetric) {
	for i, m := range metrics {
		path := fmt.Sprintf("spec.metrics[%d]", i)
		if m.Response == "" {
			l.fail(path, "response: p50(pods)", "response is missing")
		}
		if m.MarginPercent != nil && !(m.MarginPercent.Value > 0 && m.MarginPercent.Value < 100) {
			l.fail(path+".marginPercent", "", "must be more than 0 and less than 100")
		}
		if !slices.Contains([]string{"", "higher", "lower"}, m.Direction) {
			l.fail(path+".direction", "", "invalid direction %q: want higher or lower", m.Direction)
		}
	}
}
