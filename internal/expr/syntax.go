package expr

import (
	"fmt"
	"regexp"
	"strings"
)

// syntaxMessage describes an error of CEL's parser at a place of the source and suggests a
// correction. CEL's own message is used where there is no better one.
func syntaxMessage(src string, line, column int, message string) string {
	before, after := around(src, line, column)
	where := fmt.Sprintf("column %d", column)
	if line > 1 {
		where = fmt.Sprintf("line %d, %s", line, where)
	}
	says := func(format string, args ...any) string {
		return fmt.Sprintf("syntax error at "+where+": "+format, args...)
	}
	if m := units.FindStringSubmatch(after); m != nil {
		if n := endNumber.FindString(before); n != "" {
			return says(`a duration is written duration("%s%s")`, strings.TrimSpace(n), m[0])
		}
	}
	switch {
	case after == "" && strings.Contains(message, "missing ')'"):
		return says("missing )")
	case after == "":
		return says("unexpected end: want a value")
	case after[0] == '"' || after[0] == '\'':
		return says("unterminated string, or a string in place of an operator")
	case strings.HasPrefix(message, "token recognition error"):
		return says("unexpected character %q", string([]rune(after)[:1]))
	case strings.Contains(message, "expecting <EOF>"):
		return says("unexpected %q after the end of the expression", word.FindString(after))
	}
	if found, _, ok := strings.Cut(message, " expecting {"); ok { // a list of all tokens
		message = "unexpected " + strings.TrimPrefix(strings.TrimPrefix(found, "mismatched input "),
			"extraneous input ")
	}
	return says("%s", strings.ReplaceAll(message, "'<EOF>'", "the end"))
}

var (
	units     = regexp.MustCompile(`^(ns|us|µs|ms|s|m|h)\b`)
	endNumber = regexp.MustCompile(`[0-9]+(\.[0-9]+)?\s*$`)
	word      = regexp.MustCompile(`^(\w+|.)`)
)

// around returns the text before and after a place in its line.
func around(src string, line, column int) (before, after string) {
	lines := strings.Split(src, "\n")
	if line > len(lines) {
		return src, ""
	}
	text := []rune(lines[line-1])
	at := min(max(column-1, 0), len(text))
	return string(text[:at]), string(text[at:])
}

// Env has the names that an expression may use.
type Env struct {
	// Actions has the metrics of each action: milestones and metrics of its workload. A nil
	// list accepts any metric, a nil map any action.
	Actions map[string][]string
	// Phases has the number of phases of actions with phases; a nil map accepts any number.
	Phases map[string]int
	// Baseline: baseline(…) may be used, the same figure of a run without the searched action.
	Baseline bool
	// Tenants are the names for violations and compliance; nil accepts any name.
	Tenants []string
	// Queries are the names of queries to Prometheus for value; nil accepts any name that is no action.
	Queries []string
}
