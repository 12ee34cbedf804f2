// Package lazy makes values when they are first used, so that a short command does not spend its time on what it does
// not use.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that compiles an expression at its first call. It panics if the expression is invalid. It is
// safe for concurrent use.
func Regexp(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
