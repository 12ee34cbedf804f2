// Package wrap runs one command on behalf of the runner: it waits at the
// barrier, starts the command at its instant, forwards signals, reaps what it
// leaves, samples its I/O, runs the canary, streams its files and reports how
// it ended. One process runs one command, once.
package wrap

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/canary"
	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/machine"
)

// Command is what to run. It is part of what the runner hands to a jail.
type Command struct {
	Args []string `json:"args"` // Args[0] is looked up in the PATH of Env
	Env  []string `json:"env"`
	Dir  string   `json:"dir"` // working directory; empty: "/"
}

// intervals of the agent's own loops.
const (
	pollEvery    = 200 * time.Millisecond // files
	collectEvery = 500 * time.Millisecond // canary
	spin         = 300 * time.Microsecond // busy wait before the start
	defaultGrace = 5 * time.Second
)

// ErrRunnerLost is returned by Run when the connection broke; the command was
// ended.
var ErrRunnerLost = errors.New("the connection to the runner was lost")

// ErrUnanswered is returned by Handshake when the connection ended before the
// runner's answer. Where the runner has not read the hello another connection
// may serve.
var ErrUnanswered = errors.New("the runner did not answer")

// Handshake says hello and returns the runner's instructions; the caller fills
// in of hello what is its own. Its errors are for people: they say which side
// to replace.
func Handshake(conn *protocol.Conn, hello protocol.Hello) (*protocol.Welcome, error) {
	hello.Magic, hello.Proto, hello.Version = protocol.Magic, protocol.Proto, protocol.Version
	if err := conn.Write(protocol.Message{Hello: &hello}); err != nil {
		return nil, fmt.Errorf("%w: say hello: %w", ErrUnanswered, err)
	}
	for {
		m, err := conn.Read()
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
		case m.Ping != nil: // it joins our clock to its own before anything happens
			pong := &protocol.Pong{Ping: m.Ping.Sent, Received: m.Received}
			if err := conn.Write(protocol.Message{Pong: pong}); err != nil {
				return nil, fmt.Errorf("%w: answer its ping: %w", ErrUnanswered, err)
			}
		case m.Refuse != nil:
			return nil, fmt.Errorf("the runner refused this agent: %s", m.Refuse.Reason)
		case m.Welcome == nil:
			return nil, errors.New("the runner answered with something else than a welcome: is it a cnsbench runner?")
		case m.Welcome.Proto != protocol.Proto:
			return nil, fmt.Errorf("the runner (version %s) speaks protocol %d, this agent (version %s) protocol %d: use the agent built with that runner",
				m.Welcome.Version, m.Welcome.Proto, protocol.Version, protocol.Proto)
		default:
			return m.Welcome, nil
		}
	}
}

// Fail reports that the command could not be run and waits until the runner
// has heard it.
func Fail(conn *protocol.Conn, clock clock.Clock, code string, cause error) {
	if conn.Write(protocol.Message{Exit: &protocol.Exit{At: clock.Now(), ExitCode: 127, Code: code, Message: cause.Error()}}) != nil {
		return
	}
	for {
		if m, err := conn.Read(); err != nil || m.Bye != nil {
			return
		}
	}
}

// session is one Run.
type session struct {
	conn    *protocol.Conn
	welcome *protocol.Welcome
	clock   clock.Clock
	cmd     Command
	logs    *Logs

	start   chan int64           // the barrier opens at
	signals chan protocol.Signal // from the runner, or our own environment
	pings   chan *protocol.Pong
	lost    chan struct{} // the connection is gone
	why     error         // valid once lost is closed
	bye     chan struct{}

	over int64 // when its phase is; 0: never
	hung bool  // it begins stopped

	intake  *intake
	child   *child
	company *company // nil: it stands at its barrier by not being started
	tree    *tree
	stream  *streamer
	out     *output
}

func newSession(conn *protocol.Conn, welcome *protocol.Welcome, clock clock.Clock) *session {
	s := &session{
		conn: conn, welcome: welcome, clock: clock,
		start: make(chan int64, 1), signals: make(chan protocol.Signal, 16),
		pings: make(chan *protocol.Pong, 1), lost: make(chan struct{}), bye: make(chan struct{}),
		intake: newIntake(welcome.Files),
	}
	s.out = newOutput(welcome.MaxOutput, s.send)
	return s
}

// Run carries the command out and returns the exit code for the agent itself:
// the command's, or 128 plus its signal. ctx only ends waiting; the runner
// and the signals that the agent receives end the command.
func Run(ctx context.Context, conn *protocol.Conn, welcome *protocol.Welcome, clock clock.Clock, cmd Command, logs *Logs) (int, error) {
	s := newSession(conn, welcome, clock)
	s.cmd, s.logs = cmd, logs
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := s.ownSignals()
	defer stop()
	go s.read()
	go s.answer()

	if exit := s.receive(ctx); exit != nil {
		return exit.ExitCode, s.report(*exit)
	}
	program, err := LookPath(s.cmd)
	if err != nil {
		return 127, s.report(protocol.Exit{At: clock.Now(), ExitCode: 127, Code: protocol.CodeNoProgram, Message: err.Error()})
	}
	exit := s.run(ctx, program)
	if err := s.report(exit); err != nil {
		return 1, err
	}
	if exit.PhaseOver {
		return 0, nil // so that the pod has not failed
	}
	if exit.Signal != 0 {
		return 128 + exit.Signal, nil
	}
	return exit.ExitCode, nil
}

// run is the life of the command, from the barrier to its last byte.
func (s *session) run(ctx context.Context, program string) protocol.Exit {
	if !s.touch(ctx) {
		return s.calledOff(unix.SIGTERM)
	}
	var err error
	if s.tree, err = newTree("/proc", s.log); err != nil {
		s.log(err.Error())
	}
	s.stream = newStreamer(s.welcome.Outputs, s.file, s.log, s.out)
	defer s.stream.Close()
	s.logs.follow(s.stream, s.log)
	canaries := s.openCanaries()
	if s.company, err = newCompany(s.welcome); err != nil {
		return protocol.Exit{At: s.clock.Now(), ExitCode: 126, Code: protocol.CodeExec, Message: err.Error()}
	}
	defer s.company.close()
	inside := s.company != nil && s.welcome.Barrier != "" // it says itself what is said here
	if !inside {
		s.send(protocol.Message{Ready: &protocol.Stamp{At: s.clock.Now()}})
	}
	if err := s.logs.begin(s.log, s.file, s.out); err != nil {
		return protocol.Exit{At: s.clock.Now(), ExitCode: 126, Code: protocol.CodeExec, Message: err.Error()}
	}
	if s.welcome.Barrier != "" && !inside {
		if exit, ended := s.wait(ctx); ended {
			return exit
		}
	}
	oom := newOOMCounter()
	before := s.clock.Now()
	s.child, err = start(program, s.cmd, s.logs, s.tree, s.company)
	at := s.clock.Now()
	s.logs.started()
	s.company.started()
	if err != nil {
		return protocol.Exit{At: at, ExitCode: 126, Code: protocol.CodeExec, Message: err.Error()}
	}
	if !inside {
		s.send(protocol.Message{Started: &protocol.Stamp{At: at, Within: at - before}})
	}
	if s.hung {
		s.child.Signal(unix.SIGSTOP)
	}
	exit := s.beside(ctx, canaries)
	// A shell reports the kill of its own child by its exit code.
	exit.OOM = exit.ExitCode == 128+int(unix.SIGKILL) && !exit.Ours && oom.Struck()
	if exit.OOM {
		exit.Message = "killed by the kernel's out-of-memory killer (counted " + oom.where + ")"
	}
	s.afterPhase(&exit)
	s.logs.wait()
	_ = s.stream.Drain() // an error is the runner's loss, which read notices
	s.out.conclude()
	return exit
}

// beside runs all that runs while the command does, and returns its end.
func (s *session) beside(ctx context.Context, canaries []*canary.Canary) protocol.Exit {
	ctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.govern(ctx) })
	wg.Go(func() { s.sample(ctx) })
	wg.Go(func() { s.follow(ctx) })
	if s.company != nil {
		wg.Go(func() { s.accompany(ctx) })
	}
	for _, c := range canaries {
		wg.Go(func() { s.canary(ctx, c) })
	}
	exit := s.child.Wait(s.clock)
	end()
	wg.Wait()
	if s.tree != nil && s.welcome.SampleNanos > 0 {
		s.sampleNow()
	}
	return exit
}

// wait stands at the barrier; ended says that the command was called off.
func (s *session) wait(ctx context.Context) (protocol.Exit, bool) {
	defer clock.Exact()()
	for {
		select {
		case at := <-s.start:
			s.send(protocol.Message{GoAck: &protocol.Stamp{At: at}})
			if s.welcome.Phase != nil {
				return s.phase(ctx, at)
			}
			if err := s.clock.Wait(ctx, at, spin); err != nil {
				return s.calledOff(unix.SIGTERM), true
			}
			return protocol.Exit{}, false
		case sig := <-s.signals:
			if ending(sig) {
				return s.calledOff(unix.Signal(sig.Number)), true
			}
		case <-s.lost:
			return s.calledOff(unix.SIGTERM), true
		case <-ctx.Done():
			return s.calledOff(unix.SIGTERM), true
		}
	}
}

func (s *session) calledOff(sig unix.Signal) protocol.Exit {
	return protocol.Exit{At: s.clock.Now(), Signal: int(sig), Ours: true, Message: "ended before its command was started"}
}

// govern passes signals on and ends the command when the runner is lost.
func (s *session) govern(ctx context.Context) {
	lost, over := s.lost, s.phaseEnd()
	var kill <-chan time.Time
	for {
		select {
		case <-ctx.Done():
			return
		case sig := <-s.signals:
			s.child.Signal(unix.Signal(sig.Number))
			if sig.GraceNanos > 0 {
				kill = time.After(time.Duration(sig.GraceNanos))
			}
		case <-lost:
			lost = nil
			grace := time.Duration(s.welcome.GraceNanos)
			if grace <= 0 {
				grace = defaultGrace
			}
			s.child.Signal(unix.SIGTERM)
			kill = time.After(grace)
		case <-over:
			grace := s.endPhase()
			if kill == nil {
				kill = grace
			}
		case <-kill:
			s.child.Kill()
		}
	}
}

// sample sends a reading each interval.
func (s *session) sample(ctx context.Context) {
	if s.tree == nil || s.welcome.SampleNanos <= 0 {
		return
	}
	tick := time.NewTicker(time.Duration(s.welcome.SampleNanos))
	defer tick.Stop()
	for {
		s.sampleNow()
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (s *session) sampleNow() {
	reading := s.tree.Sample()
	reading.At = s.clock.Now()
	if s.welcome.SampleMachine {
		if c, err := machine.Read(); err == nil {
			reading.Machine = &c
		}
	}
	s.send(protocol.Message{Sample: &reading})
}

// follow streams files until the command has ended.
func (s *session) follow(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		more, err := s.stream.Poll()
		if err != nil {
			return // the runner is lost; govern acts on it
		}
		if more {
			continue
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}

// openCanaries makes the canaries ready before the barrier; what cannot be
// had is said and left out.
func (s *session) openCanaries() []*canary.Canary {
	if s.welcome.Canary == nil {
		return nil
	}
	var all []*canary.Canary
	for _, v := range s.welcome.Canary.Volumes {
		c, err := canary.Open(v, *s.welcome.Canary, s.clock, s.log)
		if err != nil {
			s.log("no canary: " + err.Error())
			continue
		}
		all = append(all, c)
	}
	return all
}

// canary runs one canary beside the command and sends what it sees. What comes
// after its phase is the next one's.
func (s *session) canary(ctx context.Context, c *canary.Canary) {
	if s.over != 0 {
		c.EndAt(s.over - 1)
		until, cancel := context.WithTimeout(ctx, time.Duration(s.over-s.clock.Now()))
		defer cancel()
		ctx = until
	}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		c.Run(ctx)
	}()
	tick := time.NewTicker(collectEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.collect(c, false)
		case <-finished:
			s.collect(c, true)
			return
		}
	}
}

// collect sends what a canary has, in frames well below the bound.
func (s *session) collect(c *canary.Canary, final bool) {
	const most = 4096
	ios, dropped := c.Take(final)
	for len(ios) > 0 {
		n := min(len(ios), most)
		s.send(protocol.Message{Canary: &protocol.Canary{Volume: c.Name, IOs: ios[:n], Dropped: dropped}})
		ios = ios[n:]
	}
}
