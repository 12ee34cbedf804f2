package expr

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// listed is the greatest number of names in a message.
const listed = 12

// suggest returns the end of a message about an unknown name: the nearest known name, or
// the list of names.
func suggest(name string, known []string) string {
	best, nearest := "", len(name)/3+1
	for _, k := range known {
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k)); d <= nearest &&
			(best == "" || d < nearest) {
			best, nearest = k, d
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("; did you mean %q?", best)
	case len(known) == 0:
		return ""
	}
	if len(known) > listed {
		return fmt.Sprintf("; there are %s and %d more", strings.Join(known[:listed], ", "), len(known)-listed)
	}
	return "; there are " + strings.Join(known, ", ")
}
