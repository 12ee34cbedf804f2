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
	"io/fs"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// How long a connection has to be secured, to show a good token and to be
// welcomed. Anybody may dial a port. The socket is open to this user's processes
// alone: an agent there makes its mounts between connecting and its hello, which
// takes long where hundreds begin at once, and its process ends if it fails.
const (
	helloWithin      = 10 * time.Second
	localHelloWithin = 10 * time.Minute
)

// ID names one container of one instance.
type ID struct{ Instance, Container string }

// String is "instance/container".
func (id ID) String() string { return id.Instance + "/" + id.Container }

// Server takes the agents' connections. Its methods are safe for concurrent use.
type Server struct {
	ctx      context.Context
	address  string              // as agents dial it
	identity *transport.Identity // nil: a unix socket
	silence  time.Duration
	clock    op.Clock
	sink     engine.Sink
	ln       net.Listener
	wg       sync.WaitGroup
	machine  string // where the runner is, which it reads itself
	// helloWithin bounds the time until the welcome of who dials over TLS.
	helloWithin time.Duration

	strangers strangers
	refusals  rarely

	mu        sync.Mutex
	sessions  map[string]*Session // by token, until the agent has come
	spent     map[string]ID       // by token, once it has
	live      map[*Session]bool
	groups    map[string]*group // that meet
	instances map[string]*instance
	machines  map[string]*Session // by ID: whose agent reads it
	closed    bool
}

// Address is where agents dial: "unix:PATH" or "tls:HOST:PORT".
func (s *Server) Address() string { return s.address }

// Socket is the path of the unix socket; empty with TLS.
func (s *Server) Socket() string {
	path, ok := strings.CutPrefix(s.address, transport.Unix+":")
	if !ok {
		return ""
	}
	return path
}

// Pin is the SHA-256 of the runner's certificate in hex; empty with a unix socket.
func (s *Server) Pin() string {
	if s.identity == nil {
		return ""
	}
	return s.identity.Pin()
}

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
	s.strangers.close()
	for _, sess := range all {
		sess.Abandon(errors.New("the runner has closed"))
	}
	s.wg.Wait()
	s.refusals.flush(s.logRefusal)
	return err
}

// Options say what an agent is to do beside its command.
type Options struct {
	// Barrier that the command waits at until Release; empty: it starts at once.
	Barrier string
	// Meets: the command is started at once, stands at the barrier itself, and may
	// meet others on the way; see package rendezvous.
	Meets bool
	// Outputs are glob patterns of files to stream, absolute, as the command
	// sees them.
	Outputs []string
	// MaxOutput bounds, in bytes, what the agent sends of the command's output
	// (package quota); 0: nothing does. What the sink does not keep it stops sending
	// in any case.
	MaxOutput int64
	// Sample is the interval of samples; 0: one second; negative: none.
	Sample time.Duration
	// Grace is how long a command has after SIGTERM if the runner is lost;
	// 0: five seconds.
	Grace time.Duration
	// Touch asks for the first I/O on volumes, before Ready; see Session.Touches.
	Touch []protocol.TouchSpec
	// TouchLater asks for it only by Session.Touch.
	TouchLater bool
	Canary     *protocol.CanarySpec
	// Phase is when the command runs; the zero value is no phase.
	Phase engine.Phase
	// Give lists files of this machine that the agent writes before the command
	// is started.
	Give []Gift
	// Sink takes what the agent reports; nil: the server's. Lines for people
	// about its way here go to the server's in any case.
	Sink engine.Sink
	// Offset shifts the agent's clock, for tests of the join.
	Offset time.Duration
}

// Gift is a file for an agent.
type Gift struct {
	Source string      // on this machine
	Path   string      // for the command, who must be able to make it
	Mode   fs.FileMode // permission bits
}

// Expect announces an agent. The session's token, which is good once, is to
// reach the agent by a way that others cannot read. An agent that never comes
// costs nothing but memory; Abandon ends its session. One that comes a second
// time (a container that was started anew) is refused, in its log and ours.
func (s *Server) Expect(id ID, o Options) (*Session, error) {
	for _, p := range o.Outputs {
		if _, err := filepath.Match(p, ""); err != nil || !filepath.IsAbs(p) {
			return nil, fmt.Errorf("%s: output %q is not an absolute path or pattern", id, p)
		}
	}
	for _, t := range o.Touch {
		if !filepath.IsAbs(t.Path) || t.Volume == "" || t.Device && t.Write {
			return nil, fmt.Errorf("%s: touch %+v needs a volume and an absolute path, and does not write to devices", id, t)
		}
	}
	for _, g := range o.Give {
		if !filepath.IsAbs(g.Path) {
			return nil, fmt.Errorf("%s: %q is not an absolute path for a file", id, g.Path)
		}
	}
	if p := o.Phase; o.Barrier == "" && (p.From > 0 || p.Until > 0) || p.Until > 0 && p.Until <= p.From {
		return nil, fmt.Errorf("%s: phase %+v needs a barrier to count from, and an end after its beginning", id, p)
	}
	if o.Meets && o.Phase != (engine.Phase{}) {
		return nil, fmt.Errorf("%s: a command that stands at the barrier itself has no phases", id)
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

// A listener that fails may recover: a machine out of descriptors, a network
// that is down for a moment (accept(2)). After so many failures in a row, ten
// seconds in all, it is taken for lost.
const (
	acceptPause    = 50 * time.Millisecond
	acceptFailures = 200
)

func (s *Server) accept() {
	for failures := 0; ; {
		c, err := s.ln.Accept()
		switch {
		case err == nil:
			failures = 0
			if s.strangers.add(c) {
				s.wg.Go(func() { s.serve(c) })
			}
		case errors.Is(err, net.ErrClosed):
			return
		case failures == acceptFailures:
			s.sink.Failed(fmt.Errorf("accept agents: %w", err))
			return
		default:
			failures++
			s.refusals.say("no connection can be taken for now: "+err.Error(), s.logRefusal)
			time.Sleep(acceptPause)
		}
	}
}

// logRefusal is for what is no session's.
func (s *Server) logRefusal(line string) { s.sink.Log("agent", line) }

// serve is the life of one connection.
func (s *Server) serve(c net.Conn) {
	defer c.Close() // the agent notices
	defer s.strangers.remove(c)
	within, silence := s.helloWithin, s.silence
	if s.identity == nil {
		within, silence = localHelloWithin, localHelloWithin
	}
	late := time.AfterFunc(within, func() { _ = c.Close() })
	l, err := transport.Accept(s.ctx, c, s.identity, silence)
	if err != nil {
		late.Stop()
		s.refusals.say(fmt.Sprintf("a connection from %s was not secured: %v", c.RemoteAddr(), err), s.logRefusal)
		return
	}
	defer l.Close() // says so to the agent where it can be said
	conn := protocol.NewConn(l, func() int64 { return int64(s.clock.Now()) })
	sess, err := s.greet(c, conn)
	late.Stop()
	l.SetSilence(s.silence)
	if err != nil {
		s.refusals.say(err.Error(), s.logRefusal)
		return
	}
	sess.serve(s.ctx, conn)
}

// greet reads the hello and answers it.
func (s *Server) greet(c net.Conn, conn *protocol.Conn) (*Session, error) {
	m, err := conn.ReadHello()
	if err != nil {
		return nil, fmt.Errorf("a connection ended before its hello: %w", err)
	}
	if m.Hello == nil || m.Hello.Magic != protocol.Magic {
		return nil, refuse(conn, "it is not a cnsbench agent")
	}
	sess, reason := s.claim(m.Hello.Token)
	if sess == nil {
		return nil, refuse(conn, reason)
	}
	s.strangers.remove(c)
	if m.Hello.Proto != protocol.Proto {
		err := refuse(conn, fmt.Sprintf("the agent (version %s) speaks protocol %d, the runner (version %s) protocol %d: use the agent built with this runner",
			m.Hello.Version, m.Hello.Proto, protocol.Version, protocol.Proto))
		sess.Abandon(err)
		return nil, err
	}
	if err = sess.greet(conn, m.Hello); err != nil {
		err = fmt.Errorf("welcome the agent of %s: %w", sess.id, err)
		sess.Abandon(err)
		return nil, err
	}
	return sess, nil
}

// refuse tells the agent and the runner's people the same.
func refuse(conn *protocol.Conn, reason string) error {
	err := errors.New("an agent was refused: " + reason)
	if writeErr := conn.Write(protocol.Message{Refuse: &protocol.Refuse{Reason: reason}}); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	return err
}

// claim spends a token, or says why it cannot.
func (s *Server) claim(token string) (*Session, string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sess := s.sessions[token]; sess != nil {
		delete(s.sessions, token)
		s.live[sess] = true
		s.spent[token] = sess.id
		of := s.instance(sess.id.Instance)
		of.tokens = append(of.tokens, token)
		return sess, ""
	}
	if id, ok := s.spent[token]; ok {
		return nil, fmt.Sprintf("container %s was started a second time: the run counts only the first start, whose token was used (what restarted it?)", id)
	}
	return nil, "its token is unknown: it is not of this run, or its container is no longer expected"
}

// forget removes a session that has ended.
func (s *Server) forget(sess *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[sess.token] == sess { // else it is another's by now
		delete(s.sessions, sess.token)
	}
	delete(s.live, sess)
	if s.machines[sess.machine] == sess {
		delete(s.machines, sess.machine)
	}
}

// reads says whether an agent is to read the counters of its machine: one of those
// on it does, and none on the runner's own.
func (s *Server) reads(sess *Session, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sess.machine = id
	if s.identity == nil || id == "" || id == s.machine || s.machines[id] != nil {
		return false
	}
	s.machines[id] = sess
	return true
}

// Forget lets go of what is kept of an instance that has ended for good.
func (s *Server) Forget(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if of := s.instances[name]; of != nil {
		for _, token := range of.tokens {
			delete(s.spent, token)
		}
	}
	delete(s.instances, name)
}

// instance is what is kept of all containers of one, also of those that have
// ended.
type instance struct {
	last   map[string]op.Sample // by container
	tokens []string             // that were used
}

// instance is made when it is first asked for; call it with mu held.
func (s *Server) instance(name string) *instance {
	of := s.instances[name]
	if of == nil {
		of = &instance{last: map[string]op.Sample{}}
		s.instances[name] = of
	}
	return of
}

// sum takes a container's sample and returns the instance's.
func (s *Server) sum(id ID, sample op.Sample) op.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.instance(id.Instance)
	of.last[id.Container] = sample
	all := op.Sample{Instance: id.Instance, At: sample.At}
	for _, c := range of.last {
		all.ReadBytes += c.ReadBytes
		all.WriteBytes += c.WriteBytes
		all.ReadOps += c.ReadOps
		all.WriteOps += c.WriteOps
		all.CPUNanos += c.CPUNanos
		all.RSSBytes += c.RSSBytes
	}
	return all
}
