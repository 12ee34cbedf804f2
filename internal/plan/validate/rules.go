package validate

import (
	"context"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
)

// rules evaluates the CEL rules of a schema. The rules of an object are compiled when the first such object is met:
// to compile all rules of Benchmark takes longer than the rest of its validation, and a file meets few of them.
// It is safe for concurrent use.
type rules struct {
	mu       sync.Mutex
	compiled map[string]*cel.Validator // by the path in the schema
}

// validate evaluates the rules of s and of all that it contains for v, which lies at the path at.
func (r *rules) validate(ctx context.Context, at *field.Path, s *schema.Structural, v any) field.ErrorList {
	return r.walk(ctx, at, "", s, v)
}

func (r *rules) walk(ctx context.Context, at *field.Path, key string, s *schema.Structural, v any) field.ErrorList {
	if s == nil || v == nil {
		return nil
	}
	var errs field.ErrorList
	if len(s.XValidations) > 0 {
		errs, _ = r.of(key, s).Validate(ctx, at, s, v, nil, celconfig.RuntimeCELCostBudget)
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			errs = append(errs, r.walk(ctx, at.Index(i), key+"[]", s.Items, item)...)
		}
	case map[string]any:
		for name, value := range v {
			if p, ok := s.Properties[name]; ok {
				errs = append(errs, r.walk(ctx, at.Child(name), key+"."+name, &p, value)...)
			} else if s.AdditionalProperties != nil {
				errs = append(errs, r.walk(ctx, at.Key(name), key+".*", s.AdditionalProperties.Structural, value)...)
			}
		}
	}
	return errs
}

// of returns the compiled rules of s itself.
func (r *rules) of(key string, s *schema.Structural) *cel.Validator {
	r.mu.Lock()
	defer r.mu.Unlock()
	v, ok := r.compiled[key]
	if !ok {
		own := s.DeepCopy()
		withoutRules(own)
		own.XValidations = s.XValidations
		v = cel.NewValidator(own, key == "", celconfig.PerCallLimit)
		r.compiled[key] = v
	}
	return v
}

// withoutRules removes the rules of s and of all that it contains; the types stay.
func withoutRules(s *schema.Structural) {
	if s == nil {
		return
	}
	s.XValidations = nil
	for name, p := range s.Properties {
		withoutRules(&p)
		s.Properties[name] = p
	}
	withoutRules(s.Items)
	if s.AdditionalProperties != nil {
		withoutRules(s.AdditionalProperties.Structural)
	}
}
