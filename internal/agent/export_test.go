package agent

import "time"

// ListenTLSFor is ListenTLS with another limit to an agent's silence.
var ListenTLSFor = listenTLS

// SetHelloWithin changes how long who dials over TLS has until the welcome.
func (s *Server) SetHelloWithin(d time.Duration) { s.helloWithin = d }

// MaxStrangers is how many connections without a token there may be.
const MaxStrangers = maxStrangers
