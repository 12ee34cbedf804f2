// Package agent is the runner's side of the agents: a listener that they dial, a session for each agent, and
// the conversion of their timestamps to the runner's clock. The agent's own side is in packages wrap, sandbox
// and canary; both sides use package protocol.
package agent

import (
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// Deadlines for the TLS handshake and the hello, over TLS and over the unix socket. Any host can dial the TLS
// port. Only processes of this user can open the socket; an agent there sets up its mounts before its hello,
// which takes long when hundreds start at once.
const (
	helloWithin      = 10 * time.Second
	localHelloWithin = 10 * time.Minute
)

// Address returns the address that agents dial: "unix:PATH" or "tls:HOST:PORT".
func (s *Server) Address() string { return s.address }

// Socket returns the path of the unix socket; empty with TLS.
func (s *Server) Socket() string {
	path, ok := strings.CutPrefix(s.address, transport.Unix+":")
	if !ok {
		return ""
	}
	return path
}

// Close stops listening and closes every connection, which ends the running workloads. It waits until all
// sessions have ended.
func (s *Server) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	all := slices.AppendSeq(slices.Collect(maps.Values(s.sessions)), maps.Keys(s.live))
	s.mu.Unlock()
	err := s.ln.Close()
	s.unauthenticated.close()
	for _, sess := range all {
		sess.Abandon(errors.New("the runner closed the connection"))
	}
	s.wg.Wait()
	s.refusals.flush(s.logRefusal)
	return err
}

// Expect announces an agent. The session's token is valid for one connection and must reach the agent over a
// confidential channel. An agent that never connects costs only memory; Abandon ends its session. A second
// connection with the token (a restarted container) is refused and logged on both sides.
func (s *Server) Expect(id ID, o Options) (*Session, error) {
	for _, p := range o.Outputs {
		if _, err := filepath.Match(p, ""); err != nil || !filepath.IsAbs(p) {
			return nil, fmt.Errorf("%s: invalid output %q: want an absolute path or pattern", id, p)
		}
	}
	for _, t := range o.Probes {
		if !filepath.IsAbs(t.Path) || t.Volume == "" || t.Device && t.Write {
			return nil, fmt.Errorf("%s: invalid volume probe %+v: want a volume and an absolute path, and no write to a device", id, t)
		}
	}
	for _, g := range o.Files {
		if !filepath.IsAbs(g.Path) {
			return nil, fmt.Errorf("%s: invalid file path %q: want an absolute path", id, g.Path)
		}
	}
	if p := o.Phase; o.Barrier == "" && (p.From > 0 || p.Until > 0) || p.Until > 0 && p.Until <= p.From {
		return nil, fmt.Errorf("%s: invalid phase %+v: want a barrier, and an end after the beginning", id, p)
	}
	if o.Rendezvous && o.Phase != (engine.Phase{}) {
		return nil, fmt.Errorf("%s: a command that waits at the barrier itself cannot have phases", id)
	}
	return s.register(newSession(s, id, o, rand.Text()))
}

// register announces the agent of a session, in place of one with the same token.
func (s *Server) register(sess *Session) (*Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errors.New("the agent server is closed")
	}
	s.sessions[sess.token] = sess
	return sess, nil
}

// Retries of a failing listener, which may recover: out of file descriptors, network down (accept(2)). After
// acceptFailures consecutive failures (ten seconds) the listener is lost.
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
			if s.unauthenticated.add(c) {
				s.wg.Go(func() { s.serve(c) })
			}
		case errors.Is(err, net.ErrClosed):
			return
		case failures == acceptFailures:
			s.sink.Failed(fmt.Errorf("accept agents: %w", err))
			return
		default:
			failures++
			s.refusals.log("accept agents: "+err.Error(), s.logRefusal)
			time.Sleep(acceptPause)
		}
	}
}

// logRefusal logs a line that belongs to no session.
func (s *Server) logRefusal(line string) { s.sink.Log("agent", line) }

// serve handles one connection.
func (s *Server) serve(c net.Conn) {
	defer c.Close()
	defer s.unauthenticated.remove(c)
	within, silence := s.helloLimits()
	late := time.AfterFunc(within, func() { _ = c.Close() })
	l, err := transport.Accept(s.ctx, c, s.identity, silence)
	if err != nil {
		late.Stop()
		s.refusals.log(fmt.Sprintf("TLS handshake with %s failed: %v", c.RemoteAddr(), err), s.logRefusal)
		return
	}
	defer l.Close() // sends TLS close_notify
	conn := protocol.NewConn(l, func() int64 { return int64(s.clock.Now()) })
	// An agent that has presented its token has as long as in its session: its token is spent.
	sess, err := s.greet(conn, func() bool {
		l.SetSilence(s.silence)
		return s.unauthenticated.remove(c) && late.Stop()
	})
	late.Stop()
	if err != nil {
		s.refusals.log(err.Error(), s.logRefusal)
		return
	}
	sess.serve(s.ctx, conn)
}

// helloLimits returns how long a connection may take until the welcome, and how long it may be silent until then.
func (s *Server) helloLimits() (within, silence time.Duration) {
	if s.identity == nil {
		return localHelloWithin, localHelloWithin
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.helloWithin, s.silence
}

// greet reads the hello and answers it. It calls inTime before it accepts a token; false: the connection was closed,
// and the agent will dial again.
func (s *Server) greet(conn *protocol.Conn, inTime func() bool) (*Session, error) {
	m, err := conn.ReadHello()
	if err != nil {
		return nil, fmt.Errorf("connection ended before the hello: %w", err)
	}
	if m.Hello == nil || m.Hello.Magic != protocol.Magic {
		return nil, refuseAgent(conn, "not a cnsbench agent")
	}
	if s.known(m.Hello.Token) && !inTime() {
		return nil, errors.New("no hello in time: the agent dials again")
	}
	sess, reason := s.redeem(m.Hello.Token)
	if sess == nil {
		return nil, refuseAgent(conn, reason)
	}
	if m.Hello.Proto != protocol.Proto {
		err := refuseAgent(conn, fmt.Sprintf("agent version %s has protocol %d, runner version %s has protocol %d: use the agent built with this runner",
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

// refuseAgent sends the reason to the agent and returns it as an error for the runner's log.
func refuseAgent(conn *protocol.Conn, reason string) error {
	err := errors.New("agent refused: " + reason)
	if writeErr := conn.Write(protocol.Message{Refuse: &protocol.Refuse{Reason: reason}}); writeErr != nil {
		return errors.Join(err, writeErr)
	}
	return err
}

// known reports whether a token is valid and unused.
func (s *Server) known(token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[token] != nil
}

// redeem returns the session of an unused token, or the reason for a refusal.
func (s *Server) redeem(token string) (*Session, string) {
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
		return nil, fmt.Sprintf("container %s was started a second time, but the run accepts only the first start: check what restarted it", id)
	}
	return nil, "unknown token: the agent belongs to another run, or its container is no longer expected"
}

// forget removes an ended session.
func (s *Server) forget(sess *Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[sess.token] == sess { // another session may have reused it
		delete(s.sessions, sess.token)
	}
	delete(s.live, sess)
	if s.machines[sess.machine] == sess {
		delete(s.machines, sess.machine)
	}
}

// Forget releases the state of an instance that does not restart.
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

// instance returns the state of an instance and creates it on first use. The caller holds mu.
func (s *Server) instance(name string) *instance {
	of := s.instances[name]
	if of == nil {
		of = &instance{last: map[string]op.Sample{}}
		s.instances[name] = of
	}
	return of
}

// SetLive makes agents send their samples and the I/Os of their canaries at an interval, in place of each second and
// half second; 0: as before. It must be called before a session is made.
func (s *Server) SetLive(every time.Duration) { s.every = every }

// instanceSample stores a container's sample and returns the sum over the instance's containers.
func (s *Server) instanceSample(id ID, sample op.Sample) op.Sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	of := s.instance(id.Instance)
	of.last[id.Container] = sample
	return op.SumSamples(id.Instance, sample.At, of.last)
}
