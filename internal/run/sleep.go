package run

import (
	"context"
	"errors"
	"os"
	"sync"
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

// PreciseSleep leaves the last two milliseconds to a timer of the kernel, whose
// lateness is tens of microseconds, and waits for it as for a connection, as long
// as there are no more sleepers than PreciseTimers. A sleep
// in the kernel would be as exact, but keep a processor of the Go runtime from all
// others until it ended: with as many sleepers as processors nobody would look at
// answers that have come.
func PreciseSleep(ctx context.Context, until time.Time) bool {
	if !TimerSleep(ctx, until.Add(-coarse)) {
		return false
	}
	for d := time.Until(until); d > 0; d = time.Until(until) {
		if err := kernelTimers.wait(d); err != nil {
			return TimerSleep(ctx, until)
		}
	}
	return ctx.Err() == nil
}

// PreciseTimers is how many timers of the kernel a process has at most. Each is
// an open file, of which there may be fewer than sleepers. Those that find all of
// them waited for sleep by the runtime's timers to the end.
const PreciseTimers = 64

// kernelTimers are those of this process.
var kernelTimers timers

// timers keeps timers of the kernel for the next sleep.
type timers struct {
	mu   sync.Mutex
	free []*kernelTimer
	open int // free or waited for
}

var errNoTimer = errors.New("all timers of the kernel are waited for")

// kernelTimer is a timerfd, which the Go runtime polls like a socket.
type kernelTimer struct {
	fd   int
	file *os.File
	buf  [8]byte
}

// wait lets a time pass, which is not 0.
func (t *timers) wait(d time.Duration) error {
	k, err := t.take()
	if err != nil {
		return err
	}
	err = unix.TimerfdSettime(k.fd, 0, &unix.ItimerSpec{Value: unix.NsecToTimespec(int64(d))}, nil)
	if err == nil {
		_, err = k.file.Read(k.buf[:])
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.open--
		return errors.Join(err, k.file.Close())
	}
	t.free = append(t.free, k)
	return nil
}

func (t *timers) take() (*kernelTimer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if n := len(t.free); n > 0 {
		k := t.free[n-1]
		t.free = t.free[:n-1]
		return k, nil
	}
	if t.open == PreciseTimers {
		return nil, errNoTimer
	}
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	t.open++
	return &kernelTimer{fd: fd, file: os.NewFile(uintptr(fd), "timerfd")}, nil
}
