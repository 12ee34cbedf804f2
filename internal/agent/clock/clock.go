// Package clock provides the agent's monotonic clock and waits that are more exact than Go's timers, which
// may be a millisecond late.
package clock

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Clock counts nanoseconds since it was made. It is a value, safe for concurrent use.
type Clock struct {
	start  time.Time
	offset int64
}

// New returns a clock that reads offset now. Tests shift it: with equal clocks on one machine a wrong
// conversion would not show.
func New(offset time.Duration) Clock {
	return Clock{start: time.Now(), offset: int64(offset)}
}

// Now returns the nanoseconds that the clock has counted.
func (c Clock) Now() int64 { return int64(time.Since(c.start)) + c.offset }

// NowWall returns the same, and the machine's wall clock at that instant, in Unix nanoseconds.
func (c Clock) NowWall() (now, wall int64) {
	t := time.Now() // one reading of both clocks
	return int64(t.Sub(c.start)) + c.offset, t.UnixNano()
}

// Began returns the instant at which the clock was made.
func (c Clock) Began() int64 { return c.offset }

// BeganWall returns the same instant on the machine's wall clock, in Unix nanoseconds.
func (c Clock) BeganWall() int64 { return c.start.UnixNano() }

// MinimizeTimerSlack locks the goroutine to its thread and reduces the thread's timer slack (default 50 µs)
// to 1 ns. The returned function unlocks the thread.
func MinimizeTimerSlack() func() {
	runtime.LockOSThread()
	// On failure the waits are less exact.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return runtime.UnlockOSThread
}

// uncancellable is the end of a wait, spent in the kernel's own sleep, during which ctx is not checked.
const uncancellable = 5 * time.Millisecond

// Wait returns at instant t of the clock, or with ctx's error when ctx ends first. The last spin before t is
// spent in a busy loop (0: none). ctx is not checked in the last 5 ms.
func (c Clock) Wait(ctx context.Context, t int64, spin time.Duration) error {
	if d := time.Duration(t-c.Now()) - uncancellable; d > 0 {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-timer.C:
		}
	}
	for {
		d := t - c.Now() - int64(spin)
		if d <= 0 {
			break
		}
		ts := unix.NsecToTimespec(d)
		// EINTR: the loop checks the clock.
		_ = unix.Nanosleep(&ts, nil)
	}
	for c.Now() < t {
		continue
	}
	return ctx.Err()
}
