package dataset

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Milestone returns the instant of that name in an op; of an op on several volumes
// ("ready/a", "ready/b") the last. op.Never: not observed.
func Milestone(o *op.Op, name string) op.Time {
	at := op.Never
	for _, m := range o.Milestones {
		if m.Name == name {
			return m.At
		}
		if base, _, split := strings.Cut(m.Name, "/"); split && base == name {
			at = max(at, m.At)
		}
	}
	return at
}
