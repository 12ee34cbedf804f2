package objectspec

import (
	"fmt"
	"slices"
)

type converted struct {
	notes         []string
	stages, works []string // names of stages, and of the works of this one
}

func (c *converted) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(c.notes, text) {
		c.notes = append(c.notes, text)
	}
}
