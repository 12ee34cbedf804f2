package expr

import (
	"fmt"
	"strings"
)

// suggest is the end of a message about an unknown name: the nearest known
// one, or, when none is near, what there is.
func suggest(name string, known []string) string {
	best, nearest := "", len(name)/3+1
	for _, k := range known {
		if d := distance(strings.ToLower(name), strings.ToLower(k)); d <= nearest && (best == "" || d < nearest) {
			best, nearest = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(known) == 0:
		return ""
	}
	return "; there are " + strings.Join(known, ", ")
}

// distance is Levenshtein's: the least number of single-byte edits.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
