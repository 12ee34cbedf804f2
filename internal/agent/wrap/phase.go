package wrap

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// lateEndLogged is how late after its phase a command may end before that is logged.
const lateEndLogged = time.Second

// waitPhase waits for the command's phase, counted from the barrier. cancelled reports that the command must
// not start: a signal ended it, or the phase is over.
func (s *session) waitPhase(ctx context.Context, barrier int64) (exit protocol.Exit, calledOff bool) {
	p := s.welcome.Phase
	if p.UntilNanos > 0 {
		s.phaseEndAt = barrier + p.UntilNanos
	}
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan unix.Signal, 1)
	go func() {
		defer cancel()
		ended <- s.awaitCancel(until)
	}()
	err := s.clock.Wait(until, barrier+p.FromNanos, spin)
	cancel()
	switch sig := <-ended; {
	case sig != 0:
		return s.cancelled(sig), true
	case ctx.Err() != nil && err != nil:
		return s.cancelled(unix.SIGTERM), true
	case s.phaseEndAt != 0 && s.clock.Now() >= s.phaseEndAt:
		return protocol.Exit{At: s.clock.Now(), Ours: true, PhaseOver: true,
			Message: "phase over before the command was started"}, true
	}
	return protocol.Exit{}, false
}

// awaitCancel returns the signal that cancels a waiting command, or 0 when ctx ends first. SIGSTOP makes the
// command start stopped.
func (s *session) awaitCancel(ctx context.Context) unix.Signal {
	for {
		select {
		case sig := <-s.signals:
			switch n := unix.Signal(sig.Number); {
			case endsCommand(sig):
				return n
			case n == unix.SIGSTOP || n == unix.SIGCONT:
				s.startStopped = n == unix.SIGSTOP
			}
		case <-s.lost:
			return unix.SIGTERM
		case <-ctx.Done():
			return 0
		}
	}
}

// phaseTimer fires at the end of the phase; nil: the phase has no end.
func (s *session) phaseTimer() <-chan time.Time {
	if s.phaseEndAt == 0 {
		return nil
	}
	return time.After(time.Duration(s.phaseEndAt - s.clock.Now()))
}

// endPhase asks the command to end, also a stopped one.
func (s *session) endPhase() (kill <-chan time.Time) {
	s.child.PhaseOver()
	s.child.Signal(unix.SIGTERM)
	s.child.Signal(unix.SIGCONT)
	return time.After(time.Duration(s.welcome.Phase.GraceNanos))
}

// checkPhaseEnd logs a command that ended late after its phase: the next phase has begun by then.
func (s *session) checkPhaseEnd(exit *protocol.Exit) {
	if !exit.PhaseOver {
		return
	}
	late := time.Duration(exit.At - s.phaseEndAt)
	if exit.Signal == int(unix.SIGKILL) {
		exit.Message = fmt.Sprintf("still running %v after its phase and was killed", late.Round(time.Millisecond))
		s.log(exit.Message)
	} else if late > lateEndLogged {
		s.log(fmt.Sprintf("ended %v after its phase", late.Round(time.Millisecond)))
	}
}
