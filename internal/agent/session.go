package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/quota"
)

// Clock exchanges: a burst before the welcome, so that every timestamp can be converted, then one per second.
const (
	exchangeBurst = 8
	exchangeEvery = time.Second
)

// deliverBuffer is the number of messages that may wait for the sink. When it is full the agent's streamer
// waits, never its command.
const deliverBuffer = 16

func newSession(s *Server, id ID, o Options, token string) *Session {
	sink := o.Sink
	if sink == nil {
		sink = s.sink
	}
	sess := &Session{
		server: s, sink: sink, id: id, opts: o, token: token,
		arrived: make(chan struct{}),
		ready:   make(chan struct{}), started: make(chan struct{}), acked: make(chan struct{},
			1), done: make(chan struct{}),
		pongs: make(chan protocol.Message, 4), enoughSent: map[string]bool{}, intended: op.Never,
		readyAt: stamp{at: op.Never}, startAt: stamp{at: op.Never}, arrival: Arrival{Began: op.Never},
	}
	log := func(line string) { sink.Log(id.String(), line) }
	sess.out = &lineWriter{name: protocol.Stdout, emit: sess.tail.add, quota: quota.NewLines(quota.OneSource), log: log}
	sess.errs = &lineWriter{name: protocol.Stderr, emit: sess.tail.add, quota: quota.NewLines(quota.OneSource),
		log: log}
	return sess
}

// ID returns the name of the container.
func (s *Session) ID() ID { return s.id }

// Token returns the secret that the agent presents.
func (s *Session) Token() string { return s.token }

// Env returns the environment of the agent.
func (s *Session) Env() []string {
	public, secret := s.SecretEnv()
	return append(public, secret...)
}

// SecretEnv returns Env in two parts; the second holds the token and must stay secret.
func (s *Session) SecretEnv() (public, secret []string) {
	public = []string{protocol.EnvRunner + "=" + s.server.address}
	if pin := s.server.Pin(); pin != "" {
		public = append(public, protocol.EnvPin+"="+pin)
	}
	if s.opts.Offset != 0 {
		public = append(public, protocol.EnvClockOffset+"="+s.opts.Offset.String())
	}
	return public, []string{protocol.EnvToken + "=" + s.token}
}

func (s *Session) welcome(gifts []protocol.FileSpec, machine string) *protocol.Welcome {
	w := &protocol.Welcome{
		Proto: protocol.Proto, Version: protocol.Version, Barrier: s.opts.Barrier, Rendezvous: s.opts.Rendezvous,
		Outputs: s.opts.Outputs, MaxOutput: s.opts.MaxOutput, GraceNanos: int64(s.opts.Grace), SilenceNanos: int64(s.server.silence),
		Probes: s.opts.Probes, ProbeLater: s.opts.ProbeLater, Canary: s.opts.Canary, Files: gifts,
		CountSyncs: s.opts.CountSyncs, Volumes: s.opts.Volumes,
	}
	if p := s.opts.Phase; p.From > 0 || p.Until > 0 {
		w.Phase = &protocol.Phase{FromNanos: int64(p.From), UntilNanos: int64(p.Until), GraceNanos: int64(p.Grace)}
	}
	switch {
	case s.opts.Sample == 0:
		w.SampleNanos = int64(cmp.Or(s.server.sampling.Interval, time.Second))
	case s.opts.Sample > 0:
		w.SampleNanos = int64(s.opts.Sample)
	}
	if live := s.server.every; live > 0 && w.SampleNanos > 0 {
		w.LiveNanos, w.SampleNanos = int64(live), min(w.SampleNanos, int64(live))
	}
	w.SampleLevel, w.OwnCgroup = s.server.sampleLevel(), s.server.ownCgroups
	w.SampleMachine = s.server.assignMachine(s, machine) && w.SampleNanos > 0
	return w
}

// Ready waits until the command stands at its barrier or, without one, is about to start. It fails when the
// session ends first.
func (s *Session) Ready(ctx context.Context) (at op.Time, plusMinus int64, err error) {
	if err := s.await(ctx, s.ready); err != nil {
		return op.Never, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readyAt.at, s.readyAt.err, nil
}

// VolumeProbes returns the probe results in order of completion; complete once Ready has returned without an
// error.
func (s *Session) VolumeProbes() []VolumeProbe {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.probes)
}

// Arrival returns how the agent connected; false before the hello.
func (s *Session) Arrival() (Arrival, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrival, s.arrival.Began.Known()
}

// Started waits until the command runs and returns the instant.
func (s *Session) Started(ctx context.Context) (at op.Time, plusMinus int64, err error) {
	if err := s.await(ctx, s.started); err != nil {
		return op.Never, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startAt.at, s.startAt.err, nil
}

// await waits for c, ctx or the end of the session.
func (s *Session) await(ctx context.Context, c <-chan struct{}) error {
	select {
	case <-c:
		return nil
	default:
	}
	select {
	case <-c:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("container %s: %w", s.id, context.Cause(ctx))
	case <-s.done:
		select {
		case <-c: // both are ready: c takes precedence
			return nil
		default:
		}
		return s.failure()
	}
}

// failure returns why an ended session did not get further.
func (s *Session) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.Failure != nil {
		return s.end.Failure
	}
	return &engine.Error{Code: "Ended", Message: fmt.Sprintf("container %s has ended: %s", s.id, s.end.Message)}
}

// Release starts the command at an instant of the run (or, with a phase, Phase.From later) and returns when
// the agent has acknowledged it. An instant in the past means at once.
func (s *Session) Release(ctx context.Context, at op.Time) error {
	return s.release(ctx, at, at+op.Time(s.opts.Phase.From))
}

// ReleaseRestarted releases a command that was restarted after the barrier opened: at once, or at its phase.
// A command whose phase is over ends.
func (s *Session) ReleaseRestarted(ctx context.Context, barrier op.Time) error {
	now := s.server.clock.Now()
	if s.opts.Phase.From == 0 && s.opts.Phase.Until == 0 {
		return s.release(ctx, now, now)
	}
	return s.release(ctx, barrier, max(now, barrier+op.Time(s.opts.Phase.From)))
}

// release opens the barrier at an instant; intended is the scheduled start of the command.
func (s *Session) release(ctx context.Context, at, intended op.Time) error {
	if err := s.await(ctx, s.ready); err != nil {
		return err
	}
	theirs, _, ok := s.clocks.ToAgent(at)
	s.mu.Lock()
	conn := s.conn
	s.intended = intended
	s.mu.Unlock()
	if conn == nil || !ok {
		return fmt.Errorf("container %s: agent not connected", s.id)
	}
	if err := conn.Write(protocol.Message{Go: &protocol.Stamp{At: theirs}}); err != nil {
		return fmt.Errorf("release %s: %w", s.id, err)
	}
	return s.await(ctx, s.acked)
}

// Signal sends sig to the command; with a positive grace the remaining processes are killed after it. It does
// nothing to a session that has ended or whose agent has not connected.
func (s *Session) Signal(sig syscall.Signal, grace time.Duration) error {
	s.mu.Lock()
	conn := s.conn
	s.mu.Unlock()
	if conn == nil {
		return nil
	}
	err := conn.Write(protocol.Message{Signal: &protocol.Signal{Number: int(sig), GraceNanos: int64(grace)}})
	select {
	case <-s.done:
		return nil
	default:
		return err
	}
}

// Abandon ends the session because its agent is gone or no longer needed. Messages received before are
// delivered. It does nothing to an ended session.
func (s *Session) Abandon(cause error) {
	s.mu.Lock()
	if s.lost == nil {
		s.lost = cause
	}
	conn := s.conn
	s.mu.Unlock()
	if conn != nil {
		_ = conn.Close() // serve ends the session
		return
	}
	s.finish(s.lostEnd())
}

// Connected reports whether the agent has connected.
func (s *Session) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil
}

// Arrived returns a channel that is closed at the agent's hello.
func (s *Session) Arrived() <-chan struct{} { return s.arrived }

// Done returns a channel that is closed when the session has ended and all of its outputs are delivered.
func (s *Session) Done() <-chan struct{} { return s.done }

// End returns how the session ended; valid once Done is closed.
func (s *Session) End() End {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// finish stores the end and closes Done, once.
func (s *Session) finish(end End) {
	s.server.forget(s)
	s.server.leaveGroup(s, end.OK())
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
	default:
		s.end = end
		close(s.done)
	}
}

// lostEnd returns the end of a session whose agent did not report.
func (s *Session) lostEnd() End {
	s.out.flush()
	s.errs.flush()
	s.mu.Lock()
	cause := s.lost
	if cause == nil {
		cause = errors.New("agent disconnected without a report")
	}
	begun := s.startAt.at.Known()
	s.mu.Unlock()
	end := End{At: s.server.clock.Now(), Started: begun}
	end.ContainerEnd = op.ContainerEnd{Name: s.id.Container, ExitCode: -1, Message: s.tail.appendTo(cause.Error())}
	end.Failure = &engine.Error{Code: CodeLost, Message: fmt.Sprintf("container %s: %v", s.id, cause), Err: cause}
	return end
}
