// Package heap sets how much the heap of the command cnsbench grows between two garbage collections.
//
// Its initialisation lets the heap grow to about 32 MiB before it is first collected, unless GOGC is set. A short command
// ends before; it would otherwise use a sixth of its CPU time to collect little. The package imports nothing that takes
// time to initialise, so that Go initialises it before the large packages that a command imports.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
)

const (
	atStart = 800 // per cent of the least heap, 4 MiB
	usual   = 100 // as Go's default
)

func init() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(atStart)
	runtime.AddCleanup(new([16]byte), func(struct{}) {
		if now := debug.SetGCPercent(usual); now != atStart { // set by a part of the command
			debug.SetGCPercent(now)
		}
	}, struct{}{})
}

// SetGrowth sets by how many per cent of what is live the heap grows between two collections, for a part of a command.
// The result ends it. GOGC overrides it. It is not safe for concurrent use.
func SetGrowth(percent int) (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	if before == atStart {
		before = usual
	}
	return func() { debug.SetGCPercent(before) }
}
