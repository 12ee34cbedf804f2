package study

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cnsbench/cnsbench/api/v1alpha1"
)

// Options select a scale of a study and override its values.
type Options struct {
	Scale     string
	Blocks    int32                      // 0: the study's
	Occasions int32                      // 0: the study's
	Factors   map[string]v1alpha1.Factor // values of factors, or further factors
	Set       []string                   // KEY=VALUE for every trial
	// AA runs the cells with these levels twice in each block; nil: the study's.
	AA *v1alpha1.StudyAAArm
	// Seed is that of the order of trials, for a study without a seed.
	Seed int64
}

// edition is the spec with a scale and the options applied.
func edition(spec v1alpha1.StudySpec, o Options) (v1alpha1.StudySpec, error) {
	factors := maps.Clone(spec.Factors)
	if factors == nil {
		factors = map[string]v1alpha1.Factor{}
	}
	if o.Scale != "" && o.Scale != "full" {
		scale, ok := spec.Scales[o.Scale]
		if !ok {
			return spec, fmt.Errorf("the study has no scale %q; it has %s", o.Scale,
				strings.Join(append(sortedKeys(spec.Scales), "full"), ", "))
		}
		maps.Copy(factors, scale.Factors)
		spec.Variants = slices.Clone(spec.Variants)
		for i, v := range spec.Variants {
			if k := slices.IndexFunc(scale.Variants, func(x v1alpha1.StudyVariant) bool { return x.Name == v.Name }); k >= 0 {
				spec.Variants[i] = scale.Variants[k]
			}
		}
		replace(&spec.Blocks, scale.Blocks)
		replace(&spec.Occasions, scale.Occasions)
	}
	maps.Copy(factors, o.Factors)
	spec.Factors = factors
	replace(&spec.Blocks, o.Blocks)
	replace(&spec.Occasions, o.Occasions)
	if o.AA != nil {
		spec.AAArm = o.AA
	}
	return spec, nil
}

// replace overrides a number unless the new one is absent.
func replace(n *int32, by int32) {
	if by > 0 {
		*n = by
	}
}

// ParseFactors reads values of factors as a command line has them: KEY=VALUE,VALUE…
func ParseFactors(texts []string) (map[string]v1alpha1.Factor, error) {
	factors := map[string]v1alpha1.Factor{}
	for _, text := range texts {
		key, values, ok := strings.Cut(text, "=")
		if !ok || key == "" || values == "" {
			return nil, fmt.Errorf("invalid --factor %q: want KEY=VALUE,VALUE…", text)
		}
		f := factors[key]
		for v := range strings.SplitSeq(values, ",") {
			f.Values = append(f.Values, v1alpha1.Var(v))
		}
		factors[key] = f
	}
	return factors, nil
}

// ParseAA reads the levels of an A/A arm as a command line has them: KEY=VALUE, or "all".
func ParseAA(texts []string) (*v1alpha1.StudyAAArm, error) {
	if len(texts) == 0 {
		return nil, nil
	}
	arm := &v1alpha1.StudyAAArm{Levels: map[string]v1alpha1.Var{}}
	for _, text := range texts {
		if text == "all" && len(texts) == 1 {
			return arm, nil
		}
		key, value, ok := strings.Cut(text, "=")
		if !ok || key == "" || value == "" {
			return nil, fmt.Errorf("invalid --aa %q: want FACTOR=VALUE, or all", text)
		}
		arm.Levels[key] = v1alpha1.Var(value)
	}
	return arm, nil
}
