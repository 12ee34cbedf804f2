package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalled makes the two contexts of a run: the first signal ends soft, for the
// reason that first gives, the second hard. What comes over failing ends soft too,
// for what failed makes of it; both may be nil. stop ends both, and listens no more.
func signalled(parent context.Context, first func() error, failing <-chan error, failed func(error) error) (soft, hard context.Context, stop func()) {
	soft, end := context.WithCancelCause(parent)
	hard, kill := context.WithCancel(parent)
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	// A reader that goes away, as in "run … | head", must not end the process
	// where it stands: with a listener, writing to the pipe is an error instead.
	// Ignoring the signal would do so for the workloads too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	go func() {
		for n := 0; ; {
			select {
			case <-signals:
				if n++; n == 1 {
					end(first())
				} else {
					kill()
				}
			case err := <-failing:
				end(failed(err))
			case <-done:
				return
			}
		}
	}()
	return soft, hard, func() {
		signal.Stop(signals)
		close(done)
		kill()
		end(nil)
	}
}
