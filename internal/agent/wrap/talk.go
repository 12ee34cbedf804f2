package wrap

import (
	"fmt"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// report sends the exit as the last word and waits until it was heard.
func (s *session) report(exit protocol.Exit) error {
	if err := s.conn.Write(protocol.Message{Exit: &exit}); err != nil {
		s.conn.Close() // so that reading ends
	}
	<-s.lost // reading ends in every case
	select {
	case <-s.bye:
		return nil
	default:
		return s.runnerLost()
	}
}

// runnerLost is for when lost is closed.
func (s *session) runnerLost() error { return fmt.Errorf("%w: %w", ErrRunnerLost, s.why) }

// file sends bytes of a file, and repeats the command's output on ours.
func (s *session) file(name string, offset int64, data []byte) error {
	if s.logs.Echo {
		switch name { // what cannot be echoed is still sent
		case protocol.Stdout:
			_, _ = os.Stdout.Write(data)
		case protocol.Stderr:
			_, _ = os.Stderr.Write(data)
		}
	}
	return s.conn.Write(protocol.Message{File: &protocol.File{Name: name, Offset: offset}, Body: data})
}

func (s *session) log(line string) { s.send(protocol.Message{Log: &protocol.Log{Line: line}}) }

// send is for what may be lost with the runner; read notices the loss.
func (s *session) send(m protocol.Message) { _ = s.conn.Write(m) }

// read takes what the runner says until it is gone.
func (s *session) read() {
	defer close(s.lost)
	for {
		m, err := s.conn.Read()
		if err != nil {
			s.why = err
			s.conn.Close() // whoever writes to a runner that has vanished is let go
			return
		}
		switch {
		case m.Ping != nil:
			select {
			case s.pings <- &protocol.Pong{Ping: m.Ping.Sent, Received: m.Received}:
			default: // the last answer is not out yet: one exchange fewer
			}
		case m.Go != nil:
			select {
			case s.start <- m.Go.At:
			default:
			}
		case m.Met != nil:
			s.met(m.Met)
		case m.File != nil:
			s.intake.take(m.File, m.Body)
		case m.Enough != nil:
			s.out.refuse(m.Enough.Name)
		case m.Touch != nil:
			go s.touchAll() // one that hangs is left to itself
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

// answer sends pongs apart from read, which must not wait for the runner to
// read: it is how a stop arrives.
func (s *session) answer() {
	for {
		select {
		case pong := <-s.pings:
			s.send(protocol.Message{Pong: pong})
		case <-s.lost:
			return
		}
	}
}

// ownSignals takes the signals sent to the agent, which stands in the
// command's place, as if the runner had sent them.
func (s *session) ownSignals() (stop func()) {
	c := make(chan os.Signal, 16)
	signal.Notify(c, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT, unix.SIGUSR1, unix.SIGUSR2, unix.SIGWINCH, unix.SIGCONT)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case sig := <-c:
				if n, ok := sig.(unix.Signal); ok {
					select {
					case s.signals <- protocol.Signal{Number: int(n)}:
					default: // 16 are waiting already
					}
				}
			case <-done:
				return
			}
		}
	}()
	return func() { signal.Stop(c); close(done) }
}
