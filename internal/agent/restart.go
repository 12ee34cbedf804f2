package agent

import (
	"context"
	"fmt"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// ExpectRestarted announces the agent of a restarted container that replaces prev. It reuses prev's options
// and token, so the pod specification does not change; container is its name in the bundle. A connected prev
// runs to its end; the caller abandons a prev that has not connected.
func (s *Server) ExpectRestarted(prev *Session, container string) (*Session, error) {
	return s.register(newSession(s, ID{Instance: prev.id.Instance, Container: container}, prev.opts, prev.token))
}

// ProbeVolumes repeats the volume probes while the command runs and returns their results, failed ones
// included. Calls must not overlap.
func (s *Session) ProbeVolumes(ctx context.Context) ([]VolumeProbe, error) {
	want := 0
	for _, t := range s.opts.Probes {
		if t.Write {
			want++
		}
		if t.Read {
			want++
		}
	}
	again := make(chan VolumeProbe, want)
	s.mu.Lock()
	conn := s.conn
	s.reprobes = again
	s.mu.Unlock()
	if conn == nil {
		return nil, fmt.Errorf("container %s: agent not connected", s.id)
	}
	if err := conn.Write(protocol.Message{ProbeVolumes: &protocol.ProbeVolumes{}}); err != nil {
		return nil, fmt.Errorf("repeat the volume probes of %s: %w", s.id, err)
	}
	var list []VolumeProbe
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
