package wrap

import (
	"context"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// overdue is how long after its phase a command may end without a word of it.
const overdue = time.Second

// phase waits for the phase of the command, counted from the barrier; called off
// says that it is not to be started: by a signal, which may come long before, or
// because the phase is over already.
func (s *session) phase(ctx context.Context, barrier int64) (exit protocol.Exit, calledOff bool) {
	p := s.welcome.Phase
	if p.UntilNanos > 0 {
		s.over = barrier + p.UntilNanos
	}
	until, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan unix.Signal, 1)
	go func() {
		defer cancel()
		ended <- s.called(until)
	}()
	err := s.clock.Wait(until, barrier+p.FromNanos, spin)
	cancel()
	switch sig := <-ended; {
	case sig != 0:
		return s.calledOff(sig), true
	case ctx.Err() != nil && err != nil:
		return s.calledOff(unix.SIGTERM), true
	case s.over != 0 && s.clock.Now() >= s.over:
		return protocol.Exit{At: s.clock.Now(), Ours: true, PhaseOver: true, Message: "its phase was over before its command was started"}, true
	}
	return protocol.Exit{}, false
}

// called is the signal by which a command that waits is called off; 0: ctx has
// ended first. One that is to hang begins in that state.
func (s *session) called(ctx context.Context) unix.Signal {
	for {
		select {
		case sig := <-s.signals:
			switch n := unix.Signal(sig.Number); {
			case ending(sig):
				return n
			case n == unix.SIGSTOP || n == unix.SIGCONT:
				s.hung = n == unix.SIGSTOP
			}
		case <-s.lost:
			return unix.SIGTERM
		case <-ctx.Done():
			return 0
		}
	}
}

// phaseEnd is sent to when the phase is over; nil: it has no end.
func (s *session) phaseEnd() <-chan time.Time {
	if s.over == 0 {
		return nil
	}
	return time.After(time.Duration(s.over - s.clock.Now()))
}

// endPhase asks the command to end, also one that hangs.
func (s *session) endPhase() (kill <-chan time.Time) {
	s.child.PhaseOver()
	s.child.Signal(unix.SIGTERM)
	s.child.Signal(unix.SIGCONT)
	return time.After(time.Duration(s.welcome.Phase.GraceNanos))
}

// afterPhase says what of the end of a command that its phase ended is not as it
// should be: the next phase has begun by then.
func (s *session) afterPhase(exit *protocol.Exit) {
	if !exit.PhaseOver {
		return
	}
	late := time.Duration(exit.At - s.over)
	if exit.Signal == int(unix.SIGKILL) {
		exit.Message = fmt.Sprintf("it had not ended %v after its phase and was killed", late.Round(time.Millisecond))
		s.log(exit.Message)
	} else if late > overdue {
		s.log(fmt.Sprintf("it ended %v after its phase was over", late.Round(time.Millisecond)))
	}
}
