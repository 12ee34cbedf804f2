package run

import (
	"context"
	"errors"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Sleep waits until a time. It returns false if ctx ended first. It never returns early.
type Sleep func(ctx context.Context, until time.Time) bool

// TimerSleep sleeps with the timers of the Go runtime. In an idle process they are up to a millisecond late,
// the resolution of epoll_wait.
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

// coarse is the remaining time at which PreciseSleep changes from the runtime's timers to a kernel timer.
const coarse = 2 * time.Millisecond

// PreciseSleep uses a kernel timer for the last two milliseconds; its lateness is tens of microseconds. The
// timer is polled like a network connection. At most PreciseTimers sleepers use one at the same time. A
// blocking sleep system call would be as precise, but it would occupy a processor (P) of the Go runtime until
// it ended: with as many sleepers as processors, responses would not be handled.
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

// PreciseTimers is the maximum number of kernel timers of a process. Each is an open file, and the limit of
// open files can be lower than the number of sleepers. When all are in use, further sleepers use the
// runtime's timers to the end.
const PreciseTimers = 64

// kernelTimers are the kernel timers of this process.
var kernelTimers timers

// timers is a pool of kernel timers. It is safe for concurrent use.
type timers struct {
	mu   sync.Mutex
	free []*kernelTimer
	open int // number of timers, free or in use
}

var errNoTimer = errors.New("all timers of the kernel are waited for")

// kernelTimer is a timerfd, which the Go runtime polls like a socket.
type kernelTimer struct {
	fd   int
	file *os.File
	buf  [8]byte
}

// wait sleeps for d, which must be positive.
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
