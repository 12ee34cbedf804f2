package agent

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
	"github.com/cnsbench/cnsbench/internal/quota"
)

// The clock exchange: some before the welcome, so that there is no stamp that
// cannot be placed, then one per second.
const (
	exchangeBurst = 8
	exchangeEvery = time.Second
)

// inbox is how many messages may wait for the sink; beyond it the agent's
// streamer waits, never its command.
const inbox = 16

// CodeLost is the code of a session whose agent went away without a report,
// or from which nothing was heard for link.Silence.
const CodeLost = "AgentLost"

// Session is one agent: a container, from before it exists until its last
// byte has arrived. Its methods are safe for concurrent use.
type Session struct {
	server *Server
	sink   engine.Sink
	id     ID
	opts   Options
	token  string
	join   clocksync.Join

	machine string        // the ID of the agent's, with the server's mu
	came    chan struct{} // it has said hello
	ready   chan struct{} // at the barrier, or about to start
	started chan struct{}
	acked   chan struct{}
	done    chan struct{}

	pongs chan protocol.Message
	out   *lines
	errs  *lines
	tail  tail
	told  map[string]bool // files of which the agent was told that no more is wanted

	mu       sync.Mutex
	conn     *protocol.Conn
	readyAt  stamp
	startAt  stamp
	intended op.Time
	end      End
	lost     error // why Abandon was called, or why reading ended
	touches  []Touch
	again    chan<- Touch // those of Touch; nil before
	arrival  Arrival

	// Of the server, guarded by its mutex: where it meets others.
	group  string
	member int
}

// Touch is the first I/O on one volume, as Options.Touch asked for it.
type Touch struct {
	Volume string
	Write  bool
	Began  op.Time
	At     op.Time // done, or failed
	Err    int64   // ± of Began and At
	// Failure says why it failed, Errno too where the kernel said it (a
	// read-only file system: EROFS); empty: it did not.
	Failure string
	Errno   syscall.Errno
}

// Arrival is how an agent came.
type Arrival struct {
	Began    op.Time       // when its process was started
	Err      int64         // ± of Began
	Version  string        // of the agent
	Attempts int           // how often it dialed
	Dialing  time.Duration // how long that took in all
}

// stamp is an instant of the run with its ± error.
type stamp struct {
	at  op.Time
	err int64
}

// End is how a session ended.
type End struct {
	op.ContainerEnd
	At      op.Time // when the command ended, or when the agent was lost
	Err     int64   // ± of At
	Started bool    // whether the command ever ran
	Asked   bool    // whether it ended because the runner wanted it to
	// Failure says why there was no command or what became of the agent; nil
	// when the command ran, however it ended.
	Failure *engine.Error
}

// OK says whether the command ran and ended with exit code 0, or its phase was
// over.
func (e End) OK() bool {
	return e.Failure == nil && (e.PhaseOver || e.Started && e.ExitCode == 0 && e.Signal == "")
}

func newSession(s *Server, id ID, o Options, token string) *Session {
	sink := o.Sink
	if sink == nil {
		sink = s.sink
	}
	sess := &Session{
		server: s, sink: sink, id: id, opts: o, token: token,
		came:  make(chan struct{}),
		ready: make(chan struct{}), started: make(chan struct{}), acked: make(chan struct{}, 1), done: make(chan struct{}),
		pongs: make(chan protocol.Message, 4), told: map[string]bool{}, intended: op.Never,
		readyAt: stamp{at: op.Never}, startAt: stamp{at: op.Never}, arrival: Arrival{Began: op.Never},
	}
	log := func(line string) { sink.Log(id.String(), line) }
	sess.out = &lines{name: protocol.Stdout, emit: sess.tail.add, room: quota.NewLines(quota.OneSource), log: log}
	sess.errs = &lines{name: protocol.Stderr, emit: sess.tail.add, room: quota.NewLines(quota.OneSource), log: log}
	return sess
}

// ID names the container.
func (s *Session) ID() ID { return s.id }

// Token is what the agent shows at the socket.
func (s *Session) Token() string { return s.token }

// Env is the environment that the agent needs.
func (s *Session) Env() []string {
	public, secret := s.SecretEnv()
	return append(public, secret...)
}

// SecretEnv is Env in two parts, of which nobody may read the second: it is
// the token.
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
		Proto: protocol.Proto, Version: protocol.Version, Barrier: s.opts.Barrier, Meets: s.opts.Meets,
		Outputs: s.opts.Outputs, MaxOutput: s.opts.MaxOutput, GraceNanos: int64(s.opts.Grace), SilenceNanos: int64(s.server.silence),
		Touch: s.opts.Touch, TouchLater: s.opts.TouchLater, Canary: s.opts.Canary, Files: gifts,
	}
	if p := s.opts.Phase; p.From > 0 || p.Until > 0 {
		w.Phase = &protocol.Phase{FromNanos: int64(p.From), UntilNanos: int64(p.Until), GraceNanos: int64(p.Grace)}
	}
	switch {
	case s.opts.Sample == 0:
		w.SampleNanos = int64(time.Second)
	case s.opts.Sample > 0:
		w.SampleNanos = int64(s.opts.Sample)
	}
	w.SampleMachine = s.server.reads(s, machine) && w.SampleNanos > 0
	return w
}

// Ready returns when the agent stands at its barrier, or is about to start
// its command where there is none. Its error says why that will not happen.
func (s *Session) Ready(ctx context.Context) (at op.Time, plusMinus int64, err error) {
	if err := s.await(ctx, s.ready); err != nil {
		return op.Never, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.readyAt.at, s.readyAt.err, nil
}

// Touches are the first I/Os that were asked for, in the order in which they
// ended; complete once Ready has returned without an error.
func (s *Session) Touches() []Touch {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.touches)
}

// Arrival is how the agent came; false before.
func (s *Session) Arrival() (Arrival, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.arrival, s.arrival.Began.Known()
}

// Started returns when the command runs, with the instant.
func (s *Session) Started(ctx context.Context) (at op.Time, plusMinus int64, err error) {
	if err := s.await(ctx, s.started); err != nil {
		return op.Never, 0, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startAt.at, s.startAt.err, nil
}

// await waits for c, which a session may never come to.
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
		case <-c: // both: what came first counts
			return nil
		default:
		}
		return s.failure()
	}
}

// failure is why an ended session did not get further.
func (s *Session) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.end.Failure != nil {
		return s.end.Failure
	}
	return &engine.Error{Code: "Ended", Message: fmt.Sprintf("container %s has ended: %s", s.id, s.end.Message)}
}

// Release has the command start at an instant of the run, or where it has a
// phase that long after it, and returns when the agent has acknowledged it; one
// in the past is as soon as possible.
func (s *Session) Release(ctx context.Context, at op.Time) error {
	return s.release(ctx, at, at+op.Time(s.opts.Phase.From))
}

// Rejoin releases a command that was started anew after the barrier had opened:
// at once, or where it has a phase when that comes; one whose phase is over has
// ended.
func (s *Session) Rejoin(ctx context.Context, barrier op.Time) error {
	now := s.server.clock.Now()
	if s.opts.Phase.From == 0 && s.opts.Phase.Until == 0 {
		return s.release(ctx, now, now)
	}
	return s.release(ctx, barrier, max(now, barrier+op.Time(s.opts.Phase.From)))
}

// release opens the barrier at an instant; the command is to start at intended.
func (s *Session) release(ctx context.Context, at, intended op.Time) error {
	if err := s.await(ctx, s.ready); err != nil {
		return err
	}
	theirs, _, ok := s.join.Agent(at)
	s.mu.Lock()
	conn := s.conn
	s.intended = intended
	s.mu.Unlock()
	if conn == nil || !ok {
		return fmt.Errorf("container %s: its agent is not connected", s.id)
	}
	if err := conn.Write(protocol.Message{Go: &protocol.Stamp{At: theirs}}); err != nil {
		return fmt.Errorf("release %s: %w", s.id, err)
	}
	return s.await(ctx, s.acked)
}

// Signal sends sig to the command; with a positive grace all that is left
// after it is killed. A session that has ended, or whose agent has not come,
// takes none: that is no error.
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

// Abandon ends the session because its agent is known to be gone, or is no
// longer wanted; what was received before is delivered. It does nothing to a
// session that has ended.
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
	s.finish(s.vanished())
}

// Connected says whether the agent has come.
func (s *Session) Connected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.conn != nil
}

// Came is closed when the agent has said hello.
func (s *Session) Came() <-chan struct{} { return s.came }

// Done is closed when the session has ended and all of its outputs are delivered.
func (s *Session) Done() <-chan struct{} { return s.done }

// End is how it ended; valid once Done is closed.
func (s *Session) End() End {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// finish closes Done, once.
func (s *Session) finish(end End) {
	s.server.forget(s)
	s.server.leave(s, end.OK())
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
	default:
		s.end = end
		close(s.done)
	}
}
