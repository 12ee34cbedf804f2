//go:build !e2e

package local_test

// How many mixes of actions are tried on null, and on loopfile.
const (
	nullMixes     = 8
	loopfileMixes = 1
)
