package agent

import (
	"fmt"
	"net"
	"slices"
	"sync"
	"time"
)

// maxStrangers bounds the connections over TLS that have shown no token yet, and
// with them memory and descriptors: anybody who reaches the port can open some.
const maxStrangers = 512

// strangers are those connections, oldest first. When there are too many the
// oldest is closed: an honest agent shows its token within milliseconds, and
// dials again if it was closed before.
type strangers struct {
	most   int // 0: no limit
	mu     sync.Mutex
	conns  []net.Conn
	closed bool
}

// add takes c in; when all is closed it closes c and returns false.
func (s *strangers) add(c net.Conn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		c.Close() // nobody will serve it
		return false
	}
	if s.most > 0 && len(s.conns) == s.most {
		s.conns[0].Close() // its own goroutine notices
		s.conns = slices.Delete(s.conns, 0, 1)
	}
	s.conns = append(s.conns, c)
	return true
}

// remove forgets c, if it is still known.
func (s *strangers) remove(c net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if i := slices.Index(s.conns, c); i >= 0 {
		s.conns = slices.Delete(s.conns, i, i+1)
	}
}

// close closes all there are and all that come.
func (s *strangers) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for _, c := range s.conns {
		c.Close() // its own goroutine notices
	}
}

// How many lines about refused connections a log gets in how long.
const (
	refusalLines = 20
	refusalSpan  = time.Minute
)

// rarely keeps whoever knocks at the port from filling the log.
type rarely struct {
	mu     sync.Mutex
	since  time.Time
	said   int
	unsaid int
}

// say passes line on, or counts it.
func (r *rarely) say(line string, emit func(string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if now := time.Now(); now.Sub(r.since) > refusalSpan {
		r.since, r.said = now, 0
	}
	if r.said == refusalLines {
		r.unsaid++
		return
	}
	r.said++
	if r.unsaid > 0 {
		line = fmt.Sprintf("%s (and %d lines like it that were not logged)", line, r.unsaid)
		r.unsaid = 0
	}
	emit(line)
}

// flush says what was counted.
func (r *rarely) flush(emit func(string)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unsaid > 0 {
		emit(fmt.Sprintf("%d more lines about refused connections were not logged", r.unsaid))
		r.unsaid = 0
	}
}
