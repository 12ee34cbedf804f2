package model

import (
	"cmp"
	"fmt"
	"slices"
)

// Problem is a problem of a file, at a line.
type Problem struct {
	Line    int    // 0: the whole file
	Column  int    // in characters, from 1; 0: unknown
	Key     string // the setting concerned, by its name in COSBench; may be empty
	Warning bool   // the file can be run
	Message string // what is wrong
	Hint    string // what to do
}

// String formats the problem as one line, without the file's name.
func (p Problem) String() string {
	text := p.Message
	if p.Hint != "" {
		text += ": " + p.Hint
	}
	if p.Warning {
		text = "warning: " + text
	}
	switch {
	case p.Line > 0 && p.Column > 0:
		return fmt.Sprintf("%d:%d: %s", p.Line, p.Column, text)
	case p.Line > 0:
		return fmt.Sprintf("%d: %s", p.Line, text)
	}
	return text
}

// Problems collects all problems of a file, so that they are reported together.
type Problems []Problem

// Fail adds a problem.
func (ps *Problems) Fail(line int, hint, format string, args ...any) {
	*ps = append(*ps, Problem{Line: line, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Warn adds a warning.
func (ps *Problems) Warn(line int, hint, format string, args ...any) {
	*ps = append(*ps, Problem{Line: line, Warning: true, Message: fmt.Sprintf(format, args...), Hint: hint})
}

// Fatal reports whether the file cannot be run.
func (ps Problems) Fatal() bool {
	return slices.ContainsFunc(ps, func(p Problem) bool { return !p.Warning })
}

// Sort sorts the problems by line and column. The sort is stable.
func (ps Problems) Sort() {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

// First returns n of the problems, those that are no warnings first, in the order of the list.
func (ps Problems) First(n int) Problems {
	if len(ps) <= n {
		return ps
	}
	first := slices.Clone(ps)
	slices.SortStableFunc(first, func(a, b Problem) int {
		switch {
		case a.Warning == b.Warning:
			return 0
		case b.Warning:
			return -1
		}
		return 1
	})
	first = first[:n]
	first.Sort()
	return first
}
