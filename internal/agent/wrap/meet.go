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

// company is our side of a command that takes part in what the run agrees on.
type company struct {
	ours   *os.File
	theirs *os.File // the command's; nil once it was started

	mu sync.Mutex // of writing
}

// companyFD is where the command finds its side: behind its output.
const companyFD = 3

// newCompany makes the two sides; nil if the runner does not ask for it.
func newCompany(welcome *protocol.Welcome) (*company, error) {
	if !welcome.Meets {
		return nil, nil
	}
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("a socket for the command: %w", err)
	}
	if err := unix.SetNonblock(fds[0], true); err != nil { // so that Close ends a Read
		return nil, fmt.Errorf("a socket for the command: %w", err)
	}
	return &company{ours: os.NewFile(uintptr(fds[0]), "company"), theirs: os.NewFile(uintptr(fds[1]), "command")}, nil
}

// close lets go of both sides.
func (c *company) close() {
	if c != nil {
		_ = c.ours.Close()
		c.started()
	}
}

// started lets go of the command's side, which it has now.
func (c *company) started() {
	if c != nil && c.theirs != nil {
		_ = c.theirs.Close()
		c.theirs = nil
	}
}

// files are the command's descriptors behind its output, and environ what it is
// told of them.
func (c *company) files() []uintptr {
	if c == nil {
		return nil
	}
	return []uintptr{c.theirs.Fd()}
}

func (c *company) environ() []string {
	if c == nil {
		return nil
	}
	return []string{fmt.Sprintf("%s=%d", rendezvous.Env, companyFD)}
}

// tell answers the command; at is of our clock.
func (s *session) tell(a rendezvous.Answer, at int64) {
	a.At = at - s.clock.Now() + rendezvous.Now()
	line, err := json.Marshal(a)
	if err != nil {
		s.log(err.Error())
		return
	}
	s.company.mu.Lock()
	defer s.company.mu.Unlock()
	_, _ = s.company.ours.Write(append(line, '\n')) // it may have ended
}

// accompany passes on what the command says, until ctx ends with it.
func (s *session) accompany(ctx context.Context) {
	defer context.AfterFunc(ctx, func() { _ = s.company.ours.Close() })()
	lines := bufio.NewScanner(s.company.ours)
	lines.Buffer(nil, rendezvous.MaxLine)
	for lines.Scan() {
		var q rendezvous.Ask
		if err := json.Unmarshal(lines.Bytes(), &q); err != nil {
			s.log("the command said what cannot be read: " + err.Error())
			return
		}
		switch {
		case q.Meeting != nil:
			s.send(protocol.Message{Meet: &protocol.Meet{ID: q.ID, Meeting: *q.Meeting}})
		case q.Barrier:
			go s.atBarrier(ctx, q.ID)
		case q.Began != 0:
			s.send(protocol.Message{Started: &protocol.Stamp{At: q.Began - rendezvous.Now() + s.clock.Now()}})
		}
	}
}

// atBarrier is wait for a command that waits itself.
func (s *session) atBarrier(ctx context.Context, id int64) {
	if s.welcome.Barrier == "" {
		s.tell(rendezvous.Answer{ID: id}, s.clock.Now())
		return
	}
	s.send(protocol.Message{Ready: &protocol.Stamp{At: s.clock.Now()}})
	select {
	case at := <-s.start:
		s.send(protocol.Message{GoAck: &protocol.Stamp{At: at}})
		s.tell(rendezvous.Answer{ID: id}, at)
	case <-ctx.Done():
	}
}

// met passes on that a meeting takes place.
func (s *session) met(m *protocol.Met) {
	if s.company != nil {
		s.tell(*m, m.At)
	}
}
