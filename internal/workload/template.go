package workload

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/cnsbench/cnsbench/internal/workload/variable"
)

// reference matches {{name}}, with or without spaces, and {{name.bytes}}. Other text in
// double braces, such as a Go template in a script, is not changed.
var reference = regexp.MustCompile(`\{\{\s*([A-Za-z_][A-Za-z0-9_-]*(?:\.bytes)?)\s*\}\}`)

// bytesSuffix follows the name of a variable of type size, for its value in bytes.
const bytesSuffix = ".bytes"

// maxText bounds a rendered part.
const maxText = 1 << 20

// Error is an error in an entry or in its variables.
type Error struct {
	Var     string // variable, or empty
	Part    string // part, or empty
	Message string
	Hint    string
	// Known lists the names of variables if Var is unknown, or the valid values in
	// place of Got.
	Known   []string
	Got     string
	unknown bool
}

// Unknown reports whether the name of Var is unknown, rather than its value invalid.
func (e *Error) Unknown() bool { return e.unknown }

func (e *Error) Error() string {
	s := e.Message
	if e.Part != "" {
		s = e.Part + ": " + s
	}
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Variables returns the variables of the entry's parts and defaults, sorted, without the
// built-in ones.
func (e *Entry) Variables() []string {
	names := maps.Clone(e.Defaults)
	if names == nil {
		names = map[string]string{}
	}
	for _, p := range e.Parts {
		for _, m := range reference.FindAllStringSubmatch(p.Text, -1) {
			names[strings.TrimSuffix(m[1], bytesSuffix)] = ""
		}
	}
	for b := range builtin(Params{}) {
		delete(names, b)
	}
	return sortedKeys(names)
}

// Resolve adds the defaults to the given values, and returns errors for unknown variables,
// invalid values, and variables without a value.
func (e *Entry) Resolve(given map[string]string) (map[string]string, []*Error) {
	known := e.Variables()
	values := maps.Clone(e.Defaults)
	if values == nil {
		values = map[string]string{}
	}
	var problems []*Error
	for _, name := range sortedKeys(given) {
		if !slices.Contains(known, name) {
			message := fmt.Sprintf("workload %q has no variable %q", e.Name, name)
			if _, ok := builtin(Params{})[name]; ok {
				message = fmt.Sprintf("%s is set by CNSBench", name)
			}
			problems = append(problems, &Error{Var: name, Message: message, Known: known, unknown: true})
			continue
		}
		values[name] = given[name]
		if p := e.check(name, given[name]); p != nil {
			problems = append(problems, &Error{Var: name, Message: p.Message, Hint: p.Hint, Known: p.Values,
				Got: given[name]})
		}
	}
	for _, name := range known {
		if _, ok := values[name]; !ok {
			problems = append(problems, &Error{Message: fmt.Sprintf("workload %q needs a value for its variable %q",
				e.Name,
				name),
				Hint: fmt.Sprintf("vars: {%s: …}", name)})
		}
	}
	return values, problems
}

// check returns why a value is invalid. Built-in variables in it have the values of a first
// instance.
func (e *Entry) check(name, value string) *variable.Problem {
	first := Params{Action: "action", Count: 1, RunID: "run", ToolsImage: "image", Image: "image"}
	filled, _, err := fill(value, builtin(first))
	if err != nil {
		return &variable.Problem{Message: err.Error()}
	}
	return e.Types[name].Check(filled)
}

// bytes returns NAME.bytes of each variable of type size with a value.
func (e *Entry) bytes(values, builtins map[string]string) (map[string]string, error) {
	sizes := map[string]string{}
	for name, t := range e.Types {
		value, ok := values[name]
		if !ok || !t.Size() {
			continue
		}
		filled, _, err := fill(value, builtins)
		if err != nil {
			return nil, err
		}
		n, err := t.Bytes(filled)
		if err != nil {
			return nil, fmt.Errorf("variable %q: %w", name, err)
		}
		sizes[name+bytesSuffix] = strconv.FormatInt(n, 10)
	}
	return sizes, nil
}

// substitute replaces the variables in text. Values may refer to built-in variables only.
func substitute(text string, values, builtins map[string]string) (string, error) {
	if !strings.Contains(text, "{{") && len(text) <= maxText {
		return text, nil
	}
	expanded := make(map[string]string, len(values)+len(builtins))
	for k, v := range values {
		v, _, err := fill(v, builtins)
		if err != nil {
			return "", fmt.Errorf("variable %q: %w", k, err)
		}
		expanded[k] = v // remaining braces are text
	}
	maps.Copy(expanded, builtins)
	out, missing, err := fill(text, expanded)
	if err == nil && missing != "" {
		err = fmt.Errorf("variable %q has no value", missing)
		if name, ok := strings.CutSuffix(missing, bytesSuffix); ok {
			err = fmt.Errorf("%s: variable %q is not of type size", missing, name)
		}
	}
	return out, err
}

// fill replaces each variable that has a value, and returns one without a value.
func fill(text string, values map[string]string) (out, missing string, err error) {
	size := len(text)
	out = reference.ReplaceAllStringFunc(text, func(s string) string {
		name := reference.FindStringSubmatch(s)[1]
		v, ok := values[name]
		if !ok {
			missing = name
			return s
		}
		if size += len(v); size > maxText {
			return ""
		}
		return v
	})
	if size > maxText {
		return "", "", fmt.Errorf("more than %d bytes when its variables are filled in", maxText)
	}
	return out, missing, nil
}
