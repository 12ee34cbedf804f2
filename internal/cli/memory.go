package cli

import (
	"os"
	"runtime"
	"runtime/debug"
)

// Growth of the heap between two collections, in per cent of what is live, of a command and of its parts. GOGC
// overrides all.
const (
	growthAtStart  = 800 // of the least heap, 4 MiB
	growth         = 100 // as Go's default
	growthOfRun    = 400 // CPU time of the runner is missing in what it measures
	growthOfReader = 25  // most of a bundle in memory is arrays without pointers, which a collection does not read
)

// CollectLater lets the heap of a command grow to about 32 MiB before it is first collected. A short command ends
// before, and would otherwise use a sixth of its CPU time to collect little.
func CollectLater() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(growthAtStart)
	runtime.AddCleanup(new([16]byte), func(struct{}) {
		if now := debug.SetGCPercent(growth); now != growthAtStart { // set by a part of the command
			debug.SetGCPercent(now)
		}
	}, struct{}{})
}

// setGrowth sets the growth of the heap for a part of a command. The result ends it.
func setGrowth(percent int) (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(percent)
	if before == growthAtStart {
		before = growth
	}
	return func() { debug.SetGCPercent(before) }
}
