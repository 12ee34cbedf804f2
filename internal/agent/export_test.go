package agent

import "time"

// ListenTLSFor is ListenTLS with another silence limit.
var ListenTLSFor = listenTLS

// SetHelloWithin sets the deadline from accept to welcome over TLS.
func (s *Server) SetHelloWithin(d time.Duration) { s.helloWithin = d }

// MaxUnauthenticated is the maximum number of connections without a token.
const MaxUnauthenticated = maxUnauthenticated
