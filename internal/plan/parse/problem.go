package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

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

// sorted sorts problems by place and removes duplicates. It modifies ps.
func sorted(ps []Problem) []Problem {
	slices.SortStableFunc(ps, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Column, b.Column), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Message, b.Message))
	})
	return slices.Compact(ps)
}

// maxListed is the maximum number of names in a hint.
const maxListed = 24

// suggest returns a hint that proposes the candidate nearest to written. If none is
// near, the hint lists all candidates, or is empty if there are more than maxListed.
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

// distance returns the Levenshtein distance, but at most 1 if a and b have the same
// bytes in a different order.
func distance(a, b string) int {
	sortedA, sortedB := []byte(a), []byte(b)
	slices.Sort(sortedA)
	slices.Sort(sortedB)
	if string(sortedA) == string(sortedB) {
		return min(1, levenshtein.ComputeDistance(a, b))
	}
	return levenshtein.ComputeDistance(a, b)
}
