package agent

import (
	"context"
	"errors"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// Again announces the agent of a container that is started anew in place of
// prev's: with prev's options and token, which is good once more, so that nothing
// in the container's surroundings has to change. The record knows it as container.
// A prev that is connected goes on until it ends; the caller abandons one whose
// agent has not come.
func (s *Server) Again(prev *Session, container string) (*Session, error) {
	sess := newSession(s, ID{Instance: prev.id.Instance, Container: container}, prev.opts, prev.token)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the agents' server is closed")
	}
	s.sessions[sess.token] = sess
	return sess, nil
}

// Touch has the agent repeat its first I/Os beside its command, and returns when
// all have ended, whichever way. One call at a time.
func (s *Session) Touch(ctx context.Context) ([]Touch, error) {
	want := 0
	for _, t := range s.opts.Touch {
		if t.Write {
			want++
		}
		if t.Read {
			want++
		}
	}
	again := make(chan Touch, want)
	s.mu.Lock()
	conn := s.conn
	s.again = again
	s.mu.Unlock()
	if conn == nil {
		return nil, fmt.Errorf("container %s: its agent is not connected", s.id)
	}
	if err := conn.Write(protocol.Message{Touch: &protocol.Touch{}}); err != nil {
		return nil, fmt.Errorf("touch the volumes of %s again: %w", s.id, err)
	}
	var list []Touch
	for len(list) < want {
		select {
		case t := <-again:
			list = append(list, t)
		case <-s.done:
			return list, s.failure()
		case <-ctx.Done():
			return list, fmt.Errorf("container %s: %w", s.id, context.Cause(ctx))
		}
	}
	return list, nil
}
