package expr

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/env"
	"github.com/google/cel-go/common/operators"
)

// maxLength bounds an expression's size in bytes; maxDepth its nesting.
const (
	maxLength = 4096
	maxDepth  = 64
)

// Error is an error in an expression with its place.
type Error struct {
	Line, Column int // 1-based
	Message      string
}

// Error is the message with its place.
func (e *Error) Error() string {
	if e.Line > 1 {
		return fmt.Sprintf("line %d, column %d: %s", e.Line, e.Column, e.Message)
	}
	return fmt.Sprintf("column %d: %s", e.Column, e.Message)
}

// Program is a compiled expression. It is immutable and safe for concurrent use.
type Program struct {
	program cel.Program
	slots   []slot
}

// Queries returns the queries of the expression in order of the text.
func (p *Program) Queries() []Query {
	var qs []Query
	for _, s := range p.slots {
		if s.query != nil {
			qs = append(qs, *s.query)
		}
	}
	return qs
}

// Compile checks and compiles src. The error is an *Error, the first in the text.
func Compile(src string, e Env) (*Program, error) {
	if len(src) > maxLength {
		return nil, &Error{Line: 1, Column: maxLength + 1,
			Message: fmt.Sprintf("expression of %d bytes: want at most %d",
				len(src), maxLength)}
	}
	p := &parser{known: e, src: src}
	base, err := cel.NewCustomEnv(append(algebra(),
		cel.StdLib(cel.StdLibSubset(logic())),
		cel.Macros(p.macros()...),
		cel.ParserRecursionLimit(maxDepth),
	)...)
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	parsed, issues := base.Parse(src)
	if err := p.firstError(issues); err != nil {
		return nil, err
	}
	bound, err := base.Extend(p.variables()...)
	if err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	checked, issues := bound.Check(parsed)
	if err := p.firstError(issues); err != nil {
		return nil, err
	}
	if t := checked.OutputType(); !t.IsExactType(cel.BoolType) {
		return nil, &Error{Line: 1, Column: 1,
			Message: fmt.Sprintf("the expression is a %s, not a boolean: compare it with a bound",
				plainType(t.String()))}
	}
	if len(p.Queries()) == 0 {
		return nil, &Error{Line: 1, Column: 1, Message: "the expression names no action and no tenant"}
	}
	program, err := bound.Program(checked)
	if err != nil {
		return nil, &Error{Line: 1, Column: 1, Message: err.Error()}
	}
	return &Program{program: program, slots: p.slots}, nil
}

func (p *parser) Queries() []Query { return (&Program{slots: p.slots}).Queries() }

// logic is the used part of CEL's standard library.
func logic() *env.LibrarySubset {
	return env.NewLibrarySubset().SetDisableMacros(true).AddIncludedFunctions(
		env.NewFunction(operators.LogicalAnd), env.NewFunction(operators.LogicalOr),
		env.NewFunction(operators.LogicalNot), env.NewFunction(operators.Conditional))
}

// firstError returns the first issue in order of the text; syntax errors come first.
func (p *parser) firstError(issues *cel.Issues) error {
	if issues == nil || len(issues.Errors()) == 0 {
		return nil
	}
	errs := slices.Clone(issues.Errors())
	slices.SortStableFunc(errs, func(a, b *cel.Error) int {
		if sa, sb := isSyntax(a), isSyntax(b); sa != sb {
			return map[bool]int{true: -1, false: 1}[sa]
		}
		return cmp.Or(a.Location.Line()-b.Location.Line(), a.Location.Column()-b.Location.Column())
	})
	first := errs[0]
	e := &Error{Line: max(1, first.Location.Line()), Column: max(1, first.Location.Column()+1)}
	if e.Message = p.translate(first.Message); isSyntax(first) {
		e.Message = syntaxMessage(p.src, e.Line, e.Column, e.Message)
	}
	return e
}

const syntaxError = "Syntax error: "

func isSyntax(e *cel.Error) bool { return strings.HasPrefix(e.Message, syntaxError) }

// translate rewords CEL's messages.
func (p *parser) translate(message string) string {
	message, _, _ = strings.Cut(message, "\n")
	if name, ok := between(message, "undeclared reference to '", "'"); ok {
		if _, isAction := p.known.Actions[name]; isAction {
			return fmt.Sprintf("%s is an action: use a function, such as count(%s) or p99(%s)", name, name, name)
		}
		names := append(sortedKeys(functions), "duration", "during", "outside", "after", "phase", "span", "action", "baseline")
		return fmt.Sprintf("there is no function %q%s", name, suggest(name, names))
	}
	if strings.Contains(message, "found no matching overload for '") {
		op, _ := between(message, "overload for '", "'")
		args, _ := between(message, "applied to '(", ")'")
		op = strings.Trim(op, "_")
		return fmt.Sprintf("%q does not go with %s%s", op, strings.ReplaceAll(plainType(args), ", ", " and "),
			hint(args))
	}
	return strings.TrimPrefix(message, syntaxError)
}

func hint(args string) string {
	a, b, ok := strings.Cut(plainType(args), ", ")
	if ok && a != b && (a == "duration" || b == "duration") {
		return `: a duration is written duration("1.5s")`
	}
	return ""
}

// plainType names types as in the documentation, which has one type of numbers.
func plainType(t string) string {
	return strings.NewReplacer("uint", "number", "int", "number", "double", "number").Replace(t)
}

func between(s, before, after string) (string, bool) {
	_, s, ok := strings.Cut(s, before)
	if !ok {
		return "", false
	}
	s, _, ok = strings.Cut(s, after)
	return s, ok
}
