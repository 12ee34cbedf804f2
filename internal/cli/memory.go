package cli

import (
	"os"
	"runtime/debug"
)

// collectOften lets the garbage collector run while a bundle is analysed when the heap has grown by a quarter, not by its
// double, unless GOGC says otherwise. Most of that heap is samples and series, arrays without pointers that the collector
// does not read, so that a collection takes little time. It returns a function that ends this.
func collectOften() (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	before := debug.SetGCPercent(25)
	return func() { debug.SetGCPercent(before) }
}
