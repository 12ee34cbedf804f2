package expr

import (
	"fmt"
	"strings"

	"github.com/cnsbench/cnsbench/internal/hints"
)

// listed is the greatest number of names in a message.
const listed = 12

// suggest returns the end of a message about an unknown name: the nearest known name, or
// the list of names.
func suggest(name string, known []string) string {
	if near := hints.Nearest(name, known); near != "" {
		return "; " + near
	}
	if len(known) == 0 {
		return ""
	}
	if len(known) > listed {
		return fmt.Sprintf("; there are %s and %d more", strings.Join(known[:listed], ", "), len(known)-listed)
	}
	return "; there are " + strings.Join(known, ", ")
}
