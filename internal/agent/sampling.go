package agent

import (
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/op"
)

// SetSampling says what agents read of their processes, and how often; ownCgroups: each is in a control group with its
// container only, whose pressure is then that of the workload. It must be called before a session is made.
func (s *Server) SetSampling(sampling op.Sampling, ownCgroups bool) {
	s.sampling, s.ownCgroups = sampling, ownCgroups
}

// SetSampleLevel changes what agents read, those that run and later ones. It does not wait for them.
func (s *Server) SetSampleLevel(level op.SampleLevel) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sampling.Level = level
	if s.closed {
		return
	}
	for sess := range s.live {
		s.wg.Go(func() { sess.setLevel(level) })
	}
}

func (s *Server) sampleLevel() op.SampleLevel {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sampling.Level
}

// setLevel sends the level; the welcome of an agent that has not connected has it.
func (s *Session) setLevel(level op.SampleLevel) {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Write(protocol.Message{SetLevel: &protocol.SetLevel{Level: level}}) // an error ends the session
	}
}
