package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/engine/agent/join"
	"github.com/cnsbench/cnsbench/internal/engine/agent/wire"
	"github.com/cnsbench/cnsbench/internal/op"
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

// CodeLost is the code of a session whose agent went away without a report.
const CodeLost = "AgentLost"

// Session is one agent: a container, from before it exists until its last
// byte has arrived. Its methods are safe for concurrent use.
type Session struct {
	server *Server
	id     ID
	opts   Options
	token  string
	join   join.Join

	ready   chan struct{} // at the barrier, or about to start
	started chan struct{}
	acked   chan struct{}
	done    chan struct{}

	pongs chan wire.Message
	out   *lines
	errs  *lines
	tail  tail

	mu       sync.Mutex
	conn     *wire.Conn
	readyAt  stamp
	startAt  stamp
	intended op.Time
	end      End
	lost     error // why Abandon was called
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

// OK says whether the command ran and ended with exit code 0.
func (e End) OK() bool { return e.Started && e.Failure == nil && e.ExitCode == 0 && e.Signal == "" }

func newSession(s *Server, id ID, o Options, token string) *Session {
	sess := &Session{
		server: s, id: id, opts: o, token: token,
		ready: make(chan struct{}), started: make(chan struct{}), acked: make(chan struct{}, 1), done: make(chan struct{}),
		pongs: make(chan wire.Message, 1), intended: op.Never,
		readyAt: stamp{at: op.Never}, startAt: stamp{at: op.Never},
	}
	say := func(line string) {
		sess.tail.add(line)
		s.sink.Log(id.String(), line)
	}
	sess.out, sess.errs = &lines{emit: say}, &lines{emit: say}
	return sess
}

// ID names the container.
func (s *Session) ID() ID { return s.id }

// Token is what the agent shows at the socket.
func (s *Session) Token() string { return s.token }

// Env is the environment that `cnsbench-agent wrap` needs.
func (s *Session) Env() []string {
	env := []string{wire.EnvRunner + "=unix:" + s.server.socket, wire.EnvToken + "=" + s.token}
	if s.opts.Offset != 0 {
		env = append(env, wire.EnvClockOffset+"="+s.opts.Offset.String())
	}
	return env
}

func (s *Session) welcome() *wire.Welcome {
	w := &wire.Welcome{
		Proto: wire.Proto, Version: wire.Version, Barrier: s.opts.Barrier,
		Outputs: s.opts.Outputs, GraceNanos: int64(s.opts.Grace), Canary: s.opts.Canary,
	}
	switch {
	case s.opts.Sample == 0:
		w.SampleNanos = int64(time.Second)
	case s.opts.Sample > 0:
		w.SampleNanos = int64(s.opts.Sample)
	}
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

// Release has the command start at an instant of the run and returns when the
// agent has acknowledged it; one in the past is as soon as possible.
func (s *Session) Release(ctx context.Context, at op.Time) error {
	if err := s.await(ctx, s.ready); err != nil {
		return err
	}
	theirs, _, ok := s.join.Agent(at)
	s.mu.Lock()
	conn := s.conn
	s.intended = at
	s.mu.Unlock()
	if conn == nil || !ok {
		return fmt.Errorf("container %s: its agent is not connected", s.id)
	}
	if err := conn.Write(wire.Message{Go: &wire.Stamp{At: theirs}}); err != nil {
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
	err := conn.Write(wire.Message{Signal: &wire.Signal{Number: int(sig), GraceNanos: int64(grace)}})
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

// Done is closed when the session has ended and all of its outputs are delivered.
func (s *Session) Done() <-chan struct{} { return s.done }

// End is how it ended; valid once Done is closed.
func (s *Session) End() End {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.end
}

// serve reads until the agent has said its last word.
func (s *Session) serve(ctx context.Context, conn *wire.Conn) {
	s.mu.Lock()
	s.conn = conn
	lost := s.lost
	s.mu.Unlock()
	if lost != nil {
		s.finish(s.vanished())
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var keeper sync.WaitGroup
	defer keeper.Wait()
	defer cancel()
	keeper.Go(func() {
		// It ends with the connection, whose end is noticed below.
		_ = s.join.Keep(ctx, exchangeEvery, s.exchange)
	})
	deliver := make(chan wire.Message, inbox)
	ended := make(chan End, 1)
	go func() { ended <- s.deliver(deliver) }()
	for {
		m, err := conn.Read()
		if err != nil {
			break
		}
		if m.Pong != nil {
			select {
			case s.pongs <- m:
			default:
			}
			continue
		}
		deliver <- m
		if m.Exit != nil {
			break
		}
	}
	close(deliver)
	end := <-ended
	_ = conn.Write(wire.Message{Bye: &wire.Bye{}}) // it may be gone already
	s.finish(end)
}

// greet exchanges stamps with an agent that has said hello, and welcomes it.
func (s *Session) greet(conn *wire.Conn) error {
	for range exchangeBurst {
		if err := conn.Write(wire.Message{Ping: &wire.Ping{}}); err != nil {
			return err
		}
		m, err := conn.Read()
		if err != nil {
			return err
		}
		if m.Pong == nil {
			return errors.New("it answered a clock exchange with something else")
		}
		s.join.Add(exchanged(m))
	}
	return conn.Write(wire.Message{Welcome: s.welcome()})
}

// exchanged reads the four stamps of an answer.
func exchanged(m wire.Message) join.Exchange {
	return join.Exchange{
		Sent: op.Time(m.Pong.Ping), Received: m.Pong.Received,
		Replied: m.Pong.Sent, Got: op.Time(m.Received),
	}
}

// exchange is one round trip while the session is served. Answers to no
// question of ours are passed over.
func (s *Session) exchange(ctx context.Context) (join.Exchange, error) {
	ping := &wire.Ping{}
	if err := s.conn.Write(wire.Message{Ping: ping}); err != nil {
		return join.Exchange{}, err
	}
	for {
		select {
		case m := <-s.pongs:
			if m.Pong.Ping == ping.Sent {
				return exchanged(m), nil
			}
		case <-ctx.Done():
			return join.Exchange{}, ctx.Err()
		}
	}
}

// deliver passes messages on in order and returns how the session ended.
func (s *Session) deliver(messages <-chan wire.Message) End {
	for m := range messages {
		switch {
		case m.Ready != nil:
			s.readiness(m.Ready.At)
		case m.GoAck != nil:
			select {
			case s.acked <- struct{}{}:
			default:
			}
		case m.Started != nil:
			s.begun(m.Started.At)
		case m.File != nil:
			s.output(m.File, m.Body)
		case m.Sample != nil:
			s.server.sink.Sample(s.server.sum(s.id, s.sample(m.Sample)))
		case m.Canary != nil:
			s.canary(m.Canary)
		case m.Log != nil:
			s.tail.add("agent: " + m.Log.Line)
			s.server.sink.Log(s.id.String(), "agent: "+m.Log.Line)
		case m.Exit != nil:
			return s.exited(m.Exit)
		}
	}
	return s.vanished()
}

func (s *Session) readiness(theirs int64) {
	s.mu.Lock()
	s.readyAt = s.convert(theirs)
	s.mu.Unlock()
	open(s.ready)
}

// open closes c, if a confused agent has not made us do it before. Only the
// delivering goroutine calls it.
func open(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// convert places an instant of the agent's clock on the runner's. There has
// been an exchange before the agent was welcomed.
func (s *Session) convert(theirs int64) stamp {
	at, err := s.join.Runner(theirs)
	return stamp{at, err}
}

func (s *Session) begun(theirs int64) {
	s.mu.Lock()
	s.startAt = s.convert(theirs)
	start := op.InstanceStart{
		Instance: s.id.Instance, Container: s.id.Container,
		Intended: s.intended, At: s.startAt.at, Err: s.startAt.err,
	}
	s.mu.Unlock()
	s.server.sink.Started(start)
	open(s.started)
}

// output delivers bytes of a file, and the command's own also as lines.
func (s *Session) output(f *wire.File, data []byte) {
	switch f.Name {
	case wire.Stdout:
		s.out.write(data)
	case wire.Stderr:
		s.errs.write(data)
	}
	s.server.sink.Output(s.id.Instance, s.id.Container, f.Name, data)
}

func (s *Session) sample(m *wire.Sample) op.Sample {
	return op.Sample{
		At: s.convert(m.At).at, ReadBytes: m.ReadBytes, WriteBytes: m.WriteBytes, ReadOps: m.ReadOps,
		WriteOps: m.WriteOps, CPUNanos: m.CPUNanos, RSSBytes: m.RSSBytes,
	}
}

// canary converts I/Os, each with one offset, so that its durations stay exact.
func (s *Session) canary(m *wire.Canary) {
	ios := make([]op.CanaryIO, 0, len(m.IOs))
	for _, io := range m.IOs {
		shift := s.convert(io.Intended).at - op.Time(io.Intended)
		on := func(t int64) op.Time {
			if t == wire.Never {
				return op.Never
			}
			return op.Time(t) + shift
		}
		ios = append(ios, op.CanaryIO{Intended: on(io.Intended), Started: on(io.Started), Ended: on(io.Ended), Write: io.Write, Errno: io.Errno})
	}
	if m.Dropped > 0 {
		s.server.sink.Log(s.id.String(), fmt.Sprintf("agent: canary on %s: %d I/Os so far were never issued: too many were waiting", m.Volume, m.Dropped))
	}
	s.server.sink.Canary(s.id.Instance, m.Volume, ios)
}

// exited reads the agent's report.
func (s *Session) exited(e *wire.Exit) End {
	at := s.convert(e.At)
	end := End{At: at.at, Err: at.err, Started: e.Started, Asked: e.Ours}
	end.ContainerEnd = op.ContainerEnd{Name: s.id.Container, ExitCode: e.ExitCode, OOM: e.OOM, Message: e.Message}
	if e.Signal != 0 {
		end.Signal = unix.SignalName(unix.Signal(e.Signal))
	}
	if e.Code != "" {
		end.Failure = &engine.Error{Code: e.Code, Message: fmt.Sprintf("container %s: %s", s.id, e.Message)}
	}
	s.out.flush()
	s.errs.flush()
	if !end.OK() && end.Failure == nil {
		end.Message = s.tail.under(end.Message)
	}
	return end
}

// vanished is the end of a session whose agent did not report.
func (s *Session) vanished() End {
	s.out.flush()
	s.errs.flush()
	s.mu.Lock()
	cause := s.lost
	if cause == nil {
		cause = errors.New("its agent went away without a report")
	}
	begun := s.startAt.at.Known()
	s.mu.Unlock()
	end := End{At: s.server.clock.Now(), Started: begun}
	end.ContainerEnd = op.ContainerEnd{Name: s.id.Container, ExitCode: -1, Message: s.tail.under(cause.Error())}
	end.Failure = &engine.Error{Code: CodeLost, Message: fmt.Sprintf("container %s: %v", s.id, cause), Err: cause}
	return end
}

// finish closes Done, once.
func (s *Session) finish(end End) {
	s.server.forget(s)
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.done:
	default:
		s.end = end
		close(s.done)
	}
}

// lines cuts a stream into lines for people.
type lines struct {
	emit func(string)
	part []byte
}

// maxLine bounds what is held of a line without an end.
const maxLine = 8 << 10

func (l *lines) write(data []byte) {
	for len(data) > 0 {
		line, rest, found := cut(data)
		l.part = append(l.part, line[:min(len(line), maxLine-min(len(l.part), maxLine))]...)
		if found {
			l.flush()
		}
		data = rest
	}
}

// cut splits at the first line end; a carriage return is one too (progress bars).
func cut(data []byte) (line, rest []byte, found bool) {
	for i, c := range data {
		if c == '\n' || c == '\r' {
			return data[:i], data[i+1:], true
		}
	}
	return data, nil, false
}

func (l *lines) flush() {
	if line := strings.TrimRight(string(l.part), " \t"); line != "" {
		l.emit(strings.ToValidUTF8(line, "�"))
	}
	l.part = l.part[:0]
}

// tail keeps the last lines of a log.
type tail struct {
	mu   sync.Mutex
	last []string
}

const tailLines = 10

func (t *tail) add(line string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.last) == tailLines {
		t.last = t.last[1:]
	}
	t.last = append(t.last, line)
}

// under is a message with the log's last lines beneath it.
func (t *tail) under(message string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := t.last
	if message != "" {
		all = append([]string{message}, all...)
	}
	return strings.Join(all, "\n")
}
