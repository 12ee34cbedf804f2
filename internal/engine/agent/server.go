// Package agent is the runner's side of the agents: a listener that they dial,
// a session for each, and the conversion of everything they say onto the
// runner's clock. The agent's own side is in wrap, jail and canary, what both
// speak in wire.
package agent

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/agent/wire"
	"github.com/cnsbench/cnsbench/internal/op"
)

// maxSocket is what sun_path holds, less its final zero (unix(7)).
const maxSocket = 107

// helloWithin is how long a connection may stay silent before its hello.
const helloWithin = 10 * time.Second

// ID names one container of one instance.
type ID struct{ Instance, Container string }

// String is "instance/container".
func (id ID) String() string { return id.Instance + "/" + id.Container }

// Server takes the agents' connections. Its methods are safe for concurrent use.
type Server struct {
	ctx    context.Context
	socket string
	clock  op.Clock
	sink   engine.Sink
	ln     net.Listener
	wg     sync.WaitGroup

	mu       sync.Mutex
	sessions map[string]*Session // by token, until the agent has come
	live     map[*Session]bool
	totals   map[string]*totals // by instance
	closed   bool
}

// Listen serves on a unix socket that it creates; one that a dead run has
// left there is replaced. The server lives until Close, or until ctx ends.
func Listen(ctx context.Context, socket string, clock op.Clock, sink engine.Sink) (*Server, error) {
	if len(socket) > maxSocket {
		return nil, fmt.Errorf("the agents' socket %s is longer than the %d bytes a unix socket may have: use a shorter output or scratch directory", socket, maxSocket)
	}
	if fi, err := os.Lstat(socket); err == nil && fi.Mode()&os.ModeSocket != 0 {
		if err := os.Remove(socket); err != nil {
			return nil, fmt.Errorf("remove a stale socket: %w", err)
		}
	}
	ln, err := (&net.ListenConfig{}).Listen(ctx, "unix", socket)
	if err != nil {
		return nil, fmt.Errorf("listen for agents: %w", err)
	}
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	s := &Server{
		ctx: ctx, socket: socket, clock: clock, sink: sink, ln: ln,
		sessions: map[string]*Session{}, live: map[*Session]bool{}, totals: map[string]*totals{},
	}
	context.AfterFunc(ctx, func() { _ = s.Close() })
	s.wg.Go(s.accept)
	return s, nil
}

// Socket is where the server listens.
func (s *Server) Socket() string { return s.socket }

// Close stops listening and drops every connection, which ends the workloads
// that are still running. It waits until all sessions have ended.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	var all []*Session
	for _, sess := range s.sessions {
		all = append(all, sess)
	}
	for sess := range s.live {
		all = append(all, sess)
	}
	s.mu.Unlock()
	err := s.ln.Close()
	for _, sess := range all {
		sess.Abandon(errors.New("the runner has closed"))
	}
	s.wg.Wait()
	return err
}

// Options say what an agent is to do beside its command.
type Options struct {
	// Barrier that the command waits at until Release; empty: it starts at once.
	Barrier string
	// Outputs are glob patterns of files to stream, absolute, as the command
	// sees them.
	Outputs []string
	// Sample is the interval of samples; 0: one second; negative: none.
	Sample time.Duration
	// Grace is how long a command has after SIGTERM if the runner is lost;
	// 0: five seconds.
	Grace  time.Duration
	Canary *wire.CanarySpec
	// Offset shifts the agent's clock, for tests of the join.
	Offset time.Duration
}

// Expect announces an agent. The session's token, which is good once, is to
// reach the agent by a way that others cannot read.
func (s *Server) Expect(id ID, o Options) (*Session, error) {
	for _, p := range o.Outputs {
		if _, err := filepath.Match(p, ""); err != nil || !filepath.IsAbs(p) {
			return nil, fmt.Errorf("%s: output %q is not an absolute path or pattern", id, p)
		}
	}
	sess := newSession(s, id, o, rand.Text())
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the agents' server is closed")
	}
	s.sessions[sess.token] = sess
	return sess, nil
}

func (s *Server) accept() {
	for {
		c, err := s.ln.Accept()
		if err != nil {
			if !errors.Is(err, net.ErrClosed) {
				s.sink.Failed(fmt.Errorf("accept agents: %w", err))
			}
			return
		}
		s.wg.Go(func() { s.serve(c) })
	}
}

// serve is the life of one connection.
func (s *Server) serve(c net.Conn) {
	conn := wire.NewConn(c, func() int64 { return int64(s.clock.Now()) })
	defer conn.Close() // the agent notices
	sess, err := s.greet(c, conn)
	if err != nil {
		s.sink.Log("agent", err.Error())
		return
	}
	sess.serve(s.ctx, conn)
}

// greet reads the hello and answers it.
func (s *Server) greet(c net.Conn, conn *wire.Conn) (*Session, error) {
	if err := c.SetReadDeadline(time.Now().Add(helloWithin)); err != nil {
		return nil, err
	}
	m, err := conn.Read()
	if err != nil {
		return nil, fmt.Errorf("a connection ended before its hello: %w", err)
	}
	if m.Hello == nil || m.Hello.Magic != wire.Magic {
		return nil, refuse(conn, "it is not a cnsbench agent")
	}
	sess := s.claim(m.Hello.Token)
	if sess == nil {
		return nil, refuse(conn, "its token is unknown, or was used before")
	}
	if m.Hello.Proto != wire.Proto {
		err := refuse(conn, fmt.Sprintf("the agent (version %s) speaks protocol %d, the runner (version %s) protocol %d: use the agent built with this runner",
			m.Hello.Version, m.Hello.Proto, wire.Version, wire.Proto))
		sess.Abandon(err)
		return nil, err
	}
	err = sess.greet(conn)
	if err == nil {
		err = c.SetReadDeadline(time.Time{})
	}
	if err != nil {
		err = fmt.Errorf("welcome the agent of %s: %w", sess.id, err)
		sess.Abandon(err)
		return nil, err
	}
	return sess, nil
}

// refuse tells the agent and the runner's people the same.
func refuse(conn *wire.Conn, reason string) error {
	err := errors.New("an agent was refused: " + reason)
	if writeErr := conn.Write(wire.Message{Refuse: &wire.Refuse{Reason: reason}}); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	return err
}

// claim spends a token.
func (s *Server) claim(token string) *Session {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess := s.sessions[token]
	if sess != nil {
		delete(s.sessions, token)
		s.live[sess] = true
	}
	return sess
}

// forget removes a session that has ended.
func (s *Server) forget(sess *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, sess.token)
	delete(s.live, sess)
}

// Forget lets go of what is kept of an instance that has ended for good.
func (s *Server) Forget(instance string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.totals, instance)
}

// totals sums the samples of an instance's containers, also of those that
// have ended.
type totals struct{ last map[string]op.Sample }

// sum takes a container's sample and returns the instance's.
func (s *Server) sum(id ID, sample op.Sample) op.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.totals[id.Instance]
	if t == nil {
		t = &totals{last: map[string]op.Sample{}}
		s.totals[id.Instance] = t
	}
	t.last[id.Container] = sample
	all := op.Sample{Instance: id.Instance, At: sample.At}
	for _, c := range t.last {
		all.ReadBytes += c.ReadBytes
		all.WriteBytes += c.WriteBytes
		all.ReadOps += c.ReadOps
		all.WriteOps += c.WriteOps
		all.CPUNanos += c.CPUNanos
		all.RSSBytes += c.RSSBytes
	}
	return all
}
