// Package clock is the agent's clock: monotonic, with a zero of its own, and
// able to wait for an instant far more exactly than Go's timers, which may be
// a millisecond late.
package clock

import (
	"context"
	"runtime"
	"time"

	"golang.org/x/sys/unix"
)

// Clock counts nanoseconds since it was made. It is a value, safe for
// concurrent use.
type Clock struct {
	start  time.Time
	offset int64
}

// New starts a clock that reads offset now (tests shift it: on one machine
// equal clocks would hide a wrong join).
func New(offset time.Duration) Clock {
	return Clock{start: time.Now(), offset: int64(offset)}
}

// Now reads the clock.
func (c Clock) Now() int64 { return int64(time.Since(c.start)) + c.offset }

// Began is the instant at which the clock was made.
func (c Clock) Began() int64 { return c.offset }

// Exact has the calling goroutine's thread woken without the kernel's timer
// slack (50 µs by default) and locks the goroutine to it; the function
// returned undoes the lock.
func Exact() func() {
	runtime.LockOSThread()
	// Where it is refused the waits are merely less exact.
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)
	return runtime.UnlockOSThread
}

// far is left to the kernel's own sleep at the end of a wait that can be
// cancelled until then.
const far = 5 * time.Millisecond

// Wait returns at instant t of the clock, or when ctx ends, then with its
// error. The last spin before t is spent in a loop rather than asleep (0:
// none). ctx is not looked at in the last 5 ms.
func (c Clock) Wait(ctx context.Context, t int64, spin time.Duration) error {
	if d := time.Duration(t-c.Now()) - far; d > 0 {
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
		// EINTR: the loop looks at the clock again.
		_ = unix.Nanosleep(&ts, nil)
	}
	for c.Now() < t {
		continue
	}
	return ctx.Err()
}
