// Package wrap runs one command on behalf of the runner: it waits at the barrier, starts the command at its
// instant, forwards signals, reaps children, samples I/O, runs the canary, streams files and reports the
// exit. One process runs one command, once.
package wrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/canary"
	"github.com/cnsbench/cnsbench/internal/agent/clock"
	"github.com/cnsbench/cnsbench/internal/agent/protocol"
)

// Intervals of the agent's loops.
const (
	pollEvery    = 200 * time.Millisecond // files
	collectEvery = 500 * time.Millisecond // canary
	spin         = 300 * time.Microsecond // busy wait before the start
	defaultGrace = 5 * time.Second
)

// Handshake sends the hello, whose remaining fields it sets, and returns the runner's welcome. Its errors say
// which side to replace.
func Handshake(conn *protocol.Conn, hello protocol.Hello) (*protocol.Welcome, error) {
	hello.Magic, hello.Proto, hello.Version = protocol.Magic, protocol.Proto, protocol.Version
	if err := conn.Write(protocol.Message{Hello: &hello}); err != nil {
		return nil, fmt.Errorf("%w: send the hello: %w", ErrUnanswered, err)
	}
	for {
		m, err := conn.Read()
		switch {
		case err != nil:
			return nil, fmt.Errorf("%w: %w", ErrUnanswered, err)
		case m.Ping != nil: // the runner synchronises clocks first
			pong := &protocol.Pong{Ping: m.Ping.Sent, Received: m.Received}
			if err := conn.Write(protocol.Message{Pong: pong}); err != nil {
				return nil, fmt.Errorf("%w: send a pong: %w", ErrUnanswered, err)
			}
		case m.Refuse != nil:
			return nil, fmt.Errorf("the runner refused this agent: %s", m.Refuse.Reason)
		case m.Welcome == nil:
			return nil, errors.New("unexpected answer instead of a welcome: check that the address is a cnsbench runner's")
		case m.Welcome.Proto != protocol.Proto:
			return nil, fmt.Errorf("runner version %s has protocol %d, agent version %s has protocol %d: use the agent built with that runner",
				m.Welcome.Version, m.Welcome.Proto, protocol.Version, protocol.Proto)
		default:
			return m.Welcome, nil
		}
	}
}

// Fail reports that the command could not run and waits for the acknowledgement.
func Fail(conn *protocol.Conn, clock clock.Clock, code string, cause error) {
	if conn.Write(protocol.Message{Exit: &protocol.Exit{At: clock.Now(), ExitCode: 127, Code: code,
		Message: cause.Error()}}) != nil {
		return
	}
	for {
		if m, err := conn.Read(); err != nil || m.Bye != nil {
			return
		}
	}
}

func newSession(conn *protocol.Conn, welcome *protocol.Welcome, clock clock.Clock) *session {
	s := &session{
		conn: conn, welcome: welcome, clock: clock,
		start: make(chan int64, 1), signals: make(chan protocol.Signal, 16),
		pings: make(chan *protocol.Pong, 1), lost: make(chan struct{}), bye: make(chan struct{}),
		inputFiles: newFileReceiver(welcome.Files),
	}
	s.out = newOutput(welcome.MaxOutput, s.send)
	s.level.Store(&welcome.SampleLevel)
	return s
}

// Run runs the command and returns the agent's exit code: the command's, or 128 plus its signal. ctx only
// ends waiting; the runner and the signals that the agent receives end the command.
func Run(ctx context.Context, conn *protocol.Conn, welcome *protocol.Welcome, clock clock.Clock, cmd Command,
	logs *Logs) (int, error) {
	s := newSession(conn, welcome, clock)
	s.cmd, s.logs = cmd, logs
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := s.forwardOwnSignals()
	defer stop()
	go s.read()
	go s.sendPongs()

	if exit := s.receiveFiles(ctx); exit != nil {
		return exit.ExitCode, s.report(*exit)
	}
	program, err := LookPath(s.cmd)
	if err != nil {
		return 127, s.report(protocol.Exit{At: clock.Now(), ExitCode: 127, Code: protocol.CodeNoProgram,
			Message: err.Error()})
	}
	exit := s.run(ctx, program)
	if err := s.report(exit); err != nil {
		return 1, err
	}
	if exit.PhaseOver {
		return 0, nil // the pod succeeds
	}
	if exit.Signal != 0 {
		return 128 + exit.Signal, nil
	}
	return exit.ExitCode, nil
}

// run runs the command from the barrier to its last byte of output.
func (s *session) run(ctx context.Context, program string) protocol.Exit {
	if !s.probeVolumes(ctx) {
		return s.cancelled(unix.SIGTERM)
	}
	var err error
	if s.tree, err = newTree("/proc", s.log); err != nil {
		s.log(err.Error())
	} else {
		s.tree.uncounted = cmp.Or(s.tree.uncounted, s.uncounted())
	}
	s.stream = newStreamer(s.welcome.Outputs, s.file, s.log, s.out)
	defer s.stream.Close()
	s.logs.attach(s.stream, s.log)
	canaries := s.openCanaries()
	syncs := s.countSyncs()
	defer syncs.close()
	if s.command, err = newCommandConn(s.welcome); err != nil {
		return s.execFailed(err)
	}
	defer s.command.close()
	inside := s.command != nil && s.welcome.Barrier != "" // the command reports its own readiness and start
	if !inside {
		s.send(protocol.Message{Ready: &protocol.Stamp{At: s.clock.Now()}})
	}
	if err := s.logs.start(s.log, s.file, s.out); err != nil {
		return s.execFailed(err)
	}
	if s.welcome.Barrier != "" && !inside {
		if exit, ended := s.wait(ctx); ended {
			return exit
		}
	}
	oom := newOOMCounter()
	before := s.clock.Now()
	s.child, err = start(program, s.cmd, s.logs, s.tree, s.command)
	at := s.clock.Now()
	s.logs.closeWriteEnds()
	s.command.closeCommandEnd()
	if err != nil {
		return s.execFailed(err)
	}
	if !inside {
		s.send(protocol.Message{Started: &protocol.Stamp{At: at, Within: at - before}})
	}
	if s.startStopped {
		s.child.Signal(unix.SIGSTOP)
	}
	exit := s.supervise(ctx, canaries)
	exit.Syncs = syncs.read()
	// A shell reports the kill of its child as exit code 137.
	exit.OOM = exit.ExitCode == 128+int(unix.SIGKILL) && !exit.Ours && oom.Struck()
	if exit.OOM {
		exit.Message = "killed by the kernel's out-of-memory killer (counted " + oom.where + ")"
	}
	s.checkPhaseEnd(&exit)
	s.logs.wait()
	_ = s.stream.Drain() // an error means a lost runner, which read detects
	s.out.reportTotals()
	return exit
}

// supervise runs everything beside the command and returns its exit.
func (s *session) supervise(ctx context.Context, canaries []*canary.Canary) protocol.Exit {
	ctx, end := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.control(ctx) })
	wg.Go(func() { s.sample(ctx) })
	s.followVolumes(ctx)
	wg.Go(func() { s.follow(ctx) })
	if s.command != nil {
		wg.Go(func() { s.serveCommand(ctx) })
	}
	for _, c := range canaries {
		wg.Go(func() { s.runCanary(ctx, c) })
	}
	exit := s.child.Wait(s.clock)
	end()
	wg.Wait()
	s.sampleLast()
	return exit
}

// wait waits at the barrier; it returns true when the command was cancelled.
func (s *session) wait(ctx context.Context) (protocol.Exit, bool) {
	defer clock.MinimizeTimerSlack()()
	at, sig := awaitOr(ctx, s, s.start)
	if sig != 0 {
		return s.cancelled(sig), true
	}
	s.send(protocol.Message{GoAck: &protocol.Stamp{At: at}})
	if s.welcome.Phase != nil {
		return s.waitPhase(ctx, at)
	}
	if err := s.clock.Wait(ctx, at, spin); err != nil {
		return s.cancelled(unix.SIGTERM), true
	}
	return protocol.Exit{}, false
}

// control forwards signals and ends the command when the runner is lost or the phase is over.
func (s *session) control(ctx context.Context) {
	lost, over := s.lost, s.phaseTimer()
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

// follow streams files until the command has ended.
func (s *session) follow(ctx context.Context) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for ctx.Err() == nil {
		more, err := s.stream.Poll()
		if err != nil {
			return // the runner is lost; control handles it
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
