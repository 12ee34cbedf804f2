package agent

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// maxUnauthenticated bounds the TLS connections that have not presented a token, and with them memory and
// file descriptors.
const maxUnauthenticated = 512

// connLimiter holds connections, oldest first, and closes the oldest beyond its limit: an agent presents its
// token within milliseconds and dials again if it was closed.
type connLimiter struct {
	limit  int // 0: no limit
	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// add registers c. After close it closes c and returns false.
func (s *connLimiter) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close()
		return false
	}
	if s.limit > 0 && len(s.conns) == s.limit {
		s.conns[0].Close()
		s.conns = slices.Delete(s.conns, 0, 1)
	}
	s.conns = append(s.conns, c)
	return true
}

// remove removes c and reports whether it was registered; otherwise it may have been closed.
func (s *connLimiter) remove(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(s.conns, c)
	if i >= 0 {
		s.conns = slices.Delete(s.conns, i, i+1)
	}
	return i >= 0
}

// close closes all connections, also those added later.
func (s *connLimiter) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.conns {
		c.Close()
	}
}

// At most refusalLines lines about refused connections are logged per refusalSpan.
const (
	refusalLines = 20
	refusalSpan  = time.Minute
)

// logLimiter limits the rate of log lines that unauthenticated peers can cause.
type logLimiter struct {
	mu         sync.Mutex
	since      time.Time
	logged     int
	suppressed int
}

// log emits line or counts it as suppressed.
func (r *logLimiter) log(line string, emit func(string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) > refusalSpan {
		r.since, r.logged = now, 0
	}
	if r.logged == refusalLines {
		r.suppressed++
		return
	}
	r.logged++
	if r.suppressed > 0 {
		line = fmt.Sprintf("%s (%d similar lines suppressed)", line, r.suppressed)
		r.suppressed = 0
	}
	emit(line)
}

// flush reports the suppressed lines.
func (r *logLimiter) flush(emit func(string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.suppressed > 0 {
		emit(fmt.Sprintf("%d more lines about refused connections suppressed", r.suppressed))
		r.suppressed = 0
	}
}
