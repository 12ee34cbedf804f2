package wrap

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// report sends the exit as the last message and waits for its acknowledgement.
func (s *session) report(exit protocol.Exit) error {
	if err := s.conn.Write(protocol.Message{Exit: &exit}); err != nil {
		s.conn.Close() // ends the read
	}
	<-s.lost // the read ends in every case
	select {
	case <-s.bye:
		return nil
	default:
		return s.runnerLost()
	}
}

// runnerLost returns the cause; valid once lost is closed.
func (s *session) runnerLost() error { return fmt.Errorf("%w: %w", ErrRunnerLost, s.readErr) }

// read handles the runner's messages until the connection ends.
func (s *session) read() {
	defer close(s.lost)
	for {
		m, err := s.conn.Read()
		if err != nil {
			s.readErr = err
			s.conn.Close() // ends blocked writers
			return
		}
		switch {
		case m.Ping != nil:
			select {
			case s.pings <- &protocol.Pong{Ping: m.Ping.Sent, Received: m.Received}:
			default: // the last pong is still queued: skip this exchange
			}
		case m.Go != nil:
			select {
			case s.start <- m.Go.At:
			default:
			}
		case m.RendezvousReply != nil:
			s.forwardRendezvous(m.RendezvousReply)
		case m.File != nil:
			s.inputFiles.write(m.File, m.Body)
		case m.Enough != nil:
			s.out.refuse(m.Enough.Name)
		case m.ProbeVolumes != nil:
			go s.probeAll() // may hang
		case m.SetLevel != nil:
			s.level.Store(&m.SetLevel.Level)
		case m.Signal != nil:
			select {
			case s.signals <- *m.Signal:
			default:
			}
		case m.Bye != nil:
			close(s.bye)
			return
		}
	}
}

// sendPongs sends pongs outside of read, which must not block on writing: it receives the request to stop.
func (s *session) sendPongs() {
	for {
		select {
		case pong := <-s.pings:
			s.send(protocol.Message{Pong: pong})
		case <-s.lost:
			return
		}
	}
}

// forwardOwnSignals handles signals sent to the agent as if the runner had sent them.
func (s *session) forwardOwnSignals() (stop func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH,
		unix.SIGCONT)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-c:
				if n, ok := sig.(unix.Signal); ok {
					select {
					case s.signals <- protocol.Signal{Number: int(n)}:
					default: // queue full
					}
				}
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(c); close(done) }
}
