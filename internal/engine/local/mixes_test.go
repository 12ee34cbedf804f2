//go:build !e2e

package local_test

// Numbers of mixes of actions to test, with the null and with the loopfile driver.
const (
	nullMixes     = 8
	loopfileMixes = 1
)
