// Package heap sets how much the heap of the command cnsbench grows between two garbage collections.
//
// Its initialisation lets the heap grow to about 32 MiB before it is first collected, unless GOGC is set. A short
// command ends before; it would otherwise use a sixth of its CPU time to collect little. The package imports nothing
// that takes time to initialise, so that Go initialises it before the large packages that a command imports.
package heap

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
)

const (
	atStart = 800 // per cent of the least heap, 4 MiB
	usual   = 100 // as Go's default

	// mostGarbage is how much the heap may grow by more than the usual growth.
	mostGarbage = 48 << 20
)

// now is the growth that is set, in per cent.
var (
	mu  sync.Mutex
	now = usual
)

func init() {
	if os.Getenv("GOGC") != "" {
		return
	}
	set(atStart)
	afterCollection(func() bool {
		mu.Lock()
		defer mu.Unlock()
		if now == atStart {
			set(usual)
		}
		return false
	})
}

func set(percent int) {
	now = percent
	debug.SetGCPercent(percent)
}

// SetGrowth sets by how many per cent of what is live the heap grows between two collections, for a part of a command.
// A growth of more than 100 is that of a small heap: it is less, but at least 100, as soon as it would be more than
// 48 MiB. The result ends it. GOGC overrides it. Parts of a command may not overlap.
func SetGrowth(percent int) (end func()) {
	if os.Getenv("GOGC") != "" {
		return func() {}
	}
	mu.Lock()
	defer mu.Unlock()
	before, ended := now, false
	if before == atStart {
		before = usual
	}
	set(percent)
	if percent > usual {
		afterCollection(func() bool {
			mu.Lock()
			defer mu.Unlock()
			if !ended {
				set(bounded(percent, live()))
			}
			return !ended
		})
	}
	return func() {
		mu.Lock()
		defer mu.Unlock()
		ended = true
		set(before)
	}
}

// bounded is a growth of at most mostGarbage, unless that is less than usual.
func bounded(percent int, live uint64) int {
	return min(percent, max(usual, int(mostGarbage*100/max(live, 1))))
}

// live returns the bytes that the last collection found in use.
func live() uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(sample)
	return sample[0].Value.Uint64()
}

// afterCollection calls f after a collection, and again after each as long as it returns true.
func afterCollection(f func() bool) {
	runtime.AddCleanup(new([16]byte), func(struct{}) {
		if f() {
			afterCollection(f)
		}
	}, struct{}{})
}
