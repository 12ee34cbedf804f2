package agent

import "time"

// ListenTLSFor is ListenTLS with another silence limit.
var ListenTLSFor = listenTLS

// SetHelloWithin sets the time limit over TLS from accept to the welcome message.
func (s *Server) SetHelloWithin(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.helloWithin = d
}

// MaxUnauthenticated is the maximum number of connections that have not sent a token.
const MaxUnauthenticated = maxUnauthenticated
