package validate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// APIVersion is the apiVersion of Benchmark and Study.
var APIVersion = v1alpha1.GroupVersion.String()

// Study decodes the Study of a report and checks it, apart from its Benchmark.
func Study(report *parse.Report) *v1alpha1.Study {
	s := &v1alpha1.Study{}
	if report.Value["apiVersion"] != APIVersion {
		report.Fail("apiVersion", "write apiVersion: "+APIVersion, "%q is not the apiVersion of a Study",
			report.Value["apiVersion"])
	}
	nullValues(report)
	if wrong := Strict(report.Document, s); len(wrong) > 0 {
		report.Add(wrong...)
		return s
	}
	if s.Name == "" {
		report.Fail("metadata", "metadata: {name: …}", "metadata.name is missing")
	}
	if len(s.Spec.Benchmark.Raw) == 0 {
		report.Fail("spec", "benchmark: {actions: …}", "spec.benchmark is missing: the spec of what is repeated")
	}
	if s.Spec.Repetitions < 0 || s.Spec.Repetitions > 10000 {
		report.Fail("spec.repetitions", "", "must be from 1 to 10000")
	}
	for key, values := range s.Spec.Factors {
		factor(report, "spec.factors."+key, key, values)
	}
	for name, scale := range s.Spec.Scales {
		for key, values := range scale.Factors {
			path := "spec.scales." + name + ".factors." + key
			if _, ok := s.Spec.Factors[key]; !ok {
				report.Fail(path, parse.Suggest(key, slices.Collect(maps.Keys(s.Spec.Factors))),
					"the study has no factor %q", key)
			}
			factor(report, path, key, values)
		}
	}
	var names []string
	for i, v := range s.Spec.Variants {
		if v.Name == "" || slices.Contains(names, string(v.Name)) {
			report.Fail(fmt.Sprintf("spec.variants[%d]", i), "", "a variant needs a name of its own")
		}
		names = append(names, string(v.Name))
	}
	return s
}

func factor(report *parse.Report, path, key string, values []v1alpha1.Var) {
	if key == "" || len(values) == 0 {
		report.Fail(path, "such as [1, 10, 30]", "factor %q has no values", key)
	}
	for i, v := range values {
		if slices.Contains(values[:i], v) {
			report.Fail(path, "repetitions repeats", "value %q is there twice", v)
		}
	}
}
