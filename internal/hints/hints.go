// Package hints words what a mistyped name may have meant.
package hints

import (
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
)

// maxListed is the maximum number of names in a hint.
const maxListed = 32

// Suggest returns a hint that proposes the candidate nearest to written. If none is
// near, the hint lists all candidates, or is empty if there are more than maxListed.
func Suggest(written string, candidates []string) string {
	candidates = slices.Compact(slices.Sorted(slices.Values(candidates)))
	candidates = slices.DeleteFunc(candidates, func(c string) bool { return c == "" })
	if hint := Nearest(written, candidates); hint != "" {
		return hint
	}
	return Listed(candidates)
}

// Nearest returns a hint that proposes the candidate nearest to written, the first of several equally near ones, or
// an empty string if none is near.
func Nearest(written string, candidates []string) string {
	best, least := "", max(2, len(written)/3)+1
	for _, c := range candidates {
		if d := distance(strings.ToLower(written), strings.ToLower(c)); d < least && d < len(c) {
			best, least = c, d
		}
	}
	if best == "" {
		return ""
	}
	return Meant(best)
}

// Meant returns a hint that proposes a text.
func Meant(text string) string { return fmt.Sprintf("did you mean %q?", text) }

// Listed returns a hint that lists the names, or an empty string if there are none or
// more than maxListed.
func Listed(names []string) string {
	if len(names) == 0 || len(names) > maxListed {
		return ""
	}
	return "there are: " + strings.Join(names, ", ")
}

// Or joins two hints with "or". The first may be empty.
func Or(a, b string) string {
	switch {
	case a == "":
		return b
	case strings.HasSuffix(a, "?"):
		return a + " Or " + b
	}
	return a + "; or " + b
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
