package validate

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cnsbench/cnsbench/config/crd"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
)

// checker applies the CustomResourceDefinition of Benchmark as an API server does.
type checker struct {
	structural *schema.Structural
	openapi    validation.SchemaValidator
	rules      *rules
}

// benchmarkChecker returns the checker of Benchmark, which it makes at the first call.
var benchmarkChecker = sync.OnceValues(func() (*checker, error) { return newChecker(crd.BenchmarkSchema) })

func newChecker(text []byte) (*checker, error) {
	var given apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &given); err != nil {
		return nil, fmt.Errorf("embedded definition: %w", err)
	}
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&given, &props, nil)
	if err != nil {
		return nil, fmt.Errorf("embedded definition: %w", err)
	}
	structural, err := schema.NewStructural(&props)
	if err != nil {
		return nil, fmt.Errorf("embedded definition: %w", err)
	}
	openapi, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return nil, fmt.Errorf("embedded definition: %w", err)
	}
	return &checker{structural, openapi, &rules{compiled: map[string]func() *cel.Validator{}}}, nil
}

// apply prunes, defaults and validates d in place, and returns the problems.
func (c *checker) apply(ctx context.Context, d *parse.Document) []parse.Problem {
	var problems []parse.Problem
	unknown := pruning.PruneWithOptions(d.Value, c.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	around := map[string]bool{} // objects with an unknown field
	metaErr, unknownMeta := objectmeta.CoerceWithOptions(nil, d.Value, c.structural, true,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	unknown = append(unknown, unknownMeta...)
	for _, path := range unknown {
		around[parse.Parent(parse.Normal(path))] = true
	}

	defaulting.PruneNonNullableNullsWithoutDefaults(d.Value, c.structural)
	defaulting.Default(d.Value, c.structural)

	errs := validation.ValidateCustomResource(nil, d.Value, c.openapi)
	if metaErr != nil {
		errs = append(errs, metaErr)
	}
	errs = append(errs, objectmeta.Validate(ctx, nil, d.Value, c.structural, true)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, d.Value)...)
	broken, itself := map[string]bool{}, map[string]bool{}
	for _, e := range errs {
		if c.echo(e) {
			continue
		}
		problems = append(problems, fieldProblem(c.at(e.Field), d, e))
		itself[parse.Normal(e.Field)] = true
		for p := parse.Normal(e.Field); p != ""; p = parse.Parent(p) {
			broken[p] = true
		}
	}
	for _, path := range unknown {
		if !itself[parse.Parent(parse.Normal(path))] {
			problems = append(problems, unknownField(c.at(parse.Parent(parse.Normal(path))), d, path))
		}
	}
	// An API server skips the CEL rules if the schema validation fails. Evaluate them
	// anyway, so that all problems are reported at once, but ignore the rules of objects
	// that have a problem already.
	for _, e := range c.rules.validate(ctx, nil, c.structural, d.Value) {
		p := parse.Normal(e.Field)
		if broken[p] || around[p] && strings.Contains(e.Detail, "must be set") {
			continue
		}
		problems = append(problems, fieldProblem(c.at(e.Field), d, e))
	}
	return problems
}

// echo reports whether an error only repeats another. For an int-or-string field,
// validation reports separate errors for anyOf and for each of the types.
func (c *checker) echo(e *field.Error) bool {
	if strings.HasSuffix(e.Detail, "(anyOf)") || strings.HasSuffix(e.Detail, "of list-type map") ||
		strings.HasPrefix(e.Detail, "Checked value must be of type") {
		return true
	}
	s := c.at(e.Field)
	return s != nil && s.XIntOrString && strings.Contains(e.Detail, "must be of type integer:")
}

// at returns the schema at a path, or nil if the schema has no such path.
func (c *checker) at(path string) *schema.Structural {
	s := c.structural
	if path = parse.Normal(path); path == "" {
		return s
	}
	for _, step := range strings.Split(path, ".") {
		s = descend(s, step)
	}
	return s
}

func descend(s *schema.Structural, step string) *schema.Structural {
	if s == nil {
		return nil
	}
	if p, ok := s.Properties[step]; ok {
		return &p
	}
	if s.Items != nil {
		return s.Items
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// Fields returns the fields of the object at a normal path of a Benchmark, and whether each has a scalar value. For a
// list that has no elements yet, the path goes on with any index.
func Fields(path string) map[string]bool {
	c, err := benchmarkChecker()
	if err != nil {
		return nil
	}
	s := c.at(path)
	if s == nil {
		return nil
	}
	fields := map[string]bool{}
	for name := range s.Properties {
		of := s.Properties[name]
		fields[name] = of.Type != "object" && of.Type != "array"
	}
	return fields
}
