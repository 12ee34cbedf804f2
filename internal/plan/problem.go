package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// String gives a problem in its stable form:
// FILE:LINE:COLUMN: PATH: MESSAGE (HINT). What is not known is left out.
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

// sorted orders problems by place and drops those that say the same twice.
func sorted(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}

// maxListed is how many names help more than they hide.
const maxListed = 24

// suggest proposes the candidate nearest to what was written, or lists them
// when none is near and they are few.
func suggest(written string, candidates []string) string {
	candidates = slices.Compact(slices.Sorted(slices.Values(candidates)))
	candidates = slices.DeleteFunc(candidates, func(c string) bool { return c == "" })
	best, least := "", max(2, len(written)/3)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(written), strings.ToLower(c)); d < least && d < len(c) {
			best, least = c, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(candidates) == 0 || len(candidates) > maxListed:
		return ""
	}
	return "there are: " + strings.Join(candidates, ", ")
}

// distance is Levenshtein's, but letters in another order are near.
func distance(a, b string) int {
	sortedA, sortedB := []byte(a), []byte(b)
	slices.Sort(sortedA)
	slices.Sort(sortedB)
	if string(sortedA) == string(sortedB) {
		return min(1, levenshtein.ComputeDistance(a, b))
	}
	return levenshtein.ComputeDistance(a, b)
}
