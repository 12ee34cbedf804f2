package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// signalled makes the two contexts of a run. The first signal ends soft with the error that first returns, the second
// ends hard. An error from failing ends soft, with what failed makes of it; both may be nil. stop ends both.
func signalled(parent context.Context, first func() error, failing <-chan error, failed func(error) error) (
	soft, hard context.Context, stop func()) {
	soft, end := context.WithCancelCause(parent)
	hard, kill := context.WithCancel(parent)
	signals, done := make(chan os.Signal, 2), make(chan struct{})
	deaf := listen(signals)
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
		deaf()
		close(done)
		kill()
		end(nil)
	}
}

// listen has the signals that end a command sent to a channel until stop is called.
func listen(to chan os.Signal) (stop func()) {
	signal.Notify(to, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	survivePipes()
	return func() { signal.Stop(to) }
}

// survivePipes has writing to a closed pipe, as in "run … | head", be an error instead of the end of the process. The
// signal has a listener, because programs that are started would ignore it, too, if it were ignored.
func survivePipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// untilInterrupt makes a context that ends with the first SIGINT or SIGTERM.
func untilInterrupt(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	survivePipes()
	return signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
}
