package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Problem is an error or a warning about a file, with its place.
type Problem struct {
	File         string
	Line, Column int    // 1-based; 0: unknown
	Path         string // spec.actions[0].createObjSpec.workload
	Message      string // description of the problem
	Hint         string // how to fix it; may be empty
}

// String returns a problem in the stable format
// FILE:LINE:COLUMN: PATH: MESSAGE (HINT). Parts that are not known are omitted.
func (p Problem) String() string {
	var b strings.Builder
	if p.File != "" {
		b.WriteString(p.File)
		if p.Line > 0 {
			fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
		}
		b.WriteString(": ")
	}
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Message)
	if p.Hint != "" {
		b.WriteString(" (" + p.Hint + ")")
	}
	return b.String()
}

// Sorted sorts problems by place and removes duplicates. It modifies ps.
func Sorted(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}
