package plan

import (
	"strings"
	"testing"
)

// TestStudyProblems checks that each mistake in a study's design is reported once, at its place.
func TestStudyProblems(t *testing.T) {
	const before = "apiVersion: cnsbench.dev/v1alpha1\nkind: Study\nmetadata: {name: x}\nspec:\n"
	const benchmark = "  benchmark: {actions: []}\n"
	tests := []struct{ name, spec, want string }{
		{"nothing to repeat", "  blocks: 2\n", "x.yaml:4:1: spec: spec.benchmark is missing"},
		{"two things", benchmark + "  objectWorkload: {file: x.xml}\n", "objectWorkload: a study repeats a benchmark or"},
		{"no file", "  objectWorkload: {}\n", "spec.objectWorkload: file is missing"},
		{"two numbers of blocks", benchmark + "  blocks: 2\n  repetitions: 3\n", "7:16: spec.repetitions: differs from"},
		{"in a scale", benchmark + "  scales: {s: {blocks: 2, repetitions: 3}}\n", "spec.scales.s.repetitions: differs"},
		{"too many", benchmark + "  occasions: 1001\n", "spec.occasions: must be from 1 to 1000"},
		{"no blocks", benchmark + "  blocks: 0\n", "spec.blocks: must be from 1 to 10000"},
		{"no blocks in a scale", benchmark + "  scales: {s: {blocks: 0}}\n", "spec.scales.s.blocks: must be from 1 to 10000"},
		{"no occasions", benchmark + "  occasions: 0\n", "spec.occasions: must be from 1 to 1000"},
		{"no rounds", benchmark + "  precondition: {rounds: 0}\n", "spec.precondition.rounds: must be from 1 to 1000"},
		{"no values", benchmark + "  factors: {fio.bs: []}\n", `factor "fio.bs" has no values`},
		{"unknown field", benchmark + "  factors: {fio.bs: {chioce: [4k]}}\n", `spec.factors.fio.bs.chioce: unknown field`},
		{"unknown bound", benchmark + "  factors: {fio.bs: {uniform: {min: 1, mox: 2}}}\n", "uniform.mox: unknown field"},
		{"missing bound", benchmark + "  factors: {fio.bs: {uniform: {min: 1}}}\n", "uniform: max is missing"},
		{"bounds", benchmark + "  factors: {fio.bs: {uniform: {min: 2, max: 1}}}\n", "want min below max"},
		{"in a scale's factor", benchmark + "  factors: {fio.bs: [4k]}\n  scales: {s: {factors: {fio.bs: {chioce: [1]}}}}\n",
			"spec.scales.s.factors.fio.bs.chioce: unknown field"},
		{"null choice", benchmark + "  factors: {fio.bs: {choice: [4k, ~]}}\n",
			"spec.factors.fio.bs.choice[1]: the value is missing"},
		{"neither list nor object", benchmark + "  factors: {fio.bs: 4k}\n", "cannot unmarshal"},
		{"steady without a response", benchmark + "  precondition: {steadyState: {}}\n", "response is missing"},
		{"too few rounds", benchmark + "  precondition: {steadyState: {response: p50(x), atMost: 4}}\n",
			"must be from 5 to 1000"},
		{"unknown variant in a scale",
			benchmark + "  variants: [{name: plain}]\n  scales: {s: {variants: [{name: plian}]}}\n",
			`spec.scales.s.variants[0].name: the study has no variant "plian" (did you mean "plain"?)`},
		{"two variants in a scale",
			benchmark + "  variants: [{name: a}]\n  scales: {s: {variants: [{name: a}, {name: a}]}}\n",
			"spec.scales.s.variants[1]: a variant needs a name of its own"},
		{"metric", benchmark + "  metrics: [{marginPercent: 5}]\n", "spec.metrics[0]: response is missing"},
		{"margin", benchmark + "  metrics: [{response: p50(x), marginPercent: 100}]\n", "less than 100"},
		{"direction", benchmark + "  metrics: [{response: p50(x), direction: up}]\n", `"up": want higher or lower`},
		{"unknown key", benchmark + "  occasion: 2\n", "spec.occasion: unknown field"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, problems := LoadStudy([]File{{Name: "x.yaml", Data: []byte(before + tt.spec)}})
			var all []string
			for _, p := range problems {
				all = append(all, p.String())
			}
			text := strings.Join(all, "\n")
			if s != nil || len(problems) != 1 || !strings.Contains(text, tt.want) {
				t.Errorf("%s\nwant %q", text, tt.want)
			}
		})
	}
}

// TestStudyNumbers checks that blocks take the value of their former name.
func TestStudyNumbers(t *testing.T) {
	const text = `apiVersion: cnsbench.dev/v1alpha1
kind: Study
metadata: {name: x}
spec:
  repetitions: 4
  scales: {s: {repetitions: 2}, t: {blocks: 3, occasions: 5}}
  benchmark: {actions: []}
`
	s, problems := LoadStudy([]File{{Name: "x.yaml", Data: []byte(text)}})
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	if s.Spec.Blocks != 4 || s.Spec.Scales["s"].Blocks != 2 || s.Spec.Scales["t"].Blocks != 3 ||
		s.Spec.Scales["t"].Occasions != 5 {
		t.Errorf("%+v", s.Spec)
	}
}
