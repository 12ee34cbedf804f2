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
	compiled map[string]func() *cel.Validator // by the path in the schema
}

// ruled is a value whose schema has rules.
type ruled struct {
	at      *field.Path
	schema  *schema.Structural
	value   any
	compile func() *cel.Validator
}

// validate evaluates the rules of s and of all that it contains for v, which lies at the path at.
func (r *rules) validate(ctx context.Context, at *field.Path, s *schema.Structural, v any) field.ErrorList {
	all := r.walk(nil, at, "", s, v)
	var compiling sync.WaitGroup // in parallel: it is most of the time of a validation
	for _, x := range all {
		compiling.Go(func() { x.compile() })
	}
	compiling.Wait()
	var errs field.ErrorList
	for _, x := range all {
		found, _ := x.compile().Validate(ctx, x.at, x.schema, x.value, nil, celconfig.RuntimeCELCostBudget)
		errs = append(errs, found...)
	}
	return errs
}

// walk appends v and what it contains to all, as far as their schemas have rules.
func (r *rules) walk(all []ruled, at *field.Path, key string, s *schema.Structural, v any) []ruled {
	if s == nil || v == nil {
		return all
	}
	if len(s.XValidations) > 0 {
		all = append(all, ruled{at, s, v, r.of(key, s)})
	}
	switch v := v.(type) {
	case []any:
		for i, item := range v {
			all = r.walk(all, at.Index(i), key+"[]", s.Items, item)
		}
	case map[string]any:
		for name, value := range v {
			if p, ok := s.Properties[name]; ok {
				all = r.walk(all, at.Child(name), key+"."+name, &p, value)
			} else if s.AdditionalProperties != nil {
				all = r.walk(all, at.Key(name), key+".*", s.AdditionalProperties.Structural, value)
			}
		}
	}
	return all
}

// of returns what compiles the rules of s itself, once.
func (r *rules) of(key string, s *schema.Structural) func() *cel.Validator {
	r.mu.Lock()
	defer r.mu.Unlock()
	compile, ok := r.compiled[key]
	if !ok {
		compile = sync.OnceValue(func() *cel.Validator {
			own := s.DeepCopy()
			withoutRules(own)
			own.XValidations = s.XValidations
			return cel.NewValidator(own, key == "", celconfig.PerCallLimit)
		})
		r.compiled[key] = compile
	}
	return compile
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
