package dataset

import (
	"strings"

	"github.com/cnsbench/cnsbench/internal/op"
)

// Milestone returns the instant of that name in an op; of an op on several volumes
// ("ready/a", "ready/b") the last. op.Never: not observed.
func Milestone(o *op.Op, name string) op.Time {
	at := op.Never
	for i := range o.Milestones {
		m := &o.Milestones[i]
		if m.Name == name {
			return m.At
		}
		if rest, ok := strings.CutPrefix(m.Name, name); ok && rest[0] == '/' {
			at = max(at, m.At)
		}
	}
	return at
}
