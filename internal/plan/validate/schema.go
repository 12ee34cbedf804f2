package plan

import (
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
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
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	"github.com/cnsbench/cnsbench/config/crd"
	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

// checker applies the CustomResourceDefinition of Benchmark as an API server does.
type checker struct {
	structural *schema.Structural
	openapi    validation.SchemaValidator
	rules      *cel.Validator
}

// benchmarkChecker returns the checker of Benchmark, which it compiles at the first
// call.
var benchmarkChecker = sync.OnceValues(func() (*checker, error) { return newChecker(crd.Benchmark) })

func newChecker(definition []byte) (*checker, error) {
	var v1 apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(definition, &v1); err != nil {
		return nil, fmt.Errorf("embedded definition: %w", err)
	}
	var props apiextensions.JSONSchemaProps
	err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1.Spec.Versions[0].Schema.OpenAPIV3Schema, &props, nil)
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
	return &checker{structural, openapi, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// apply prunes, defaults and validates d in place, and returns the problems.
func (c *checker) apply(ctx context.Context, d *document) []Problem {
	var problems []Problem
	unknown := pruning.PruneWithOptions(d.value, c.structural, true,
		schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	around := map[string]bool{} // objects with an unknown field
	metaErr, unknownMeta := objectmeta.CoerceWithOptions(nil, d.value, c.structural, true,
		objectmeta.CoerceOptions{ReturnUnknownFieldPaths: true})
	unknown = append(unknown, unknownMeta...)
	for _, path := range unknown {
		around[parent(normal(path))] = true
	}

	defaulting.PruneNonNullableNullsWithoutDefaults(d.value, c.structural)
	defaulting.Default(d.value, c.structural)

	errs := validation.ValidateCustomResource(nil, d.value, c.openapi)
	if metaErr != nil {
		errs = append(errs, metaErr)
	}
	errs = append(errs, objectmeta.Validate(ctx, nil, d.value, c.structural, true)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, c.structural, d.value)...)
	broken, itself := map[string]bool{}, map[string]bool{}
	for _, e := range errs {
		if c.echo(e) {
			continue
		}
		problems = append(problems, c.fieldProblem(d, e))
		itself[normal(e.Field)] = true
		for p := normal(e.Field); p != ""; p = parent(p) {
			broken[p] = true
		}
	}
	for _, path := range unknown {
		if !itself[parent(normal(path))] {
			problems = append(problems, c.unknownField(d, path))
		}
	}
	// An API server skips the CEL rules if the schema validation fails. Evaluate them
	// anyway, so that all problems are reported at once, but ignore the rules of objects
	// that have a problem already.
	ruleErrs, _ := c.rules.Validate(ctx, nil, c.structural, d.value, nil, celconfig.RuntimeCELCostBudget)
	for _, e := range ruleErrs {
		p := normal(e.Field)
		if broken[p] || around[p] && strings.Contains(e.Detail, "must be set") {
			continue
		}
		problems = append(problems, c.fieldProblem(d, e))
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

func parent(path string) string { return path[:max(strings.LastIndexByte(path, '.'), 0)] }

// unknownField returns the problem for an unknown field, with known fields of the same
// object as the hint.
func (c *checker) unknownField(d *document, path string) Problem {
	steps := strings.Split(normal(path), ".")
	name := steps[len(steps)-1]
	at := d.findKey(path)
	var known []string
	if s := c.at(parent(normal(path))); s != nil {
		known = slices.Collect(maps.Keys(s.Properties))
	}
	return Problem{File: at.file, Line: at.line, Column: at.col, Path: path,
		Message: fmt.Sprintf("unknown field %q", name), Hint: suggest(name, known)}
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

const notQuantity = "%s is not a quantity"

// patterns maps a part of a regular expression in the schema to a message and a hint.
var patterns = []struct{ part, message, hint string }{
	{"(ns|us|µs|ms|s|m|h)", "%s is not a length of time", "such as 500ms, 30s, 5m or 1h30m"},
	{"[numkMGTPE]", notQuantity, "such as 4Ki, 512Mi, 10Gi or 2.5"},
	{"^[a-z](", "%s cannot be a name here", "small letters, digits and dashes, a letter first"},
	{"^[A-Za-z](", "%s cannot be a name here", "letters, digits, dashes and underscores, a letter first"},
	{"^https?:", "%s is not an http or https URL", "such as http://host:9200/index/_doc/"},
}

var (
	inBody   = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]* in body `)
	ofType   = regexp.MustCompile(`must be of type ([a-z,]+): "([a-z]+)"`)
	quotable = regexp.MustCompile(`"([^"]*)"`)
)

// fieldProblem converts a validation error of the API server's libraries to a problem
// with its place in the file.
func (c *checker) fieldProblem(d *document, e *field.Error) Problem {
	at := d.find(e.Field)
	p := Problem{File: at.file, Line: at.line, Column: at.col, Path: display(e.Field),
		Message: inBody.ReplaceAllString(e.Detail, "")}
	pattern := ""
	if s := c.at(e.Field); s != nil && s.ValueValidation != nil {
		pattern = s.ValueValidation.Pattern
	}
	switch {
	case e.Type == field.ErrorTypeRequired && e.Detail == "":
		p.Message = "is missing"
	case e.Type == field.ErrorTypeInvalid && e.Detail != "" && strings.Contains(e.Detail, "should be greater than 0"):
		p.Message = "must be more than 0"
	case e.Type == field.ErrorTypeDuplicate:
		p.Message, p.Hint = fmt.Sprintf("%s is there already", shown(e.BadValue)), "names must differ"
	case e.Type == field.ErrorTypeNotSupported:
		var values []string
		for _, m := range quotable.FindAllStringSubmatch(e.Detail, -1) {
			values = append(values, m[1])
		}
		p.Message, p.Hint = fmt.Sprintf("%s is not one of the values",
			shown(e.BadValue)), suggest(fmt.Sprint(e.BadValue), values)
	case e.Type == field.ErrorTypeTypeInvalid:
		p.Message, p.Hint = c.wrongType(p.Message, pattern, d.at(e.Field))
	case e.Type == field.ErrorTypeInvalid && strings.Contains(e.Detail, "should match"):
		if message, hint, ok := inWords(pattern); ok {
			p.Message, p.Hint = fmt.Sprintf(message, shown(e.BadValue)), hint
			if text, ok := e.BadValue.(string); ok && message == notQuantity {
				p.Hint = variable.QuantityHint(text)
			}
		}
	}
	return p
}

// inWords returns the message and the hint for a regular expression of the schema.
func inWords(pattern string) (message, hint string, ok bool) {
	for _, known := range patterns {
		if strings.Contains(pattern, known.part) {
			return known.message, known.hint, true
		}
	}
	return "", "", false
}

// wrongType returns a message that names the expected type, and a hint with an
// example.
func (c *checker) wrongType(message, pattern string, value any) (better, hint string) {
	m := ofType.FindStringSubmatch(message)
	if m == nil {
		return message, ""
	}
	words := map[string]string{"string": "text", "integer": "a whole number", "number": "a number",
		"boolean": "true or false",
		"array":   "a list", "object": "a mapping", "integer,string": "text or a whole number"}
	want, ok := words[m[1]]
	if !ok {
		return message, ""
	}
	better = "must be " + want
	_, hint, known := inWords(pattern)
	switch {
	case value == nil && strings.Contains(m[1], "string"):
		return "the value is missing", `the text null is written "null"`
	case known:
		return fmt.Sprintf("%s, not %v", better, value), hint
	case (m[1] == "string" || m[1] == "integer,string") && m[2] != "array" && m[2] != "object":
		return fmt.Sprintf("%s, not %v", better, value), fmt.Sprintf("put it in quotes: %q", fmt.Sprint(value))
	case m[2] == "array" || m[2] == "object":
		return better + ", not " + words[m[2]], ""
	}
	return fmt.Sprintf("%s, not %s", better, shown(value)), ""
}

// at returns the schema at a path, or nil if the schema has no such path.
func (c *checker) at(path string) *schema.Structural {
	s := c.structural
	if path = normal(path); path == "" {
		return s
	}
	for _, step := range strings.Split(path, ".") {
		s = descend(s, step)
	}
	return s
}

func shown(v any) string {
	switch v := v.(type) {
	case nil:
		return "nothing"
	case map[string]any:
		if name, ok := v["name"]; ok {
			return shown(name)
		}
		return "this"
	case string:
		return fmt.Sprintf("%q", v)
	}
	return fmt.Sprint(v)
}

// display removes the prefix that the libraries put before a path at the root.
func display(path string) string {
	path = strings.TrimPrefix(path, "<nil>")
	return strings.TrimPrefix(path, ".")
}
