package agent

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/clocksync"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/engine"
	"github.com/cnsbench/cnsbench/internal/op"
)

// serve reads until the agent has said its last word.
func (s *Session) serve(ctx context.Context, conn *protocol.Conn) {
	s.mu.Lock()
	s.conn = conn
	lost := s.lost
	s.mu.Unlock()
	open(s.came)
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
	keeper.Go(func() { s.give(conn) })
	deliver := make(chan protocol.Message, inbox)
	ended := make(chan End, 1)
	go func() { ended <- s.deliver(deliver) }()
	for {
		m, err := conn.Read()
		if err != nil {
			s.unheard(err)
			_ = conn.Close() // whoever writes is let go
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
	_ = conn.Write(protocol.Message{Bye: &protocol.Bye{}}) // it may be gone already
	s.finish(end)
}

// unheard keeps why nothing more is heard of the agent, if it says anything.
func (s *Session) unheard(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil && errors.Is(err, transport.ErrSilent) {
		s.lost = fmt.Errorf("its agent went away (is its node lost?): %w", err)
	}
}

// greet exchanges stamps with an agent that has said hello, and welcomes it.
func (s *Session) greet(conn *protocol.Conn, hello *protocol.Hello) error {
	for range exchangeBurst {
		if err := conn.Write(protocol.Message{Ping: &protocol.Ping{}}); err != nil {
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
	s.arrived(hello)
	gifts, err := s.gifts()
	if err != nil {
		return err
	}
	return conn.Write(protocol.Message{Welcome: s.welcome(gifts, hello.Machine)})
}

// arrived keeps what a hello says of the way here.
func (s *Session) arrived(hello *protocol.Hello) {
	began := s.convert(hello.Began)
	a := Arrival{
		Began: began.at, Err: began.err, Version: hello.Version,
		Attempts: hello.Attempts, Dialing: time.Duration(hello.DialNanos),
	}
	s.mu.Lock()
	s.arrival = a
	s.mu.Unlock()
	if a.Attempts > 1 {
		s.server.sink.Log(s.id.String(), fmt.Sprintf("agent: it reached the runner at attempt %d, after %v", a.Attempts, a.Dialing.Round(time.Millisecond)))
	}
}

// exchanged reads the four stamps of an answer.
func exchanged(m protocol.Message) clocksync.Exchange {
	return clocksync.Exchange{
		Sent: op.Time(m.Pong.Ping), Received: m.Pong.Received,
		Replied: m.Pong.Sent, Got: op.Time(m.Received),
	}
}

// answerWithin bounds the wait for one answer, so that an agent whose answers
// are stuck behind its outputs still hears from us often enough.
const answerWithin = 5 * time.Second

// exchange is one round trip while the session is served. Answers to no
// question of ours, or to an old one, are passed over.
func (s *Session) exchange(ctx context.Context) (clocksync.Exchange, error) {
	ping := &protocol.Ping{}
	if err := s.conn.Write(protocol.Message{Ping: ping}); err != nil {
		return clocksync.Exchange{}, err
	}
	late := time.NewTimer(answerWithin)
	defer late.Stop()
	for {
		select {
		case m := <-s.pongs:
			if m.Pong.Ping == ping.Sent {
				return exchanged(m), nil
			}
		case <-late.C:
			return clocksync.Exchange{}, clocksync.ErrUnanswered
		case <-ctx.Done():
			return clocksync.Exchange{}, ctx.Err()
		}
	}
}

// deliver passes messages on in order and returns how the session ended.
func (s *Session) deliver(messages <-chan protocol.Message) End {
	for m := range messages {
		switch {
		case m.Touched != nil:
			s.touched(m.Touched)
		case m.Ready != nil:
			s.readiness(m.Ready.At)
		case m.GoAck != nil:
			select {
			case s.acked <- struct{}{}:
			default:
			}
		case m.Started != nil:
			s.begun(m.Started)
		case m.Meet != nil:
			s.server.meet(s, m.Meet)
		case m.File != nil:
			s.output(m.File, m.Body)
		case m.Cut != nil:
			s.sink.Cut(s.id.Instance, s.id.Container, m.Cut.Name, m.Cut.Discarded, m.Cut.Final)
		case m.Sample != nil:
			s.sink.Sample(s.server.sum(s.id, s.sample(m.Sample)))
			s.machineSample(m.Sample)
		case m.Canary != nil:
			s.canary(m.Canary)
		case m.Log != nil:
			s.tail.add("agent: " + m.Log.Line)
			s.sink.Log(s.id.String(), "agent: "+m.Log.Line)
		case m.Exit != nil:
			return s.exited(m.Exit)
		}
	}
	return s.vanished()
}

// touched keeps a first I/O; more than were asked for are a confused agent's.
func (s *Session) touched(m *protocol.Touched) {
	at := s.convert(m.At)
	t := Touch{
		Volume: m.Volume, Write: m.Write, Began: at.at - op.Time(m.At-m.Began), At: at.at, Err: at.err,
		Failure: m.Message, Errno: syscall.Errno(m.Errno),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.again != nil {
		select {
		case s.again <- t:
		default: // nobody asked for that many
		}
		return
	}
	if len(s.touches) < 2*len(s.opts.Touch) {
		s.touches = append(s.touches, t)
	}
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

func (s *Session) begun(m *protocol.Stamp) {
	s.mu.Lock()
	s.startAt = s.convert(m.At)
	s.startAt.err += max(0, m.Within)
	start := op.InstanceStart{
		Instance: s.id.Instance, Container: s.id.Container,
		Intended: s.intended, At: s.startAt.at, Err: s.startAt.err, Phase: s.opts.Phase.Number,
		Machine: s.machine,
	}
	s.mu.Unlock()
	s.sink.Started(start)
	open(s.started)
}

// output delivers bytes of a file, and the command's own also as lines. It tells
// the agent when no more of the file is wanted.
func (s *Session) output(f *protocol.File, data []byte) {
	kept := s.sink.Output(s.id.Instance, s.id.Container, f.Name, data)
	switch f.Name {
	case protocol.Stdout:
		s.out.write(data[:kept])
	case protocol.Stderr:
		s.errs.write(data[:kept])
	}
	if kept < len(data) && !s.told[f.Name] {
		s.told[f.Name] = true
		_ = s.conn.Write(protocol.Message{Enough: &protocol.Enough{Name: f.Name}}) // it may be gone already
	}
}

func (s *Session) sample(m *protocol.Sample) op.Sample {
	return op.Sample{
		At: s.convert(m.At).at, ReadBytes: m.ReadBytes, WriteBytes: m.WriteBytes, ReadOps: m.ReadOps,
		WriteOps: m.WriteOps, CPUNanos: m.CPUNanos, RSSBytes: m.RSSBytes,
	}
}

// machineSample passes on what an agent read of its machine.
func (s *Session) machineSample(m *protocol.Sample) {
	if m.Machine != nil {
		s.sink.Machine(op.Machine{ID: s.machine, Instance: s.id.Instance, At: s.convert(m.At).at, MachineCounters: *m.Machine})
	}
}

// canary converts I/Os, each with one offset, so that its durations stay exact.
func (s *Session) canary(m *protocol.Canary) {
	ios := make([]op.CanaryIO, 0, len(m.IOs))
	for _, io := range m.IOs {
		shift := s.convert(io.Intended).at - op.Time(io.Intended)
		on := func(t int64) op.Time {
			if t == protocol.Never {
				return op.Never
			}
			return op.Time(t) + shift
		}
		ios = append(ios, op.CanaryIO{Intended: on(io.Intended), Started: on(io.Started), Ended: on(io.Ended), Write: io.Write, Errno: io.Errno})
	}
	if m.Dropped > 0 {
		s.sink.Log(s.id.String(), fmt.Sprintf("agent: canary on %s: %d I/Os so far were never issued: too many were waiting", m.Volume, m.Dropped))
	}
	s.sink.Canary(s.id.Instance, m.Volume, ios)
}

// exited reads the agent's report.
func (s *Session) exited(e *protocol.Exit) End {
	at := s.convert(e.At)
	end := End{At: at.at, Err: at.err, Started: e.Started, Asked: e.Ours}
	end.ContainerEnd = op.ContainerEnd{Name: s.id.Container, ExitCode: e.ExitCode, OOM: e.OOM, Message: e.Message, PhaseOver: e.PhaseOver}
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
