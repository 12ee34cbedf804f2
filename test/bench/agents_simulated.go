package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"github.com/cnsbench/cnsbench/internal/agent/protocol"
	"github.com/cnsbench/cnsbench/internal/agent/transport"
	"github.com/cnsbench/cnsbench/internal/agent/wrap"
	"github.com/cnsbench/cnsbench/internal/run"
)

// simulatedAgents makes this program simulate the agents that its input names, in place of the benches.
const simulatedAgents = "CNSBENCH_BENCH_AGENTS"

// simulated is one agent: a line of the input.
type simulated struct {
	Instance string
	Env      []string // of its session
	conn     *protocol.Conn
	welcome  *protocol.Welcome
	offset   int64 // of its clock from the machine's
	start    chan int64
}

// truth is what an agent did, by the machine's clock: a line of the output.
type truth struct {
	Instance string
	Started  int64
	Bare     int64 // how late it was at an instant that no runner announced
}

// machineNow returns the time of the clock that all processes of the machine share.
func machineNow() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(err) // it exists on every Linux
	}
	return ts.Nano()
}

// simulateAgents runs the agents of in until the runner has ended each.
func simulateAgents(ctx context.Context, in io.Reader, out io.Writer) error {
	var agents []*simulated
	for all := json.NewDecoder(in); ; {
		s := &simulated{start: make(chan int64, 1)}
		if err := all.Decode(s); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		agents = append(agents, s)
	}
	bare := machineNow() + int64(run.BarrierLead(len(agents)))
	results := make([]truth, len(agents))
	waits, _ := errgroup.WithContext(ctx)
	for i, s := range agents {
		waits.Go(func() error {
			results[i].Instance = s.Instance
			results[i].Bare = waitUntil(bare) - bare
			return nil
		})
	}
	_ = waits.Wait() // none fails
	sessions, ctx := errgroup.WithContext(ctx)
	for i, s := range agents {
		sessions.Go(func() (err error) {
			results[i].Started, err = s.run(ctx)
			return err
		})
	}
	if err := sessions.Wait(); err != nil {
		return err
	}
	lines := json.NewEncoder(out)
	for _, r := range results {
		if err := lines.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// waitUntil waits for an instant of the machine's clock and returns when it did.
func waitUntil(at int64) int64 {
	time.Sleep(time.Duration(at - machineNow()))
	return machineNow()
}

func (s *simulated) now() int64 { return machineNow() + s.offset }

func (s *simulated) value(name string) string {
	for _, e := range s.Env {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

// run is the life of one agent. It returns when it started its command, which does nothing.
func (s *simulated) run(ctx context.Context) (started int64, err error) {
	s.offset = rand.Int64N(int64(time.Hour)) - machineNow()
	if err := s.connect(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", s.Instance, err)
	}
	defer s.conn.Close()
	if err := s.conn.Write(protocol.Message{Ready: &protocol.Stamp{At: s.now()}}); err != nil {
		return 0, err
	}
	ended, stopped := make(chan error, 1), make(chan struct{})
	go func() { ended <- s.read(stopped) }()
	select {
	case at := <-s.start:
		started = waitUntil(at - s.offset)
	case err := <-ended:
		return 0, fmt.Errorf("%s: the runner has gone: %w", s.Instance, err)
	}
	if err := s.conn.Write(protocol.Message{Started: &protocol.Stamp{At: started + s.offset}}); err != nil {
		return 0, err
	}
	for tick := time.NewTicker(time.Second); ; {
		select {
		case <-stopped:
			tick.Stop()
			exit := protocol.Exit{At: s.now(), Started: true, Signal: int(unix.SIGTERM), Ours: true}
			if err := s.conn.Write(protocol.Message{Exit: &exit}); err != nil {
				return 0, err
			}
			return started, <-ended
		case err := <-ended:
			return 0, fmt.Errorf("%s: the runner has gone: %w", s.Instance, err)
		case <-tick.C:
			if err := s.conn.Write(protocol.Message{Sample: &protocol.Sample{At: s.now(), WriteOps: 1}}); err != nil {
				return 0, err
			}
		}
	}
}

// connect dials as the agent does: again where an overloaded runner closes the connection before its answer.
func (s *simulated) connect(ctx context.Context) error {
	began, attempts := s.now(), 0
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, 2*time.Second) {
		l, err := transport.Dial(ctx, s.value(protocol.EnvRunner), s.value(protocol.EnvPin), time.Minute)
		if err != nil {
			return err
		}
		attempts += l.Attempts
		s.conn = protocol.NewConn(l, s.now)
		s.welcome, err = wrap.Handshake(s.conn, protocol.Hello{Token: s.value(protocol.EnvToken), Began: began,
			Attempts: attempts})
		if err == nil || !errors.Is(err, wrap.ErrUnanswered) || s.now()-began > int64(agentsWithin) {
			return err
		}
		_ = l.Close() // the handshake's error is the cause
		time.Sleep(pause)
	}
}

// read answers the runner until its last message. It closes stopped at the first signal.
func (s *simulated) read(stopped chan<- struct{}) error {
	var once sync.Once
	for {
		m, err := s.conn.Read()
		switch {
		case err != nil:
			return err
		case m.Bye != nil:
			return nil
		case m.Ping != nil:
			err = s.conn.Write(protocol.Message{Pong: &protocol.Pong{Ping: m.Ping.Sent, Received: m.Received}})
		case m.Go != nil:
			err = s.conn.Write(protocol.Message{GoAck: m.Go})
			s.start <- m.Go.At
		case m.Signal != nil:
			once.Do(func() { close(stopped) })
		}
		if err != nil {
			return err
		}
	}
}

// asSimulatedAgents simulates agents if this process was started for it, and reports whether it was.
func asSimulatedAgents(ctx context.Context) bool {
	if os.Getenv(simulatedAgents) == "" {
		return false
	}
	if err := simulateAgents(ctx, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench: simulated agents:", err)
		os.Exit(1)
	}
	return true
}
