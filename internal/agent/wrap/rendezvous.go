package wrap

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/rendezvous"
)

// commandConn is the agent's side of the connection to a command that uses package rendezvous.
type commandConn struct {
	agentEnd   *os.File
	commandEnd *os.File // nil once the command has started

	mu sync.Mutex // guards writes
}

// commandFD is the command's descriptor of the connection.
const commandFD = 3

// newCommandConn creates the connection; nil if the runner did not ask for it.
func newCommandConn(welcome *protocol.Welcome) (*commandConn, error) {
	if !welcome.Rendezvous {
		return nil, nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("create a socket for the command: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // lets Close end a Read
		return nil, fmt.Errorf("create a socket for the command: %w", err)
	}
	return &commandConn{agentEnd: os.NewFile(uintptr(fds[0]), "company"),
		commandEnd: os.NewFile(uintptr(fds[1]), "command")}, nil
}

// close closes both ends.
func (c *commandConn) close() {
	if c != nil {
		_ = c.agentEnd.Close()
		c.closeCommandEnd()
	}
}

// closeCommandEnd closes the agent's copy of the command's end.
func (c *commandConn) closeCommandEnd() {
	if c != nil && c.commandEnd != nil {
		_ = c.commandEnd.Close()
		c.commandEnd = nil
	}
}

// files returns the additional descriptors of the command, environ the variables that describe them.
func (c *commandConn) files() []uintptr {
	if c == nil {
		return nil
	}
	return []uintptr{c.commandEnd.Fd()}
}

func (c *commandConn) environ() []string {
	if c == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s=%d", rendezvous.Env, commandFD)}
}

// replyCommand sends a reply to the command; at is on the agent's clock.
func (s *session) replyCommand(a rendezvous.Reply, at int64) {
	a.At = at - s.clock.Now() + rendezvous.Now()
	line, err := json.Marshal(a)
	if err != nil {
		s.log(err.Error())
		return
	}
	s.command.mu.Lock()
	defer s.command.mu.Unlock()
	_, _ = s.command.agentEnd.Write(append(line, '\n')) // the command may have ended
}

// serveCommand handles the command's requests until ctx ends.
func (s *session) serveCommand(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = s.command.agentEnd.Close() })()
	lines := bufio.NewScanner(s.command.agentEnd)
	lines.Buffer(nil, rendezvous.MaxLine)
	for lines.Scan() {
		var q rendezvous.Request
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			s.log("decode a request of the command: " + err.Error())
			return
		}
		switch {
		case q.Rendezvous != nil:
			s.send(protocol.Message{RendezvousRequest: &protocol.RendezvousRequest{ID: q.ID,
				Rendezvous: *q.Rendezvous}})
		case q.Barrier:
			go s.atBarrier(ctx, q.ID)
		case q.Began != 0:
			s.send(protocol.Message{Started: &protocol.Stamp{At: q.Began - rendezvous.Now() + s.clock.Now()}})
		}
	}
}

// atBarrier waits at the barrier on behalf of the command.
func (s *session) atBarrier(ctx context.Context, id int64) {
	if s.welcome.Barrier == "" {
		s.replyCommand(rendezvous.Reply{ID: id}, s.clock.Now())
		return
	}
	s.send(protocol.Message{Ready: &protocol.Stamp{At: s.clock.Now()}})
	select {
	case at := <-s.start:
		s.send(protocol.Message{GoAck: &protocol.Stamp{At: at}})
		s.replyCommand(rendezvous.Reply{ID: id}, at)
	case <-ctx.Done():
	}
}

// forwardRendezvous forwards the runner's reply to the command.
func (s *session) forwardRendezvous(m *protocol.RendezvousReply) {
	if s.command != nil {
		s.replyCommand(*m, m.At)
	}
}
