package agent

import "time"

// SetSilence shortens the wait for lost agents; before any is expected.
func (s *Server) SetSilence(d time.Duration) { s.silence = d }

// MaxStrangers is how many connections without a token there may be.
const MaxStrangers = maxStrangers
