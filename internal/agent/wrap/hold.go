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

// Hold keeps volumes mounted without a command: it probes them, reports ready, and returns 0 when the runner
// or a signal ends it, 1 when the runner is lost.
func Hold(ctx context.Context, conn *protocol.Conn, welcome *protocol.Welcome, clock clock.Clock) (int, error) {
	s := newSession(conn, welcome, clock)
	stop := s.forwardOwnSignals()
	defer stop()
	defer reapAll()()
	go s.read()
	go s.sendPongs()
	if welcome.Canary != nil || len(welcome.Outputs) > 0 {
		s.log("hold runs no command: canary and outputs are ignored")
	}
	if s.probeVolumes(ctx) {
		s.send(protocol.Message{Ready: &protocol.Stamp{At: clock.Now()}})
		awaitOr(ctx, s, (chan struct{})(nil))
	}
	select {
	case <-s.lost:
		return 1, s.runnerLost()
	default:
	}
	// Deleting the pod must not take long, with or without a runner.
	defer time.AfterFunc(byeWithin, func() { conn.Close() }).Stop()
	if err := s.report(protocol.Exit{At: clock.Now(), Started: true, Ours: true,
		Message: "held until its end was requested"}); err != nil {
		return 1, err
	}
	return 0, nil
}

// byeWithin bounds the wait for the runner's acknowledgement.
const byeWithin = 2 * time.Second

// reapAll reaps the children that PID 1 inherits (from kubectl exec, for example) until stop is called.
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
