package wrap

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// Hold does what a pod is there for that only holds volumes: it touches them,
// says that it is ready, and ends when the runner or a signal says so, then
// with 0, or when the runner is lost.
func Hold(ctx context.Context, conn *protocol.Conn, welcome *protocol.Welcome, clock clock.Clock) (int, error) {
	s := newSession(conn, welcome, clock)
	stop := s.ownSignals()
	defer stop()
	defer reapAll()()
	go s.read()
	go s.answer()
	if welcome.Canary != nil || len(welcome.Outputs) > 0 {
		s.log("there is no command here: no canary, no outputs")
	}
	if s.touch(ctx) {
		s.send(protocol.Message{Ready: &protocol.Stamp{At: clock.Now()}})
		s.untilEnd(ctx)
	}
	select {
	case <-s.lost:
		return 1, s.runnerLost()
	default:
	}
	// Whoever ends the pod has not long to wait, with or without a runner.
	defer time.AfterFunc(byeWithin, func() { conn.Close() }).Stop()
	if err := s.report(protocol.Exit{At: clock.Now(), Started: true, Ours: true, Message: "held until it was told to end"}); err != nil {
		return 1, err
	}
	return 0, nil
}

// byeWithin is how long a holder waits for the runner to have heard of its end.
const byeWithin = 2 * time.Second

// untilEnd waits for a signal that ends a process, the loss of the runner, or ctx.
func (s *session) untilEnd(ctx context.Context) {
	for {
		select {
		case sig := <-s.signals:
			if ending(sig) {
				return
			}
		case <-s.lost:
			return
		case <-ctx.Done():
			return
		}
	}
}

// ending says whether a signal is meant to end the command.
func ending(sig protocol.Signal) bool {
	n := unix.Signal(sig.Number)
	return n == unix.SIGTERM || n == unix.SIGINT || n == unix.SIGKILL
}

// reapAll has the children that PID 1 inherits (of kubectl exec, say) reaped,
// until the function returned is called.
func reapAll() (stop func()) {
	c := make(chan os.Signal, 1)
	signal.Notify(c, unix.SIGCHLD)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-c:
				for {
					pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
					if pid <= 0 && !errors.Is(err, unix.EINTR) {
						break
					}
				}
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(c); close(done) }
}
