package wrap

import (
	"context"
	"errors"
	"os"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// session is the state of one Run.
type session struct {
	conn    *protocol.Conn
	welcome *protocol.Welcome
	clock   clock.Clock
	cmd     Command
	logs    *Logs

	start   chan int64           // opening instant of the barrier
	signals chan protocol.Signal // from the runner or sent to the agent
	pings   chan *protocol.Pong
	lost    chan struct{} // closed when the connection is gone
	readErr error         // valid once lost is closed
	bye     chan struct{}

	phaseEndAt   int64 // end of the phase; 0: none
	startStopped bool  // the command starts stopped

	inputFiles *fileReceiver
	child      *child
	command    *commandConn // nil: the command waits at its barrier by not being started
	tree       *tree
	level      atomic.Pointer[op.SampleLevel]
	sampler    sampler
	stream     *streamer
	out        *output
}

// ErrRunnerLost is returned by Run when the connection broke; the command was ended.
var ErrRunnerLost = errors.New("the connection to the runner was lost")

// ErrUnanswered is returned by Handshake when the connection ended before the runner's answer. If the runner
// has not read the hello, another connection may succeed.
var ErrUnanswered = errors.New("the runner did not answer")

// cancelled returns the exit of a command that was ended before its start.
func (s *session) cancelled(sig unix.Signal) protocol.Exit {
	return protocol.Exit{At: s.clock.Now(), Signal: int(sig), Ours: true,
		Message: "ended before the command was started"}
}

// awaitOr waits for a value from c, for a terminating signal, for the loss of the runner or for the end of
// ctx. The last two count as SIGTERM; the signal is 0 if c delivered (or is closed).
func awaitOr[T any](ctx context.Context, s *session, c <-chan T) (value T, sig unix.Signal) {
	for {
		select {
		case value = <-c:
			return value, 0
		case sig := <-s.signals:
			if endsCommand(sig) {
				return value, unix.Signal(sig.Number)
			}
		case <-s.lost:
			return value, unix.SIGTERM
		case <-ctx.Done():
			return value, unix.SIGTERM
		}
	}
}

func (s *session) log(line string) { s.send(protocol.Message{Log: &protocol.Log{Line: line}}) }

// send sends a message that may be lost with the runner; read detects the loss.
func (s *session) send(m protocol.Message) { _ = s.conn.Write(m) }

// file sends bytes of a file and repeats the command's output on the agent's.
func (s *session) file(name string, offset int64, data []byte) error {
	if s.logs.Echo {
		switch name { // a failed echo does not stop the transfer
		case protocol.Stdout:
			_, _ = os.Stdout.Write(data)
		case protocol.Stderr:
			_, _ = os.Stderr.Write(data)
		}
	}
	return s.conn.Write(protocol.Message{File: &protocol.File{Name: name, Offset: offset}, Body: data})
}

// endsCommand reports whether a signal is meant to end the command.
func endsCommand(sig protocol.Signal) bool {
	n := unix.Signal(sig.Number)
	return n == unix.SIGTERM || n == unix.SIGINT || n == unix.SIGKILL
}

// execFailed returns the exit of a command that could not be executed.
func (s *session) execFailed(err error) protocol.Exit {
	return protocol.Exit{At: s.clock.Now(), ExitCode: 126, Code: protocol.CodeExec, Message: err.Error()}
}
