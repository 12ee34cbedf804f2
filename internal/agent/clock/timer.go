package clock

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Timer wakes one goroutine at exact instants, repeatedly and at little cost: a kernel timer (timerfd) that
// Go's poller waits for. A sleeping thread would occupy a processor of the Go scheduler, which makes the
// runtime look for work thousands of times a second; Go's own timers are rounded up to a millisecond.
type Timer struct {
	clock Clock
	file  *os.File
	fd    int
}

// NewTimer returns a timer on c.
func NewTimer(c Clock) (*Timer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a timer: %w", err)
	}
	return &Timer{clock: c, file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}, nil
}

// ErrStopped is returned by Wait after Stop.
var ErrStopped = errors.New("the timer was stopped")

// Wait returns at instant t of the clock, at once if t has passed. One goroutine may call it.
func (a *Timer) Wait(t int64) error {
	for {
		d := t - a.clock.Now()
		if d <= 0 {
			return nil
		}
		spec := unix.ItimerSpec{Value: unix.NsecToTimespec(d)}
		if err := unix.TimerfdSettime(a.fd, 0, &spec, nil); err != nil {
			return fmt.Errorf("set a timer: %w", err)
		}
		var expirations [8]byte
		if _, err := a.file.Read(expirations[:]); err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				return ErrStopped
			}
			return fmt.Errorf("wait for a timer: %w", err)
		}
	}
}

// Stop ends a pending Wait and every later one that would block. It is safe for concurrent use.
func (a *Timer) Stop() {
	_ = a.file.SetReadDeadline(time.Unix(1, 0)) // a timerfd supports deadlines
}

// Close releases the timer. It must not be called during a Wait.
func (a *Timer) Close() error { return a.file.Close() }
