package expr

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

var literal = regexp.MustCompile(`\b[0-9]+(?:\.[0-9]+)?(?:ns|us|µs|ms|s|m|h)\b`)

// CompileShort is Compile for an expression of a command line, in which duration("20ms") may be written 20ms. The
// place of an error is that in src.
func CompileShort(src string, e Env) (*Program, error) {
	long, column := durations(src)
	p, err := Compile(long, e)
	var where *Error
	if errors.As(err, &where) && where.Line == 1 {
		where.Column = column(where.Column)
	}
	return p, err
}

// durations writes 20ms as duration("20ms") outside of quotes, and maps a column of the result to the original.
func durations(text string) (source string, column func(int) int) {
	type shift struct{ at, by int } // from the column at of source on, so many were put in
	var shifts []shift
	var b strings.Builder
	last, added := 0, 0
	for _, m := range literal.FindAllStringIndex(text, -1) {
		if strings.Count(text[:m[0]], `"`)%2 == 1 || strings.Count(text[:m[0]], `'`)%2 == 1 {
			continue
		}
		b.WriteString(text[last:m[0]])
		shifts = append(shifts, shift{b.Len(), added})
		fmt.Fprintf(&b, "duration(%q)", text[m[0]:m[1]])
		added = b.Len() - m[1]
		shifts = append(shifts, shift{b.Len(), added})
		last = m[1]
	}
	b.WriteString(text[last:])
	return b.String(), func(c int) int {
		by := 0
		for _, s := range shifts {
			if c > s.at {
				by = s.by
			}
		}
		return max(1, c-by)
	}
}
