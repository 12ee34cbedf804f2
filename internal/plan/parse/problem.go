package parse

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Problem is an error or a warning about a file, with its place.
type Problem struct {
	File    string `json:"file,omitempty"`
	Line    int    `json:"line,omitempty"` // 1-based; 0: unknown
	Column  int    `json:"column,omitempty"`
	Path    string `json:"path,omitempty"` // spec.actions[0].createObjSpec.workload
	Message string `json:"message"`        // description of the problem
	Hint    string `json:"hint,omitempty"` // how to fix it
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
	b.WriteString(p.text())
	return b.String()
}

// text returns the message and the hint.
func (p Problem) text() string {
	if p.Hint == "" {
		return p.Message
	}
	return p.Message + " (" + p.Hint + ")"
}

// longWord matches what makes a line unreadable, such as a name of 300 characters.
var longWord = regexp.MustCompile(`\S{120,}`)

// shorten cuts the middle out of long words.
func shorten(text string) string {
	return longWord.ReplaceAllStringFunc(text, func(word string) string {
		r := []rune(word)
		if len(r) < 120 {
			return word
		}
		return string(r[:48]) + "…" + string(r[len(r)-16:])
	})
}

// maxAlso is the number of further lines that Collapsed names.
const maxAlso = 8

// Collapsed returns the lines to print for sorted problems. Where three or more in one file have the same text, they
// are one line, the first, with their number and the lines of the others.
func Collapsed(ps []Problem) []string {
	type key struct{ file, text string }
	same := map[key][]Problem{}
	for _, p := range ps {
		k := key{p.File, p.text()}
		same[k] = append(same[k], p)
	}
	var lines []string
	for _, p := range ps {
		k := key{p.File, p.text()}
		all := same[k]
		switch {
		case len(all) < 3:
			lines = append(lines, p.String())
		case p == all[0]:
			lines = append(lines, fmt.Sprintf("%s; %d times, also %s", p, len(all), alsoAt(all[1:])))
		}
	}
	return lines
}

// alsoAt names the lines of problems, or their paths if they are all on one line or have none.
func alsoAt(ps []Problem) string {
	var at []string
	what := "at line"
	for _, p := range ps {
		at = append(at, strconv.Itoa(p.Line))
	}
	if at = slices.Compact(at); len(at) == 1 {
		what, at = "at", nil
		for _, p := range ps {
			at = append(at, p.Path)
		}
	}
	if more := len(at) - maxAlso; more > 0 {
		at = append(at[:maxAlso], fmt.Sprintf("%d more", more))
	}
	if len(at) > 1 && what == "at line" {
		what = "at lines"
	}
	return what + " " + strings.Join(at, ", ")
}

// Sorted sorts problems by place, removes duplicates, and shortens long words. It modifies ps.
func Sorted(ps []Problem) []Problem {
	for i := range ps {
		p := &ps[i]
		p.Path, p.Message, p.Hint = shorten(p.Path), shorten(p.Message), shorten(p.Hint)
	}
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}
