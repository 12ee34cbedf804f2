package validate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
	"github.com/cnsbench/cnsbench/internal/hints"
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
	repeated(report, &s.Spec)
	spec, _ := report.Value["spec"].(map[string]any)
	studyCounts(report, "spec", spec, &s.Spec.Occasions, &s.Spec.Blocks, s.Spec.Repetitions)
	factorsOf(report, "spec.factors", s.Spec.Factors)
	variants := studyVariants(report, "spec.variants", s.Spec.Variants)
	for name, scale := range s.Spec.Scales {
		path := "spec.scales." + name
		scales, _ := spec["scales"].(map[string]any)
		studyCounts(report, path, scales[name], &scale.Occasions, &scale.Blocks, scale.Repetitions)
		for key := range scale.Factors {
			if _, ok := s.Spec.Factors[key]; !ok {
				report.Fail(path+".factors."+key, hints.Suggest(key, slices.Collect(maps.Keys(s.Spec.Factors))),
					"the study has no factor %q", key)
			}
		}
		factorsOf(report, path+".factors", scale.Factors)
		for i, variant := range studyVariants(report, path+".variants", scale.Variants) {
			if !slices.Contains(variants, variant) {
				report.Fail(fmt.Sprintf("%s.variants[%d].name", path, i), hints.Suggest(variant, variants),
					"the study has no variant %q", variant)
			}
		}
		s.Spec.Scales[name] = scale
	}
	precondition(report, spec["precondition"], s.Spec.Precondition)
	metrics(report, s.Spec.Metrics)
	return s
}
