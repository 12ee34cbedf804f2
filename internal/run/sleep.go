package run

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// Sleep waits for an instant; false if ctx ended first. It never returns
// early.
type Sleep func(ctx context.Context, until time.Time) bool

// TimerSleep sleeps by the Go runtime's timers. In an idle process they are
// late by up to a millisecond, which is how finely epoll_wait counts.
func TimerSleep(ctx context.Context, until time.Time) bool {
	d := time.Until(until)
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// coarse is how long before the instant PreciseSleep leaves the runtime's
// timers for the kernel's.
const coarse = 2 * time.Millisecond

// PreciseSleep spends the last two milliseconds in nanosleep(2), whose
// lateness is the kernel's: tens of microseconds. It blocks a thread for that
// time, not a CPU.
func PreciseSleep(ctx context.Context, until time.Time) bool {
	if !TimerSleep(ctx, until.Add(-coarse)) {
		return false
	}
	for d := time.Until(until); d > 0; d = time.Until(until) {
		ts := unix.NsecToTimespec(int64(d))
		if err := unix.Nanosleep(&ts, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return TimerSleep(ctx, until)
		}
	}
	return ctx.Err() == nil
}
