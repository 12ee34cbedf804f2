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

// serve reads messages until the agent's exit report or the end of the connection.
func (s *Session) serve(ctx context.Context, conn *protocol.Conn) {
	s.mu.Lock()
	s.conn = conn
	lost := s.lost
	s.mu.Unlock()
	closeOnce(s.arrived)
	if lost != nil {
		s.finish(s.lostEnd())
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var keeper sync.WaitGroup
	defer keeper.Wait()
	defer cancel()
	keeper.Go(func() {
		// An error ends the connection, which the read loop detects.
		_ = s.clocks.Run(ctx, exchangeEvery, s.exchange)
	})
	keeper.Go(func() { s.sendFiles(conn) })
	deliver := make(chan protocol.Message, deliverBuffer)
	ended := make(chan End, 1)
	go func() { ended <- s.deliver(deliver) }()
	for {
		m, err := conn.Read()
		if err != nil {
			s.recordReadError(err)
			_ = conn.Close() // ends blocked writers
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
	_ = conn.Write(protocol.Message{Bye: &protocol.Bye{}}) // best effort: the agent may be gone
	s.finish(end)
}

// recordReadError stores the cause of a connection that timed out.
func (s *Session) recordReadError(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lost == nil && errors.Is(err, transport.ErrSilent) {
		s.lost = fmt.Errorf("agent lost (is its node down?): %w", err)
	}
}

// greet exchanges timestamps with an agent that has sent its hello, and welcomes it.
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
			return errors.New("unexpected answer to a clock exchange")
		}
		s.clocks.Add(exchangeOf(m))
	}
	s.setArrival(hello)
	gifts, err := s.fileSpecs()
	if err != nil {
		return err
	}
	return conn.Write(protocol.Message{Welcome: s.welcome(gifts, hello.Machine)})
}

// setArrival stores the connection details of a hello.
func (s *Session) setArrival(hello *protocol.Hello) {
	began := s.convert(hello.Began)
	a := Arrival{
		Began: began.at, Err: began.err, Version: hello.Version,
		Attempts: hello.Attempts, Dialing: time.Duration(hello.DialNanos),
	}
	s.mu.Lock()
	s.arrival = a
	if of := s.server; of.identity != nil && hello.BeganWall != 0 && (hello.Machine == "" || hello.Machine != of.machine) {
		ahead := hello.BeganWall - of.clock.Start().UnixNano() - int64(began.at)
		s.wall = &op.WallClock{AheadNanos: ahead, ErrNanos: began.err}
	}
	s.mu.Unlock()
	if a.Attempts > 1 {
		s.server.sink.Log(s.id.String(), fmt.Sprintf("agent: reached the runner at attempt %d, after %v", a.Attempts,
			a.Dialing.Round(time.Millisecond)))
	}
}

// exchangeOf returns the four timestamps of a pong.
func exchangeOf(m protocol.Message) clocksync.Exchange {
	return clocksync.Exchange{
		Sent: op.Time(m.Pong.Ping), Received: m.Pong.Received,
		Replied: m.Pong.Sent, Got: op.Time(m.Received),
	}
}

// answerWithin bounds the wait for one pong, so that pings continue while pongs queue behind large outputs.
const answerWithin = 5 * time.Second

// exchange performs one clock exchange. It ignores pongs to earlier pings.
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
				return exchangeOf(m), nil
			}
		case <-late.C:
			return clocksync.Exchange{}, clocksync.ErrUnanswered
		case <-ctx.Done():
			return clocksync.Exchange{}, ctx.Err()
		}
	}
}

// deliver handles messages in order and returns how the session ended.
func (s *Session) deliver(messages <-chan protocol.Message) End {
	for m := range messages {
		switch {
		case m.VolumeProbe != nil:
			s.addProbe(m.VolumeProbe)
		case m.Ready != nil:
			s.setReady(m.Ready.At)
		case m.GoAck != nil:
			select {
			case s.acked <- struct{}{}:
			default:
			}
		case m.Started != nil:
			s.commandStarted(m.Started)
		case m.RendezvousRequest != nil:
			s.server.arriveAt(s, m.RendezvousRequest)
		case m.File != nil:
			s.output(m.File, m.Body)
		case m.Cut != nil:
			s.sink.Cut(s.id.Instance, s.id.Container, m.Cut.Name, m.Cut.Discarded, m.Cut.Final)
		case m.Sample != nil:
			if m.Sample.Level != op.SampleNone {
				s.sink.Sample(s.server.instanceSample(s.id, s.sample(m.Sample)))
			}
			s.machineSample(m.Sample)
		case m.Canary != nil:
			s.canary(m.Canary)
		case m.Log != nil:
			s.tail.add("agent: " + m.Log.Line)
			s.sink.Log(s.id.String(), "agent: "+m.Log.Line)
		case m.Exit != nil:
			return s.commandEnded(m.Exit)
		}
	}
	return s.lostEnd()
}

// addProbe stores a probe result and drops results beyond the requested number.
func (s *Session) addProbe(m *protocol.VolumeProbe) {
	at := s.convert(m.At)
	t := VolumeProbe{
		Volume: m.Volume, Write: m.Write, Began: at.at - op.Time(m.At-m.Began), At: at.at, Err: at.err,
		Failure: m.Message, Errno: syscall.Errno(m.Errno),
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.reprobes != nil {
		select {
		case s.reprobes <- t:
		default: // more than requested
		}
		return
	}
	if len(s.probes) < 2*len(s.opts.Probes) {
		s.probes = append(s.probes, t)
	}
}

func (s *Session) setReady(theirs int64) {
	s.mu.Lock()
	s.readyAt = s.convert(theirs)
	s.mu.Unlock()
	closeOnce(s.ready)
}

// closeOnce closes c unless it is closed. Only the delivering goroutine calls it.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// convert converts an instant of the agent's clock to the runner's. At least one clock exchange precedes the
// welcome.
func (s *Session) convert(theirs int64) stamp {
	at, err := s.clocks.ToRunner(theirs)
	return stamp{at, err}
}

func (s *Session) commandStarted(m *protocol.Stamp) {
	s.mu.Lock()
	s.startAt = s.convert(m.At)
	s.startAt.err += max(0, m.Within)
	start := op.InstanceStart{
		Instance: s.id.Instance, Container: s.id.Container,
		Intended: s.intended, At: s.startAt.at, Err: s.startAt.err, Phase: s.opts.Phase.Number,
		Machine: s.machine, Wall: s.wall,
	}
	s.mu.Unlock()
	s.sink.Started(start)
	closeOnce(s.started)
}

// output delivers bytes of a file, and those of stdout and stderr also as lines. It notifies the agent once
// when the sink truncates the file.
func (s *Session) output(f *protocol.File, data []byte) {
	kept := s.sink.Output(s.id.Instance, s.id.Container, f.Name, data)
	switch f.Name {
	case protocol.Stdout:
		s.out.write(data[:kept])
	case protocol.Stderr:
		s.errs.write(data[:kept])
	}
	if kept < len(data) && !s.enoughSent[f.Name] {
		s.enoughSent[f.Name] = true
		_ = s.conn.Write(protocol.Message{Enough: &protocol.Enough{Name: f.Name}}) // best effort: the agent may be gone
	}
}

func (s *Session) sample(m *protocol.Sample) op.Sample {
	return op.Sample{
		At: s.convert(m.At).at, ReadBytes: m.ReadBytes, WriteBytes: m.WriteBytes, ReadOps: m.ReadOps,
		WriteOps: m.WriteOps, CPUNanos: m.CPUNanos, RSSBytes: m.RSSBytes,
		Level: m.Level, SamplerNanos: m.SamplerNanos, Detail: m.Detail, Uncounted: m.Uncounted,
	}
}

// machineSample delivers the counters of the agent's machine, if the sample has any.
func (s *Session) machineSample(m *protocol.Sample) {
	if m.Machine != nil {
		at := s.convert(m.At)
		reading := op.Machine{ID: s.machine, Instance: s.id.Instance, At: at.at, MachineCounters: *m.Machine}
		if m.WallNanos != 0 && at.err <= maxWallErr {
			ahead := s.server.clock.WallAhead(m.WallNanos, at.at)
			reading.WallAheadNanos = &ahead
		}
		s.sink.Machine(reading)
	}
}

// maxWallErr is the greatest error, in ns, of an instant at which a reading of a wall clock is used: less than half of
// what counts as a step of it.
const maxWallErr = 40_000_000

// canary converts I/Os with one clock offset each, so that durations stay exact.
func (s *Session) canary(m *protocol.Canary) {
	ios := s.canaryIOs(m.IOs)
	if m.Dropped > 0 {
		s.sink.Log(s.id.String(), fmt.Sprintf("agent: canary on %s: %d I/Os not issued so far: too many were pending",
			m.Volume, m.Dropped))
	}
	if len(ios) > 0 {
		s.sink.Canary(s.id.Instance, m.Volume, ios)
	}
	if live, ok := s.sink.(engine.LiveSink); ok && m.OpenAt != 0 {
		live.CanaryOpen(s.id.Instance, m.Volume, s.canaryIOs(m.Open), s.convert(m.OpenAt).at)
	}
}

func (s *Session) canaryIOs(list []protocol.CanaryIO) []op.CanaryIO {
	ios := make([]op.CanaryIO, 0, len(list))
	for _, io := range list {
		shift := s.convert(io.Intended).at - op.Time(io.Intended)
		on := func(t int64) op.Time {
			if t == protocol.Never {
				return op.Never
			}
			return op.Time(t) + shift
		}
		ios = append(ios, op.CanaryIO{Intended: on(io.Intended), Started: on(io.Started), Ended: on(io.Ended),
			Write: io.Write, Errno: int32(io.Errno)})
	}
	return ios
}

// commandEnded converts the agent's exit report.
func (s *Session) commandEnded(e *protocol.Exit) End {
	at := s.convert(e.At)
	end := End{At: at.at, Err: at.err, Started: e.Started, Asked: e.Ours}
	end.ContainerEnd = op.ContainerEnd{Name: s.id.Container, ExitCode: e.ExitCode, OOM: e.OOM, Message: e.Message,
		PhaseOver: e.PhaseOver, Syncs: e.Syncs}
	if e.Signal != 0 {
		end.Signal = unix.SignalName(unix.Signal(e.Signal))
	}
	if e.Code != "" {
		end.Failure = &engine.Error{Code: e.Code, Message: fmt.Sprintf("container %s: %s", s.id, e.Message)}
	}
	s.out.flush()
	s.errs.flush()
	if !end.OK() && end.Failure == nil {
		end.Message = s.tail.appendTo(end.Message)
	}
	return end
}
