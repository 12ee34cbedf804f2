package validate

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/factor"
	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// Bounds of the numbers of a study.
const (
	maxOccasions = 1000
	maxBlocks    = 10000
	maxRounds    = 1000
)

// repeated checks that there is one thing to repeat.
func repeated(report *parse.Report, s *v1alpha1.StudySpec) {
	object, benchmark := s.ObjectWorkload, len(s.Benchmark.Raw) > 0
	switch {
	case object == nil && !benchmark:
		report.Fail("spec", "benchmark: {actions: …}", "spec.benchmark is missing: the spec of what is repeated")
	case object != nil && benchmark:
		report.Fail("spec.objectWorkload", "remove one", "a study repeats a benchmark or an objectWorkload")
	case object != nil && object.File == "":
		report.Fail("spec.objectWorkload", "file: workload.xml", "file is missing")
	case object != nil && s.Precondition != nil && s.Precondition.Benchmark != nil:
		report.Fail("spec.precondition.benchmark", "write rounds", "an objectWorkload is preconditioned by its own rounds")
	}
}

// studyCounts checks the numbers of a study or a scale, and gives blocks the value of its former name.
// given has the fields as they are written: 0 is not the same as absent.
func studyCounts(report *parse.Report, path string, given any, occasions, blocks *int32, repetitions int32) {
	if repetitions != 0 && *blocks != 0 && repetitions != *blocks {
		report.Fail(path+".repetitions", "remove repetitions, the former name of blocks", "differs from blocks")
	}
	between(report, path, "occasions", given, *occasions, maxOccasions)
	between(report, path, "blocks", given, *blocks, maxBlocks)
	between(report, path, "repetitions", given, repetitions, maxBlocks)
	if *blocks == 0 {
		*blocks = repetitions
	}
}

// between checks a number of the fields at a path that may be absent.
func between(report *parse.Report, path, name string, given any, n, most int32) {
	fields, _ := given.(map[string]any)
	value, written := fields[name]
	if n < 0 || n > most || n == 0 && written && value != nil {
		report.Fail(path+"."+name, "", "must be from 1 to %d", most)
	}
}

func factorsOf(report *parse.Report, path string, factors map[string]v1alpha1.Factor) {
	for _, key := range slices.Sorted(maps.Keys(factors)) {
		oneFactor(report, path+"."+key, key, factors[key])
	}
}

func oneFactor(report *parse.Report, path, key string, f v1alpha1.Factor) {
	if f.Distribution != nil {
		distribution(report, path, f.Distribution)
		return
	}
	if key == "" || len(f.Values) == 0 {
		report.Fail(path, "such as [1, 10, 30]", "factor %q has no values", key)
	}
	for i, v := range f.Values {
		if slices.Contains(f.Values[:i], v) {
			report.Fail(path, "blocks repeats", "value %q is there twice", v)
		}
	}
}

// distribution checks a distribution. Its type reads its JSON itself, so that its fields are checked here.
func distribution(report *parse.Report, path string, d *v1alpha1.Distribution) {
	raw, _ := valueAt(report, path).(map[string]any)
	before := len(report.Problems)
	knownFields(report, path, raw, reflect.TypeFor[v1alpha1.Distribution]())
	for _, part := range []string{"uniform", "loguniform", "normal"} {
		if inner, ok := raw[part].(map[string]any); ok {
			of := reflect.TypeFor[v1alpha1.DistributionRange]()
			if part == "normal" {
				of = reflect.TypeFor[v1alpha1.NormalDistribution]()
			}
			if knownFields(report, path+"."+part, inner, of) {
				requiredFields(report, path+"."+part, inner, of)
			}
		}
	}
	if err := factor.Check(d); err != nil && len(report.Problems) == before {
		report.Fail(path, "", "%v", err)
	}
}

// valueAt returns the value of a factor in the file; nil if there is none.
func valueAt(report *parse.Report, path string) any {
	spec, _ := report.Value["spec"].(map[string]any)
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
func knownFields(report *parse.Report, path string, raw map[string]any, of reflect.Type) bool {
	names, before := fieldNames(of), len(report.Problems)
	for _, key := range slices.Sorted(maps.Keys(raw)) {
		if !slices.Contains(names, key) {
			report.Fail(path+"."+key, hints.Suggest(key, names), "unknown field")
		}
	}
	return len(report.Problems) == before
}

func requiredFields(report *parse.Report, path string, raw map[string]any, of reflect.Type) {
	for _, name := range fieldNames(of) {
		if raw[name] == nil {
			report.Fail(path, name+": …", "%s is missing", name)
		}
	}
}

// studyVariants checks the variants at path, and returns their names.
func studyVariants(report *parse.Report, path string, variants []v1alpha1.StudyVariant) (names []string) {
	for i, v := range variants {
		if v.Name == "" || slices.Contains(names, string(v.Name)) {
			report.Fail(fmt.Sprintf("%s[%d]", path, i), "", "a variant needs a name of its own")
		}
		names = append(names, string(v.Name))
	}
	return names
}

func precondition(report *parse.Report, given any, p *v1alpha1.StudyPrecondition) {
	if p == nil {
		return
	}
	between(report, "spec.precondition", "rounds", given, p.Rounds, maxRounds)
	steady := p.SteadyState
	if steady == nil {
		return
	}
	const path = "spec.precondition.steadyState"
	if steady.Response == "" {
		report.Fail(path, "response: iops(fio.write)", "response is missing: what must be steady")
	}
	if steady.AtMost != 0 && (steady.AtMost < max(5, p.Rounds) || steady.AtMost > maxRounds) {
		report.Fail(path+".atMost", "the rule looks at five rounds", "must be from %d to %d", max(5, p.Rounds), maxRounds)
	}
}

func metrics(report *parse.Report, metrics []v1alpha1.StudyMetric) {
	for i, m := range metrics {
		path := fmt.Sprintf("spec.metrics[%d]", i)
		if m.Response == "" {
			report.Fail(path, "response: p50(pods)", "response is missing")
		}
		if m.MarginPercent != nil && !(m.MarginPercent.Value > 0 && m.MarginPercent.Value < 100) {
			report.Fail(path+".marginPercent", "", "must be more than 0 and less than 100")
		}
		if !slices.Contains([]string{"", "higher", "lower"}, m.Direction) {
			report.Fail(path+".direction", "", "invalid direction %q: want higher or lower", m.Direction)
		}
	}
}
