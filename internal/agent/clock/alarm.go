package clock

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// Alarm wakes one goroutine at exact instants, over and over, at little cost:
// a kernel timer (timerfd) that Go's poller waits for. A sleeping thread would
// do it too, but keeps a processor of the Go scheduler occupied meanwhile, which
// has the runtime look for work thousands of times a second; Go's own timers
// are rounded up to a millisecond.
type Alarm struct {
	clock Clock
	file  *os.File
	fd    int
}

// NewAlarm makes an alarm on c.
func NewAlarm(c Clock) (*Alarm, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a timer: %w", err)
	}
	return &Alarm{clock: c, file: os.NewFile(uintptr(fd), "timerfd"), fd: fd}, nil
}

// ErrStopped is returned by Wait after Stop.
var ErrStopped = errors.New("the alarm was stopped")

// Wait returns at instant t of the clock, at once if it has passed. It is for
// one goroutine.
func (a *Alarm) Wait(t int64) error {
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

// Stop ends a Wait that is under way and all later ones that would have to
// wait. Any goroutine may call it.
func (a *Alarm) Stop() {
	_ = a.file.SetReadDeadline(time.Unix(1, 0)) // a timerfd has deadlines
}

// Close frees the timer; not during a Wait.
func (a *Alarm) Close() error { return a.file.Close() }
