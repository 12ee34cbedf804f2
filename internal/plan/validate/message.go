package validate

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/cnsbench/cnsbench/internal/hints"
	"github.com/cnsbench/cnsbench/internal/plan/parse"
	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

// unknownField returns the problem for an unknown field, with the fields of s, the schema
// of the object around it, as the hint.
func unknownField(s *schema.Structural, d *parse.Document, path string) parse.Problem {
	steps := strings.Split(parse.Normal(path), ".")
	name := steps[len(steps)-1]
	var known []string
	if s != nil {
		known = slices.Collect(maps.Keys(s.Properties))
	}
	return d.KeyProblem(path, hints.Suggest(name, known), "unknown field %q", name)
}

const notQuantity = "%s is not a quantity"

// patterns maps a part of a regular expression in the schema to a message and a hint.
var patterns = []struct{ part, message, hint string }{
	{"(ns|us|µs|ms|s|m|h)", "%s is not a length of time", "such as 500ms, 30s, 5m or 1h30m"},
	{"[numkMGTPE]", notQuantity, "such as 4Ki, 512Mi, 10Gi or 2.5"},
	{"^[a-z](", "%s cannot be a name here", "small letters, digits and dashes, a letter first"},
	{"^[A-Za-z](", "%s cannot be a name here", "letters, digits, dashes and underscores, a letter first"},
	{"^https?:", "%s is not an http or https URL", "write http:// or https:// first, such as http://HOST:PORT"},
}

var (
	inBody   = regexp.MustCompile(`^[A-Za-z0-9_.\[\]-]* in body `)
	ofType   = regexp.MustCompile(`must be of type ([a-z0-9,]+): "([a-z0-9]+)"`)
	quotable = regexp.MustCompile(`"([^"]*)"`)
)

// fieldProblem converts a validation error of the API server's libraries to a problem
// with its place in the file. s is the schema of the field; nil: none.
func fieldProblem(s *schema.Structural, d *parse.Document, e *field.Error) parse.Problem {
	p := d.Problem(e.Field, "", "%s", inBody.ReplaceAllString(e.Detail, ""))
	p.Path = display(e.Field)
	pattern := ""
	if s != nil && s.ValueValidation != nil {
		pattern = s.ValueValidation.Pattern
	}
	switch {
	case e.Type == field.ErrorTypeRequired && e.Detail == "":
		p.Message = "is missing"
	case e.Type == field.ErrorTypeInvalid && e.Detail != "" && strings.Contains(e.Detail, "should be greater than 0"):
		p.Message = "must be more than 0"
	case e.Type == field.ErrorTypeTooLong:
		text, ok := d.At(e.Field).(string)
		if ok && s != nil && s.ValueValidation != nil && s.ValueValidation.MaxLength != nil {
			p.Message = tooLong(text, int(*s.ValueValidation.MaxLength))
		}
	case e.Type == field.ErrorTypeDuplicate:
		p.Message, p.Hint = fmt.Sprintf("%s is there already", shown(e.BadValue)), "names must differ"
	case e.Type == field.ErrorTypeNotSupported:
		var values []string
		for _, m := range quotable.FindAllStringSubmatch(e.Detail, -1) {
			values = append(values, m[1])
		}
		p.Message, p.Hint = fmt.Sprintf("%s is not one of the values",
			shown(e.BadValue)), hints.Suggest(fmt.Sprint(e.BadValue), values)
	case e.Type == field.ErrorTypeTypeInvalid:
		p.Message, p.Hint = wrongType(p.Message, pattern, d.At(e.Field))
	case e.Type == field.ErrorTypeInvalid && strings.Contains(e.Detail, "should match"):
		if message, hint, ok := inWords(pattern); ok {
			p.Message, p.Hint = fmt.Sprintf(message, shown(e.BadValue)), hint
			if text, ok := d.At(e.Field).(string); ok && message == notQuantity {
				p.Hint = variable.QuantityHint(text)
			}
		}
	}
	return p
}

// tooLong returns the message for a text with more characters than a field may have.
func tooLong(text string, most int) string {
	return fmt.Sprintf("has %d characters: want at most %d", utf8.RuneCountInString(text), most)
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
func wrongType(message, pattern string, value any) (better, hint string) {
	m := ofType.FindStringSubmatch(message)
	if m == nil {
		return message, ""
	}
	words := map[string]string{"string": "text", "integer": "a whole number", "int32": "a whole number",
		"int64": "a whole number", "number": "a number",
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
